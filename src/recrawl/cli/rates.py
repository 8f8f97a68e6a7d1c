"""``recrawl rates``: how often pages change."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, HostOption, JsonOption, LimitOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace

EXAMPLES = """
recrawl rates -w my-archive
recrawl rates --slowest --limit 10
recrawl rates --kind new_links --host example.org
recrawl rates --json --limit 100000
"""

_SECONDS_A_DAY = 86_400.0


class Kind(enum.StrEnum):
    """In what respect a page changes."""

    ANY = "any"
    CONTENT = "content"
    TEXT = "text"
    LINKS = "links"
    NEW_LINKS = "new_links"
    EXISTENCE = "existence"
    TYPE = "type"
    DATA = "data"


def rates(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    kind: Annotated[Kind, typer.Option(help="Count only changes in this respect.")] = Kind.ANY,
    slowest: Annotated[bool, typer.Option("--slowest", help="Begin with the pages that change least.")] = False,
    *,
    limit: LimitOption = 50,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Estimate how often each page changes, and how sure that is.

    Every visit counts, those that found nothing new included. What is known of the other pages of a host fills in for
    what a page has not shown yet. Rates are changes per day; low and high bound the middle 90 % of the belief about the
    page. With few visits the true rate lies outside somewhat more often than in one case of ten: the belief is a Gamma
    distribution, which is a little too sure of itself.
    """
    from recrawl.cli.knowledge import host_id, learn
    from recrawl.cli.tables import print_columns, print_json, rows_of
    from recrawl.model import ChangeKind

    with open_workspace(workspace, parse_assignments(assignments or [])).open_store() as store:
        wanted = None if kind is Kind.ANY else ChangeKind[kind.name]
        known = learn(store, host=host_id(store, host), kind=wanted)
        mean = known.belief.mean()
        order = (mean if slowest else -mean).argsort(kind="stable")[:limit]
        belief, histories = known.belief.take(order), known.histories
        columns = {
            "page": histories.page[order].tolist(),
            "url": store.urls(histories.page[order]),
            "changes_per_day": (belief.mean() * _SECONDS_A_DAY).tolist(),
            "low": (belief.quantile(0.05) * _SECONDS_A_DAY).tolist(),
            "high": (belief.quantile(0.95) * _SECONDS_A_DAY).tolist(),
            "changes_every": (1.0 / belief.mean()).tolist(),
            "looks": (histories.counts()[order] + 1).tolist(),
            "changes": histories.changes()[order].tolist(),
        }
    if json_output:
        print_json(rows_of(columns))
        return
    print_columns(columns)
    if len(order) < len(mean):
        typer.echo(f"{len(order)} of {len(mean)} shown; --limit shows more.")
