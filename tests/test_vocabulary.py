"""One word, one meaning: words that the glossary replaced stay out of code, help and documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {
    r"\berrands?\b": "auxiliary fetch",
    r"\bforet(?:ell|ells|old|elling)\b": "predict",
    r"\bheed(?:s|ed|ing)?\b": "follow, apply",
    r"\bliving webs?\b": "test web",
    r"\bmachine[ _]code\b": "compiled kernel",
    r"\broll ?calls?\b": "worker registry",
    r"\bcaught lying\b": "found unreliable",
    r"\b(?:pure|thinking) rooms?\b": "package",
    r"\bmin[-_]looks?\b": "min observations",
    r"\bsecond[ -]looks?\b": "confirmation",
    r"\bnewcomer(?! is|'s first)s?\b": "new page",
    r"\banew\b": "again",
    r"\bat[ _]hand\b": "available",
    r"\bso (?:many|often)\b": "N",
    r"\bmend(?:s|ed|ing)?\b": "repair",
    r"\bconduct\b": "behaviour",
    r"\bjudge_all|visits_judged": "classify",
}
"""A pattern, and the word to use."""
SUFFIXES = {".py", ".md", ".html"}


@pytest.fixture(scope="module")
def texts():
    """The text of each file, read once for all words."""
    found = [path for folder in ("src", "docs", "benchmarks") for path in sorted((ROOT / folder).rglob("*"))]
    files = [path for path in found if path.suffix in SUFFIXES] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return {path.relative_to(ROOT): path.read_text("utf-8") for path in files}


@pytest.mark.parametrize(("pattern", "instead"), BANNED.items())
def test_a_word_that_was_replaced_stays_out(texts, pattern, instead):
    banned = re.compile(pattern, re.IGNORECASE)  # no pattern goes beyond a line
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts.items()
        if banned.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if banned.search(line)
    ]
    assert found == [], f"say {instead!r}"
