"""Every command of the guides does what the guides show."""

import shutil

import pytest
import snippets
from pages import ROOT, text_of

GUIDES = ("docs/guide-arm.md", "docs/guide-walker.md")


@pytest.fixture
def clone(tmp_path):
    """A folder that looks like a clone to the guides; what they write lands here."""
    pytest.importorskip("mujoco", reason="the guides run simulations: extra `sim`")
    for name in ("python", "tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_the_guide_of_the_arm(clone, arm_policy):
    (clone / "arm").mkdir()
    shutil.copytree(arm_policy, clone / "arm" / "reach-block.policy")  # frozen and built already: the steps are quick
    snippets.run(text_of("docs/guide-arm.md"), clone)


def test_the_guide_of_the_walker(clone, shared_policies, monkeypatch):
    monkeypatch.setenv("INTERLOCK_POLICIES", str(shared_policies.resolve()))
    snippets.run(text_of("docs/guide-walker.md"), clone)


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_shows_what_its_commands_say(guide):
    found = snippets.commands(text_of(guide))
    assert len(found) > 8
    assert sum(bool(command.shown) for command in found) > len(found) / 2


def test_output_that_is_not_as_shown_is_noticed(tmp_path):
    good = "```console\n$ printf 'one two\\nthree\\n'\none …\nthree\n```\n"
    snippets.run(good, tmp_path)
    for bad in (
        good.replace("three\n```", "four\n```"),
        good.replace("\nthree\n```", "\n```"),
        good.replace("two\\n", "two\\n\\n"),
    ):
        with pytest.raises(AssertionError):
            snippets.run(bad, tmp_path)
    with pytest.raises(AssertionError):
        snippets.run("```console\n$ false\n```\n", tmp_path)
    snippets.run("```console\n$ false   # exit 1\n```\n", tmp_path)
