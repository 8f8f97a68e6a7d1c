"""Changelog fragments: each has the right form, and the tool puts them where they belong."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOADER = importlib.machinery.SourceFileLoader("changelog_tool", str(ROOT / "tools" / "changelog"))
TOOL = importlib.util.module_from_spec(importlib.util.spec_from_loader("changelog_tool", LOADER))
LOADER.exec_module(TOOL)


def test_every_fragment_has_the_right_form():
    assert [line for file in TOOL.fragments(ROOT / "changes") for line in TOOL.problems(file)] == []


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("good-words.added.md", "`recrawl plan` is faster.\n", 0),
        ("good-words.better.md", "It is faster.", 1),
        ("Words.added.md", "It is faster.", 1),
        ("words.fixed.md", "", 2),
        ("words.fixed.md", "- It is faster.", 1),
        ("words.fixed.md", "It is faster", 1),
        ("words.fixed.md", "One.\n\nTwo.", 1),
        ("words.fixed.md", "x" * 400 + ".", 1),
    ],
)
def test_a_wrong_form_is_refused(tmp_path, name, text, wrong):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert len(TOOL.problems(file)) == wrong


def test_fragments_go_below_their_kinds():
    before = (
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n#### Crawl\n\n- Old.\n\n## [0.1.0]\n\n### Fixed\n\n- Older.\n"
    )
    after = TOOL.assembled(before, {"b.added.md": "Two\nlines.\n", "a.added.md": "One.\n", "c.fixed.md": "Three.\n"})
    assert after == (
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n- Two lines.\n\n#### Crawl\n\n- Old.\n\n"
        "### Fixed\n\n- Three.\n\n## [0.1.0]\n\n### Fixed\n\n- Older.\n"
    )
    assert TOOL.assembled(after, {"d.added.md": "Four."}).count("### Added\n\n- Four.\n- One.\n") == 1
