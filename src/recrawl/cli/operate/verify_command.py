"""``recrawl verify``: check that a workspace is complete and consistent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ExitCode
from recrawl.model.plurals import counted

if TYPE_CHECKING:
    from recrawl.crawl.maintenance.workspace_check import Verification


EXAMPLES = """
recrawl verify -w my-archive                 check everything
recrawl verify -w my-archive --sample 10000  check the bytes of 10,000 captures only
recrawl verify -w my-archive --repair        also repair derived data
recrawl verify --json                        print JSON
"""


def verify(  # noqa: PLR0913 - one argument an option
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="CAPTURES", help="Number of captures to read, drawn at random. Default: all."),
    ] = None,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair derived data; visits and bytes are not changed.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Random seed of the sample.")] = None,
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Folder warc/ of another workspace that shares the store. May be repeated."
        ),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Check that store and archive files are complete and consistent.

    Reads every capture at its file and offset and compares digests; finds records that the store does not list, and
    revisit records without their capture; compares every derived table with its source; and checks leases, times ahead
    of the clock, and files left by killed processes. Crawls can run meanwhile.

    Findings are errors (bytes or visits are lost or damaged), warnings (nothing is lost; most can be repaired) and
    notes. --repair rebuilds indexes, counts, the schedule, leases and capture positions from their sources. The exit
    code is 9 if there are errors, else 0.

    With --sample the whole store is checked, but only randomly drawn captures of the archive files. The result states
    the share that was read, and an upper bound on the share of wrong captures.
    """
    import numpy as np

    from recrawl.app.progress import progress
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_check import CheckScope, Severity
    from recrawl.crawl.maintenance.workspace_check import verify as check
    from recrawl.errors import ConfigError
    from recrawl.store.base import ClockHorizon
    from recrawl.time import HOUR

    if seed is not None and sample is None:
        raise ConfigError("--seed needs --sample.", "Add --sample, or leave out --seed.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    said = place.configuration.settings
    horizon = ClockHorizon(lease=max(HOUR, 3 * said.crawl.lease_time))
    scope = CheckScope(repair, sample, said.politeness.min_delay, horizon, tuple(archive or ()))
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
    from recrawl.crawl.maintenance.workspace_check import Severity

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
        typer.echo("The workspace is complete and consistent.")


def _share(found: Verification) -> str:
    sample = found.sample
    return f"{sample.drawn / sample.captures:.2%}" if sample is not None and sample.captures else "all"
