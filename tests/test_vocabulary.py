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
}
"""A pattern, and the word to use."""
SUFFIXES = {".py", ".md", ".html"}


def files():
    for folder in ("src", "docs", "benchmarks"):
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))


@pytest.mark.parametrize(("pattern", "instead"), BANNED.items())
def test_a_word_that_was_replaced_stays_out(pattern, instead):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(pattern, line, re.IGNORECASE)
    ]
    assert found == [], f"say {instead!r}"
