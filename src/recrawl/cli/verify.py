"""``recrawl verify``: whether a workspace is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ExitCode
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.crawl.verify import Verification

EXAMPLES = """
recrawl verify -w my-archive                 read everything once, and compare it
recrawl verify -w my-archive --sample 10000  for a large archive: bytes of 10,000 captures
recrawl verify -w my-archive --repair        and repair what follows from other data
recrawl verify --json                        for other programs
"""


def verify(  # noqa: PLR0913 - one argument an option
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="CAPTURES", help="Read the bytes of this many captures, drawn at random, not all."),
    ] = None,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what follows from other data; visits and bytes stay as they are.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Random seed of the sample.")] = None,
    archive: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="The warc/ of another workspace that shares the store. May be repeated."),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Check that the store and the archive files are whole and agree.

    Reads every capture at its file and offset and compares digests; looks for records that the store does not know and
    for revisits of captures that are not there; compares every derived table with its source; and looks at leases,
    times ahead of the clock, and files that killed processes left behind. Crawls may run meanwhile.

    Findings are errors (bytes or visits are lost or damaged), warnings (nothing is lost; most can be repaired) and
    notes. --repair rebuilds indexes, counts, the schedule, leases and the places of captures from what they follow
    from. The exit code is 9 if there are errors, else 0.

    With --sample the store is checked as a whole, but of the archive files only captures drawn at random: the answer
    says which share that is, and how many captures can be wrong at most.
    """
    import numpy as np

    from recrawl.cli.tables import print_json
    from recrawl.cli.waiting import progress
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.verify import Scope, Severity
    from recrawl.crawl.verify import verify as check
    from recrawl.errors import ConfigError
    from recrawl.store.base_checks import Horizon
    from recrawl.time import HOUR

    if seed is not None and sample is None:
        raise ConfigError("--seed is the seed of a sample.", "Add --sample, or leave out --seed.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    said = place.configuration.settings
    horizon = Horizon(lease=max(HOUR, 3 * said.crawl.lease_time))
    scope = Scope(repair, sample, said.politeness.min_delay, horizon, tuple(archive or ()))
    with place.open_store() as store, progress() as tell:
        found = check(store, place.folder, RealClock().now(), scope, rng=np.random.default_rng(seed), tell=tell)
    if json_output:
        print_json(found.facts())
    else:
        _print(found)
    if found.findings.left(Severity.ERROR):
        raise typer.Exit(ExitCode.FAILED)


def _print(found: Verification) -> None:
    from recrawl.cli.tables import print_table
    from recrawl.crawl.verify import Severity

    rows = [
        (
            one.about.severity.value,
            f"{one.count:,}",
            f"{one.repaired:,}" if one.repaired else "",
            one.about.meaning,
            one.examples[0] if one.examples else "",
            "" if one.repaired == one.count else one.about.remedy,
        )
        for one in found.findings.all()
    ]
    if rows:
        headings = ("severity", "found", "repaired", "what", "for example", "what to do")
        print_table(headings, rows, right=("found", "repaired"), spare=("for example", "what to do"))
    size = f"{found.read / 1e6:,.1f} MB"
    typer.echo(
        f"Read {counted(found.captures, 'capture')} and {counted(found.records, 'record')} "
        f"in {counted(found.files, 'archive file')}, {size}."
        if found.sample is None
        else f"Read {found.sample.drawn:,} of {counted(found.sample.captures, 'capture')}, {_share(found)}. "
        f"With 95 % confidence at most {found.sample.bound:.3%} of all captures are wrong."
    )
    errors, warnings = found.findings.left(Severity.ERROR), found.findings.left(Severity.WARNING)
    if errors or warnings:
        typer.echo(f"Left: {counted(errors, 'error')}, {counted(warnings, 'warning')}.")
    else:
        typer.echo("The workspace is whole.")


def _share(found: Verification) -> str:
    sample = found.sample
    return f"{sample.drawn / sample.captures:.2%}" if sample is not None and sample.captures else "all"
