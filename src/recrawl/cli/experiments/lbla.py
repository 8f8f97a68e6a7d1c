"""``recrawl experiment lbla``: who will have new links? Figures 9 to 15 of paper 004, on recorded pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.cli.experiments.lbla_numbers import FIGURES, ORDER, PRESENCE, Number, Run, measured, steps
from recrawl.cli.experiments.report_folder import ReportFolder
from recrawl.formats.disk import complete_file

if TYPE_CHECKING:
    from recrawl.simulate.lbla_splits import Plan, RecordedLinks

_FORM = 3
"""Of what is kept, and of the draws: what was kept in another form is measured again."""


def run(  # noqa: PLR0913, PLR0917 - what, where to, when, how, and how much of it
    data: Path,
    output: Path,
    times: Sequence[float],
    plan: Plan,
    keep: Path | None = None,
    tables: Collection[str] = (),
) -> None:
    """Compare learners, feature sets and baselines; write a report, a table and pictures into ``output``.

    ``plan`` says how, ``times`` when, ``tables`` which of them, if not all. What is measured of each time is kept in
    the folder ``keep`` and not repeated.
    """
    from recrawl.cli.experiments.lbla_report import columns, history_panels, precision_panels, report
    from recrawl.cli.waiting import bars
    from recrawl.errors import InputError
    from recrawl.show.experiments import draw_panels

    written = ReportFolder(output)
    with bars() as bar:
        task = bar.add_task("learning", total=len(times) * plan.draws * 2 * steps(tables, alone=plan.alone))
        read = _reader(data)
        runs = [
            one
            for time in times
            for one in _kept(data, read, replace(plan, at=time), tables, keep, lambda: bar.advance(task))
        ]
    if not runs:
        raise InputError("no site has pages at that time and a record of the period after it", "Give another --at.")
    written.table("lbla.csv", columns(runs))
    if not tables or ORDER in tables:
        draw_panels(
            written.file("lbla.png"),
            precision_panels(runs),
            x_label="k: per cent of the pages",
            y_label="share of the top k% found",
            title="Pages with the most new links, found by rank",
        )
    if not plan.alone and (not tables or PRESENCE in tables):
        draw_panels(
            written.file("lbla-history.png"),
            history_panels(runs),
            x_label="periods looked back",
            y_label="balanced accuracy",
            title="Will there be new links?",
            even=True,
        )
    written.end("lbla.md", report(runs, plan))


def tables_of(figures: str) -> list[str]:
    """The tables that some figures are drawn from, named as ``9,14``; none for none.

    Raises:
        ConfigError: there is no such figure.
    """
    from recrawl.errors import ConfigError

    named = [name.strip() for name in figures.split(",") if name.strip()]
    unknown = [name for name in named if name not in FIGURES]
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: there is no such figure.", f"There are {', '.join(FIGURES)}.")
    return list(dict.fromkeys(FIGURES[name] for name in named))


def moment(date: str) -> float:
    """The begin of a day, UTC, from ``2024-01-02``.

    Raises:
        ConfigError: it is no date.
    """
    from datetime import UTC, datetime

    from recrawl.errors import ConfigError

    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(f"{date!r} is no date.", "Give it as 2024-01-02.") from None


def _reader(data: Path) -> Callable[[], RecordedLinks]:
    """The data set, read when first asked for: what is kept needs none."""
    from functools import cache

    from recrawl.cli.link_data import link_data

    return cache(lambda: link_data(data))


def _kept(  # noqa: PLR0913, PLR0917 - what to measure, how, and where it is kept
    data: Path,
    read: Callable[[], RecordedLinks],
    plan: Plan,
    tables: Collection[str],
    keep: Path | None,
    progress: Callable[[], object],
) -> list[Run]:
    """What was measured at one time, now or earlier."""
    if keep is None:
        return _measured(read(), plan, tables, progress)
    keep.mkdir(parents=True, exist_ok=True)
    asked = " ".join([data.resolve().name, str(plan), str(_FORM), *sorted(tables)])
    name = hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()
    file = keep / f"lbla-{name}.json"
    if not file.exists():
        found = _measured(read(), plan, tables, progress)
        with complete_file(file) as stream:
            stream.write(json.dumps([(one.at, one.split, one.draw, one.numbers) for one in found]).encode())
    told = json.loads(file.read_text(encoding="utf-8"))
    return [Run(time, split, draw, tuple(Number(*number) for number in numbers)) for time, split, draw, numbers in told]


def _measured(
    recorded: RecordedLinks, plan: Plan, tables: Collection[str], progress: Callable[[], object]
) -> list[Run]:
    from recrawl.simulate.lbla_splits import splits

    return [
        Run(plan.at, one.name, one.draw, tuple(measured(one, progress, tables=tables, alone=plan.alone)))
        for one in splits(recorded, plan)
    ]
