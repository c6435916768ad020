"""The published JSON Schemas, for editors. Generated from the models; what a schema cannot say is checked at load."""

from __future__ import annotations

from typing import Any

from interlock.contract.model import Contract, Robot

FILES: dict[str, type[Contract | Robot]] = {"contract.schema.json": Contract, "robot.schema.json": Robot}
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def published_schema(file: str) -> dict[str, Any]:
    """The JSON Schema of one of `FILES`: the model's, with `ask` allowed wherever a fact may be unknown."""
    schema: dict[str, Any] = _without_doubles(FILES[file].model_json_schema(by_alias=True))
    _allow_ask(schema)
    return {"$schema": _DRAFT, "$id": f"https://interlock.invalid/schemas/{file}", **schema}


def _without_doubles(value: Any) -> Any:
    """Older pydantic writes a constant also as `enum`, and wraps a reference in `allOf`."""
    if isinstance(value, dict):
        if len(value.get("allOf", ())) == 1:
            value = {**value["allOf"][0], **{key: item for key, item in value.items() if key != "allOf"}}
        return {key: _without_doubles(item) for key, item in value.items() if not (key == "enum" and "const" in value)}
    return [_without_doubles(item) for item in value] if isinstance(value, list) else value


def _allow_ask(schema: dict[str, Any]) -> None:
    for block in [schema, *schema.get("$defs", {}).values()]:
        properties = block.get("properties", {})
        for name, value in properties.items():
            if "const" not in value or name == "do":
                properties[name] = _or_ask(value)
        rows = block.get("additionalProperties")
        if isinstance(rows, dict):
            block["additionalProperties"] = _or_ask(rows)


def _or_ask(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema or the word `ask`; title, description and default stay outside."""
    outside: dict[str, Any] = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in outside}
    # Python's None stands for an absent key; in a file an absence is the word `none` or no key at all.
    if {"type": "null"} in inside.get("anyOf", []):
        kept = [each for each in inside["anyOf"] if each != {"type": "null"}]
        inside = {"anyOf": kept} if len(kept) > 1 else kept[0]
    if outside.get("default", 0) is None:
        del outside["default"]
    if "const" in inside:
        return schema
    return {**outside, "anyOf": [inside, {"const": "ask"}]}
