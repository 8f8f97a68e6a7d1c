"""``recrawl explain``: why a visit counted as a change, or did not."""

from __future__ import annotations

import math
from os.path import commonprefix
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.visit_explanation import (
    VisitStory,
    as_facts,
    compared,
    page_named,
    story_of,
    verdict_reason,
    verdict_words,
)
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.errors import counted

if TYPE_CHECKING:
    from recrawl.detect.explanation import Explanation


EXAMPLES = """
recrawl explain https://example.org/news           the latest visit
recrawl explain https://example.org/news --changed  the latest visit that found a change
recrawl explain https://example.org/news --at 2026-11-09
recrawl explain https://example.org/news --json
"""

_SHOWN_VISITS = 8
_MOST_LINES = 60
_MOST_PIECES = 6
_WIDEST = 160


def explain(  # noqa: PLR0913 - one argument an option
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the page.")],
    *,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time in UTC; the last visit before it is explained, e.g. 2026-11-09."),
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Consider only visits that found a change.")] = False,
    context: Annotated[
        int, typer.Option(min=0, metavar="LINES", help="Number of unchanged lines around each change.")
    ] = 2,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Explain why a visit counted as a change, or did not.

    Shows the latest visits of the page; the two compared versions; each step of the change detector (bytes, media type,
    text without noise, links); ignored clocks and nonces; parts that were not compared because of learned noise or a
    rule; the magnitude of the change; and the difference line by line. The bytes come from the archive files. Without
    them only the recorded verdict is shown.
    """
    from recrawl.app.rates.rates_table import moment
    from recrawl.cli.tables import print_json
    from recrawl.formats.warc.archived_bytes import ArchivedBytes

    place = open_workspace(workspace, parse_assignments(assignments or []))
    standards = place.configuration.settings.detect.standards()
    with place.open_store() as store:
        page = page_named(store, url)
        archived = ArchivedBytes.of(place.archive, store)
        story = story_of(store, archived, page, moment(at, math.inf), changed=changed)
    told = compared(story, standards)
    if json_output:
        print_json(as_facts(story, told, context))
        return
    _print_page(story)
    _print_visit(story, told)
    if told is not None:
        _print_difference(told, context)


def _print_page(story: VisitStory) -> None:
    import numpy as np

    from recrawl.cli.tables import print_table
    from recrawl.detect.validator_trust import is_believed
    from recrawl.model import Verdict

    visits = story.visits
    found = int((visits.verdict == Verdict.CHANGED).sum())
    typer.echo(f"{story.url}")
    typer.echo(
        f"{counted(len(visits), 'visit')} since {_second(float(visits.time[0]))}, {found} of them found a change; "
        f"next visit {_second(story.due)}."
    )
    if len(story.misdated):
        times = ", ".join(_second(time) for time in story.misdated.time[-_SHOWN_VISITS:].tolist())
        typer.echo(
            f"In addition {counted(len(story.misdated), 'visit')} made while the clock was wrong, dated {times}."
        )
    if masked := len(story.noise.mask_of(story.page)):
        where = f"{counted(masked, 'part')} of this page or of all pages of its host"
        typer.echo(f"Learned noise, not compared unless it carries most of the text: {where} (recrawl list noise).")
    if not is_believed(story.checks, story.lies):
        typer.echo(
            "Validators of this host were found unreliable, so it is always asked for the whole page: they would have "
            "hidden "
            f"{story.lies} of {counted(story.checks, 'change')}."
        )
    rows = np.arange(max(0, len(visits) - _SHOWN_VISITS), len(visits))
    if story.row not in rows:
        rows = np.append(story.row, rows)
    print_table(
        ("", "visit", "status", "outcome", "verdict", "in what", "how much"),
        [
            (
                "→" if row == story.row else "",
                _second(float(visits.time[row])),
                str(visits.status[row] or "–"),  # a log of changes has none
                *verdict_words(visits, row),
                f"{visits.magnitude[row]:.1%}" if visits.magnitude[row] >= 0 else "",
            )
            for row in rows.tolist()
        ],
    )


def _second(when: float) -> str:
    """A time to the second: some pages have several visits per minute."""
    from recrawl.app.display import shown_time

    return shown_time(when, "seconds")


def _print_visit(story: VisitStory, told: Explanation | None) -> None:
    """Print the recorded verdict and its reasons."""
    from recrawl.cli.tables import print_table
    from recrawl.detect.explanation import reasons

    when = _second(float(story.visits.time[story.row]))
    outcome, verdict, _ = verdict_words(story.visits, story.row)
    typer.echo(f"The visit of {when}: {outcome}, {verdict}. {verdict_reason(story, told)}")
    if told is None:
        return
    if story.before is not None:
        typer.echo(f"Compared with the version of {_second(story.before.time)}:")
    print_table(("", ""), reasons(told))
    _print_some([f"left out as {rule}: {_short(piece)}" for rule, piece in told.after.noise])
    _print_some([f"not compared ({one.why}): {_short(one.text)}" for one in told.after.left_out])


def _print_some(lines: list[str]) -> None:
    for line in lines[:_MOST_PIECES]:
        typer.echo(f"  {line}")
    if len(lines) > _MOST_PIECES:
        typer.echo(f"  and {len(lines) - _MOST_PIECES} more")


def _print_difference(told: Explanation, context: int) -> None:
    lines = _from_where_they_differ(told.diff(context))
    for line in lines[:_MOST_LINES]:
        typer.secho(_short(line), fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if len(lines) > _MOST_LINES:
        typer.echo(f"… {len(lines) - _MOST_LINES} more lines; --json shows all.")
    for sign, links in (("+", told.links_added), ("-", told.links_removed)):
        for link in links[:_MOST_PIECES]:
            typer.secho(f"{sign} link {_short(link)}", fg="green" if sign == "+" else "red")
        if len(links) > _MOST_PIECES:
            typer.echo(f"  and {len(links) - _MOST_PIECES} more links")


def _from_where_they_differ(lines: list[str]) -> list[str]:
    """Long changed lines, shown from shortly before the difference: cut at their ends they would appear equal."""
    cut, row = list(lines), 0
    while row < len(lines):
        came = next((at for at in range(row, len(lines)) if lines[at][:1] != "-"), len(lines))
        end = next((at for at in range(came, len(lines)) if lines[at][:1] != "+"), len(lines))
        for old, new in zip(range(row, came), range(came, end), strict=False):
            same = len(commonprefix([lines[old][1:], lines[new][1:]]))  # noqa: RUF071 - characters are meant
            if same > _WIDEST // 2 and max(len(lines[old]), len(lines[new])) > _WIDEST:
                for at in (old, new):
                    cut[at] = f"{lines[at][0]}… {lines[at][1:][same - _WIDEST // 4 :]}"
        row = max(end, row + 1)
    return cut


def _short(text: str) -> str:
    """One line of bounded length without control characters: page content must not control the terminal."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in text)
    return clean if len(clean) <= _WIDEST else clean[: _WIDEST - 1] + "…"
