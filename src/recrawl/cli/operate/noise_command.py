"""``recrawl noise``: reset learned noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.commands import CommandWithExamples, new_app
from recrawl.cli.options import SetOption, WorkspaceOption

if TYPE_CHECKING:
    pass


RESET = """
recrawl noise reset example.org                 compare all parts of its pages again
recrawl noise reset a.example b.example -w ws   the same for two hosts of another workspace
"""

app = new_app()


@app.callback(cls=None, no_args_is_help=True)
def noise() -> None:
    """Reset the learned noise of a host."""


@app.command("reset", cls=CommandWithExamples, epilog=RESET)
def reset(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="Hosts, as recrawl list hosts shows them.")],
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Reset the learned noise of a host.

    All parts of its pages are compared again, and noise is learned from scratch. recrawl list noise shows learned
    noise. Running crawls adopt the reset within five minutes. If noise was learned from imported captures, these are
    classified again with all their parts.
    """
    import numpy as np

    from recrawl.app.assess.archive_reading import judge_all_parts
    from recrawl.app.rates.belief_table import host_id
    from recrawl.detect.noise.learned_noise import NoiseEvidence
    from recrawl.model.plurals import counted
    from recrawl.transfer.archive_noise_learning import hosts_with_noise, with_archive_noise

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        numbers = [host_id(store, host) or 0 for host in hosts]
        from_archives = hosts_with_noise(store)
        for name, number in zip(hosts, numbers, strict=True):
            one = np.array([number])
            learned = NoiseEvidence.counted(store.noise(one)).noise_of(number)
            masked = with_archive_noise(store, number, learned)
            store.drop_noise(one)
            again = ""
            if name in from_archives:
                visits = judge_all_parts(place, store, number)
                again = f" {counted(visits, 'imported visit')} classified again."
            typer.echo(
                f"{name}: {counted(masked.masked, 'masked part')} reset, with the evidence on all other parts.{again}"
            )
