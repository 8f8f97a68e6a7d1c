"""The source cites pages of the documentation by code; every code that is cited is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CODE = r"[A-Z]\d+"
READING = r"\d{3}\.\d+"
SECTION = r"\d+(?:\.\d+)?"


def cited(word: str, code: str) -> set[str]:
    """What stands behind the word in any source or test file, lists and ranges of two included."""
    listed = re.compile(rf"\b{word} ({code}(?:(?:, | and |[-–])(?:\s*){code})*)")
    found = set()
    for folder in ("src", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            for group in listed.findall(" ".join(file.read_text(encoding="utf-8").split())):
                found.update(re.findall(code, group))
    return found


def defined(page: str, form: str) -> set[str]:
    return set(re.findall(form, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize(
    ("word", "code", "page", "form"),
    [
        ("conventions", CODE, "reference/conventions.md", rf"^({CODE})\n:"),
        ("readings?", READING, "explanation/papers.md", rf"^({READING})\n:"),
        ("algorithms", f"§{SECTION}", "explanation/algorithms.md", rf"^##+ ({SECTION})"),
    ],
)
def test_every_code_that_is_cited_is_documented(word, code, page, form):
    found = {one.removeprefix("§") for one in cited(word, code)}
    assert len(found) > 3  # the pattern still sees how the source cites
    assert found <= {number.rstrip(".") for number in defined(page, form)}
