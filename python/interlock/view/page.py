"""One self-contained HTML page: no script, nothing fetched. Plain text is always escaped; only `Html` is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


class Html(str):
    """Markup made by this package. Everything that came from a recording is a plain `str` and gets escaped."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A table column.

    Attributes:
        title: Its head.
        unit: Shown small behind the head.
        number: Right-aligned, equal-width digits.
    """

    title: str
    unit: str = ""
    number: bool = True


NOTHING = "\N{EN DASH}"  # in a cell that has no value


def html(value: object) -> Html:
    """A value as markup: escaped unless it is markup already."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def join(parts: Sequence[object], between: str = "") -> Html:
    """Parts one after another."""
    return Html(between.join(html(part) for part in parts))


def tag(name: str, *parts: object, css: str = "") -> Html:
    """An element around parts."""
    kind = f' class="{escape(css)}"' if css else ""
    return Html(f"<{name}{kind}>{join(parts)}</{name}>")


def paragraph(*parts: object, css: str = "") -> Html:
    """A paragraph."""
    return tag("p", *parts, css=css)


def note(*parts: object) -> Html:
    """Small print below a table or picture."""
    return paragraph(*parts, css="note")


def bullets(items: Sequence[object]) -> Html:
    """A list, empty for no items."""
    return tag("ul", *[tag("li", item) for item in items]) if items else Html()


def section(anchor: str, title: str, *parts: object) -> Html:
    """A part of the page that can be linked to."""
    return Html(f'<section id="{escape(anchor)}"><h2>{html(title)}</h2>{join(parts)}</section>')


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, caption: str = "") -> Html:
    """A table that scrolls by itself where the page is narrow. Empty for no rows."""
    if not rows:
        return Html()
    heads = [
        Html(
            f'<th scope="col"{_number(column)}>{html(column.title)}'
            + (f" <small>{html(column.unit)}</small>" if column.unit else "")
            + "</th>"
        )
        for column in columns
    ]
    body = [tag("tr", *[_cell(column, value) for column, value in zip(columns, row, strict=True)]) for row in rows]
    shown = tag("caption", caption) if caption else Html()
    return tag(
        "div",
        Html(f"<table>{shown}<thead><tr>{join(heads)}</tr></thead><tbody>{join(body)}</tbody></table>"),
        css="wide",
    )


def _number(column: Column) -> str:
    return ' class="n"' if column.number else ""


def _cell(column: Column, value: object) -> Html:
    # What could not be measured is said in words; words in a number column stand back.
    words = column.number and isinstance(value, str) and not isinstance(value, Html) and not _is_numeric(value)
    css = " ".join(each for each, wanted in (("n", column.number), ("faint", words)) if wanted)
    return tag("td", value, css=css)


def _is_numeric(text: str) -> bool:
    return any(letter.isdigit() for letter in text[:2])


def facts(rows: Sequence[tuple[str, object]]) -> Html:
    """Names with values, such as the head of a page."""
    return tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in rows], css="facts")


def tiles(rows: Sequence[tuple[str, object, str]]) -> Html:
    """The few numbers that are looked at first: name, value, meaning. A meaning that begins with `!` is a warning."""
    shown = [
        tag(
            "div",
            tag("dt", name),
            tag("dd", value),
            tag("small", meaning.removeprefix("!")),
            css="bad" if meaning.startswith("!") else "",
        )
        for name, value, meaning in rows
    ]
    return tag("dl", *shown, css="tiles")


def grid(parts: Sequence[object], css: str = "grid") -> Html:
    """Pictures side by side, as many as fit."""
    return tag("div", *parts, css=css) if parts else Html()


def picture(source: str, alt: str, *, caption: object, css: str = "") -> Html:
    """An image from a `data:` address."""
    return Html(
        f'<figure class="{escape(css or "image")}"><img src="{escape(source)}" alt="{escape(alt)}">'
        f"<figcaption>{html(caption)}</figcaption></figure>"
    )


def details(summary: str, *parts: object) -> Html:
    """Something that is read on request; printed only where it was opened."""
    return Html(f"<details><summary>{html(summary)}</summary>{join(parts)}</details>")


def page(title: str, *parts: object) -> str:
    """The whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Nothing is fetched and nothing runs, whatever a recording contains.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(html(part) for part in parts)
        + "\n</main>\n</body>\n</html>\n"
    )


CSS = """
:root{color-scheme:light;--ink:#0f172a;--soft:#475569;--faint:#64748b;--line:#e2e8f0;--paper:#fff;--bad:#b91c1c}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:44px 0 8px;padding-top:14px;border-top:2px solid var(--ink)}
h3{font-size:1rem;margin:26px 0 6px}
p{margin:8px 0;max-width:78ch;overflow-wrap:anywhere}
ul{margin:8px 0;padding-left:1.3em;max-width:78ch;overflow-wrap:anywhere}
.sub,.note{color:var(--soft);font-size:.875rem}
.summary{font-size:1.06rem}
nav{margin:18px 0 0;font-size:.875rem;display:flex;flex-wrap:wrap;gap:4px 16px}
a{color:#1d4ed8}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.alert{border-left:4px solid var(--bad);padding:6px 12px;background:#fef2f2;max-width:78ch}
.facts{margin:14px 0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(230px,44%),1fr));gap:10px 20px}
.facts dt,.tiles dt{color:var(--faint);font-size:.8rem}
.facts dd,.tiles dd{margin:0;overflow-wrap:anywhere}
.tiles{margin:20px 0;display:grid;grid-template-columns:repeat(auto-fill,minmax(158px,1fr));gap:12px}
.tiles>div{border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.tiles dd{font-size:1.45rem;line-height:1.25;font-weight:600;font-variant-numeric:tabular-nums}
.tiles small{color:var(--soft);display:block;line-height:1.35}
.tiles .bad{border-color:#fca5a5;background:#fef2f2}
.tiles .bad dd{color:var(--bad)}
.wide{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;font-size:.875rem}
caption{text-align:left;white-space:nowrap;font-weight:600;padding:4px 0}
th,td{padding:4px 10px;text-align:left;border-bottom:1px solid var(--line);vertical-align:baseline}
th{border-bottom:1px solid var(--faint);font-weight:600;white-space:nowrap}
th small,td small{color:var(--faint);font-weight:400}
th:first-child,td:first-child{padding-left:0}
td:first-child:not(.n){min-width:8.5rem}
td code{white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.faint{color:var(--faint)}
.sum td{font-weight:600}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:6px 22px}
.images{display:grid;grid-template-columns:repeat(auto-fill,minmax(110px,1fr));gap:12px 10px;margin:10px 0}
figure{margin:0;min-width:0}
.image img{display:block;width:100%;height:auto;border:1px solid var(--line);image-rendering:auto}
.image figcaption{font-size:.78rem;color:var(--soft);line-height:1.3}
.frozen img{border:2px solid var(--bad)}
.frozen figcaption{color:var(--bad)}
.chart{margin:14px 0}
.chart>figcaption{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.8rem;color:var(--soft);padding-left:46px}
.chart>figcaption b{color:var(--ink);font-weight:600}
.key{white-space:nowrap;margin-right:6px}
.key i{display:inline-block;width:16px;border-top:3px solid;margin:0 5px 3px 0;vertical-align:middle}
.key i.box{border-top-width:10px;width:10px;margin-bottom:1px}
.key i.dash{border-top-style:dashed;border-top-width:2px}
.plot{position:relative;padding:6px 16px 20px 46px}
.plot svg{display:block;width:100%;overflow:hidden;background:var(--paper)}
.plot span{position:absolute;font-size:.7rem;line-height:1;color:var(--faint);white-space:nowrap;
font-variant-numeric:tabular-nums}
.y{position:absolute;left:0;top:6px;bottom:20px;width:40px}
.y span{right:0;transform:translateY(-50%)}
.x{position:absolute;left:46px;right:16px;bottom:0;height:16px}
.x span{transform:translateX(-50%)}
.plot line,.plot polyline{vector-effect:non-scaling-stroke;fill:none}
.gridline{stroke:var(--line);stroke-width:1}
.mark{stroke:#94a3b8;stroke-width:1;stroke-dasharray:2 3}
.limit{stroke:var(--bad);stroke-width:1;stroke-dasharray:6 4}
details{margin:12px 0}
summary{cursor:pointer;color:#1d4ed8;font-size:.875rem}
@media(max-width:520px){main{padding:16px 14px 48px}h1{font-size:1.35rem}.tiles{grid-template-columns:1fr 1fr}
th,td{padding:4px 7px}.images{grid-template-columns:repeat(auto-fill,minmax(88px,1fr))}}
@media print{main{max-width:none;padding:0}nav{display:none}h2,h3{break-after:avoid}body{font-size:11pt}
figure,tr,.tiles>div{break-inside:avoid}.wide{overflow:visible}}
"""
