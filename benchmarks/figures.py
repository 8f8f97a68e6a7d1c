"""What a benchmark found, for programs: every benchmark prints lines for people, and notes its figures here as well.

``options_of(parser)`` gives a command the option ``--json FILE``; ``note(...)`` then adds a line of JSON to that file,
and does nothing where there is none. ``benchmarks/all.py`` reads these lines; nobody reads what is printed but people.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that was measured."""

    name: str
    """Within its benchmark; aims are named after it (``targets.py``)."""
    measured: float
    unit: str
    sizes: str
    """How large what was measured is, in words."""
    baseline: float | None = None
    """The same of another way, measured in the same run, in the same unit."""
    beside: str = ""
    """What the baseline is."""

    @classmethod
    def read(cls, value: dict[str, Any]) -> Figure:
        """A figure out of JSON."""
        return cls(**value)


class _Notes:
    """Where figures of this process go: set once from the command line."""

    file: Path | None = None


def options_of(parser: argparse.ArgumentParser, words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, with ``--json`` added to what the parser knows."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the figures to this file, a line of JSON each")
    options = parser.parse_args(words)
    _Notes.file = options.json
    return options


def note(  # noqa: PLR0913 - a figure has as many parts
    name: str, measured: float, unit: str, sizes: str, *, baseline: float | None = None, beside: str = ""
) -> None:
    """Keep a figure, if the command was asked to."""
    if _Notes.file is not None:
        figure = Figure(name, float(measured), unit, sizes, None if baseline is None else float(baseline), beside)
        with _Notes.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(figure), ensure_ascii=False) + "\n")


def read_notes(file: Path) -> list[Figure]:
    """The figures that a command kept; none if there is no file."""
    if not file.exists():
        return []
    return [Figure.read(json.loads(line)) for line in file.read_text("utf-8").splitlines()]
