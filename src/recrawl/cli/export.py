"""``recrawl export``: what was learned, for other tools."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, HostOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace

EXAMPLES = """
recrawl export visits.parquet -w my-archive
recrawl export histories.parquet --what histories
recrawl export one-host.parquet --host example.org
"""


class What(enum.StrEnum):
    """What to export."""

    VISITS = "visits"
    HISTORIES = "histories"


def export(
    file: Annotated[Path, typer.Argument(help="The Parquet file; replaced once it is complete.")],
    what: Annotated[What, typer.Option(help="One row a visit, or one row a page with its gaps.")] = What.VISITS,
    host: HostOption = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Write visits or histories to a Parquet file.

    Visits are all that was ever recorded, failed ones included, by page and time, with the URL of their page: recrawl
    import reads them back. Histories are what estimators see: per page the gaps between looks in seconds, and whether
    the look that closed each found a change; pages are numbers there, and recrawl list pages --json gives their URLs.
    Needs the extra columns: pip install 'recrawl[columns]'.
    """
    import numpy as np

    from recrawl.cli.knowledge import host_id
    from recrawl.formats.arrow import PageUrls, write_histories, write_visits

    with open_workspace(workspace, parse_assignments(assignments or [])).open_store() as store:
        chosen = host_id(store, host)
        if what is What.VISITS:
            visits = store.visits(host=chosen)
            pages = np.unique(visits.page)
            write_visits(file, visits, PageUrls(pages, store.urls(pages)))
            typer.echo(f"Wrote {len(visits)} visits to {file}.")
        else:
            histories = store.histories(host=chosen)
            write_histories(file, histories)
            typer.echo(f"Wrote the histories of {len(histories)} pages to {file}.")
