"""The page ``docs/figures.md``: every aim with what was measured, then the tables of quality.

The same results always give the same page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from figures import Figure
from hashes import SHOWN, kept_hashes
from kept import FOLDER, Result, all_aims, kept_results, reached
from quality import EXPERIMENTS, quality_figures
from quality_tables import TABLES
from reasons import REASONS
from targets import AIMS, Aim

PAGE = Path(__file__).resolve().parents[1] / "docs" / "figures.md"
HEADS = ("figure", "aim", "measured", "baseline in the same run", "ratio", "reached", "sizes", "command", "run")
_INTRODUCTION = """\
---
hide: [navigation, toc]
---

# Figures

What the project set out to reach, and what was measured. `python benchmarks/all.py` runs every benchmark and writes
this page; `--help` tells how to run a part. Nothing on it is written by hand but reasons and remarks.

- **Ratio** is measured ÷ baseline. Where the aim is about it, the aim says so.
- **Run** is the day, the load average of the machine when the command began, and its processors. A load well above 1
  means that other work took its share, and that times on the wall are longer for it.
- **Reached** is *not known yet* where only small sizes were run (`--quick`): that shows that the command works, and
  nothing else.
- Some aims were set in words. *Steady* memory is read as at most 1.1 times that of half the work, a *smooth* graph as
  60 frames a second, and intervals that *cover* as those of all crawls together.
- A command that ends in … stands in full on the page of its experiment.
- In commands `DATA` is the folder with the large data sets; files of `benchmarks/` are run by
  `uv run --group bench python`.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a row of the page needs to know beside its aim."""

    figure: Figure
    command: str
    when: str
    quick: bool = False


def page(results: Path = FOLDER) -> str:
    """The whole page."""
    found = measured(results)
    parts = [_INTRODUCTION, _in_short(found)]
    for title, aims in AIMS.items():
        parts.append(f"## {title}\n")
        parts.append(_table(HEADS, [_row(aim, found.get(aim.key)) for aim in aims]))
    parts += [_missed(found), _remarks(results), _quality(results)]
    return "\n".join(parts)


def measured(results: Path = FOLDER) -> dict[str, Measured]:
    """What is known of each aim, by its key; aims that nothing is known of are left out."""
    kept, days, found = kept_results(results), kept_hashes("tables", results), {}
    experiments = {experiment.name: experiment for experiment in reversed(EXPERIMENTS)}
    for aim in all_aims():
        if aim.run in experiments:
            told = experiments[aim.run]
            figure = next((one for one in quality_figures(aim.run) if one.name == aim.figure), None)
            when = f"table of {days[told.file]['date']}" if told.file in days else "table not noted"
            if figure is not None:
                found[aim.key] = Measured(figure, f"recrawl experiment {told.command}", when)
        elif aim.run in kept and (figure := kept[aim.run].figure(aim.figure)) is not None:
            found[aim.key] = _of_run(kept[aim.run], figure)
    return found


def _of_run(result: Result, figure: Figure) -> Measured:
    star = " \\*" if result.remark else ""
    load = "load not noted" if result.load is None else f"load {result.load:.1f}"
    when = f"{result.date}, {load}, {result.cores} processors{star}"
    return Measured(figure, result.command.removeprefix("python "), when, result.quick)


def said(value: float) -> str:
    """A number with three digits that count.

    >>> [said(x) for x in (0, 15, 0.0361, 352_123, 14.26, 9.3e-13)]
    ['0', '15', '0.0361', '352,000', '14.3', '9.3e-13']
    """
    if value == 0 or (value == int(value) and abs(value) < 1_000):
        return f"{value:.0f}"
    if abs(value) >= 1_000:
        return f"{int(float(f'{value:.3g}')):,}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"


def _with_unit(value: float, unit: str) -> str:
    return f"{said(value)} {unit}".rstrip()


def wanted(aim: Aim, figure: Figure | None) -> str:
    """The aim in signs."""
    unit = "× the baseline" if aim.of_ratio else "" if figure is None else figure.unit
    return f"{'≥' if aim.at_least else '≤'} {_with_unit(aim.limit, unit)}"


def _row(aim: Aim, told: Measured | None) -> list[str]:
    if told is None:
        return [aim.what, wanted(aim, None), *["not measured yet"] * (len(HEADS) - 2)]
    figure = told.figure
    beside = figure.beside or "none: the aim is a limit"
    if figure.baseline is not None:
        beside = f"{_with_unit(figure.baseline, figure.unit)} ({figure.beside})"
    ratio = said(figure.measured / figure.baseline) if figure.baseline else "none"
    verdict = "not known yet (small sizes)" if told.quick else "yes" if reached(aim, figure) else "**no**"
    now = _with_unit(figure.measured, figure.unit)
    return [aim.what, wanted(aim, figure), now, beside, ratio, verdict, figure.sizes, f"`{told.command}`", told.when]


def _in_short(found: dict[str, Measured]) -> str:
    aims = all_aims()
    known = [aim for aim in aims if aim.key in found and not found[aim.key].quick]
    good = sum(reached(aim, found[aim.key].figure) for aim in known)
    words = f"Of {len(aims)} aims {good} are reached and {len(known) - good} are [not](#not-reached)"
    rest = len(aims) - len(known)
    return f"{words}; {rest} {'waits' if rest == 1 else 'wait'} for a run at full size.\n" if rest else f"{words}.\n"


def _missed(found: dict[str, Measured]) -> str:
    rows = []
    for aim in all_aims():
        told = found.get(aim.key)
        if told is not None and not told.quick and not reached(aim, told.figure):
            figure = told.figure
            value = figure.measured / figure.baseline if aim.of_ratio and figure.baseline else figure.measured
            unit = "×" if aim.of_ratio else figure.unit
            rows.append([aim.what, wanted(aim, figure), _with_unit(value, unit), REASONS.get(aim.key, NO_REASON)])
    if not rows:
        return "## Not reached\n\nNone.\n"
    return f"## Not reached\n\n{_table(('figure', 'aim', 'measured', 'why'), rows)}"


_HASHES = """\
Read off the tables that experiments left beside their pages. A hash is the beginning of the SHA-256 of a table, or of
the names and hashes of the files of a data set.
"""
NO_REASON = "No reason was written yet (`benchmarks/reasons.py`)."


def _remarks(results: Path) -> str:
    remarks = [
        f"- `{result.command.removeprefix('python ')}`: {result.remark}"
        for result in kept_results(results).values()
        if result.remark
    ]
    return "\\* Remarks:\n\n" + "\n".join(remarks) + "\n" if remarks else ""


def _quality(results: Path) -> str:
    tables, data = kept_hashes("tables", results), kept_hashes("data", results)
    parts = [
        "## Quality\n",
        _HASHES,
    ]
    for title, (make, names) in TABLES.items():
        parts.append(f"### {title}\n")
        parts += [f"{one.words}\n\n{_table(one.heads, one.rows)}" for one in make()]
        pages = ", ".join(f"[{name}](explanation/experiments/{name}.md)" for name in names)
        parts.append(f"In full, with what it means: {pages}.\n")
    heads, rows = ("experiment", "table", "hash", "made", "data", "command"), []
    for one in EXPERIMENTS:
        told = tables.get(one.file, {"sha256": "not noted", "date": "not noted"})
        sets = ", ".join(f"{name} {data[name]['sha256'][:SHOWN] if name in data else 'not noted'}" for name in one.data)
        link = f"[{one.name}](explanation/experiments/{one.name}.md)"
        command = f"`recrawl experiment {one.command}`"
        rows.append([link, one.file, told["sha256"][:SHOWN], told["date"], sets or "made up, by seed", command])
    parts.append(f"### Where the tables come from\n\n{_table(heads, rows)}")
    return "\n".join(parts)


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [list(heads), ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"
