"""Pages of the SHARC experiments: the tables are written anew, what people wrote above them is kept."""

from __future__ import annotations

from pathlib import Path

MARK = "<!-- written by recrawl experiment -->"
"""Below this line a page is written anew."""


def write_page(page: Path, text: str) -> None:
    """Write ``text`` to a page, under what stands above :data:`MARK` if the page is there and has one."""
    head = ""
    if page.is_file():
        above, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
        head = f"{above}{mark}\n\n" if mark else ""
    page.write_text(head + text, encoding="utf-8")
