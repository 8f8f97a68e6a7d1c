"""``recrawl explain``: why a visit counted as a change, or did not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.crawl.archived_bytes import ArchivedBytes
    from recrawl.crawl.parse_pool import ParsePool
    from recrawl.detect.explanation import Explanation
    from recrawl.detect.learned_noise import HostNoise
    from recrawl.detect.standards import Standards
    from recrawl.model import Capture, Page, Visits
    from recrawl.store.base import Store
    from recrawl.store.values import Captures

EXAMPLES = """
recrawl explain https://example.org/news           the latest visit: what differed, and was it a change
recrawl explain https://example.org/news --changed  the latest visit that found a change
recrawl explain https://example.org/news --at 2026-11-09
recrawl explain https://example.org/news --json
"""

_SHOWN_VISITS = 8
_MOST_LINES = 60
_MOST_PIECES = 6
_WIDEST = 160


@dataclass(frozen=True, slots=True)
class Story:
    """One visit to a page and what it was compared with."""

    page: int
    url: str
    visits: Visits
    """All of the page, by time."""
    row: int
    """The visit that is explained."""
    due: float
    repeats: bool
    """The visit brought the bytes that were known before."""
    before: Capture | None
    """The version known before, if its bytes can be had."""
    after: Capture | None
    """The version at the visit, if its bytes can be had."""
    noise: HostNoise
    """What was learned about noise on the host."""
    checks: int
    """Changes of the host that were found without its help, and how many of them its validators would have hidden."""
    lies: int
    misdated: Visits
    """Visits whose times were ahead of the clock when that was found: no evidence of anything."""


def explain(  # noqa: PLR0913 - one argument an option
    url: Annotated[str, typer.Argument(metavar="URL", help="The page, as it was added or found.")],
    *,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Explain the last visit up to this time in UTC, e.g. 2026-11-09.")
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only consider visits that found a change.")] = False,
    context: Annotated[int, typer.Option(min=0, metavar="LINES", help="Unchanged lines shown around each change.")] = 2,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Say why a visit counted as a change, or did not.

    Shows the latest visits of the page, the two versions that were compared, from cheap to dear what the judge looked
    at (bytes, media type, text without noise, links), which clocks and nonces were left out, which parts were not
    compared because they were learned to be noise or a rule says so, how much changed, and the difference line by line.
    The bytes come from the archive files; without them only the verdict on record can be told.
    """
    from recrawl.cli.rates_question import moment
    from recrawl.cli.tables import print_json
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into

    place = open_workspace(workspace, parse_assignments(assignments or []))
    standards = place.configuration.settings.detect.standards()
    with place.open_store() as store:
        page = page_named(store, url)
        archived = ArchivedBytes(place.warc, imported_into(store))
        story = story_of(store, archived, page, moment(at, math.inf), changed=changed)
    told = compared(story, standards)
    if json_output:
        print_json(as_facts(story, told, context))
        return
    _print_page(story)
    _print_visit(story, told)
    if told is not None:
        _print_difference(told, context)


def compared(story: Story, standards: Standards, pool: ParsePool | None = None) -> Explanation | None:
    """The judge's steps over the two versions; ``None`` where there are not two. The pool reads what is not cheap.

    Raises:
        OverBudgetError: the pool could not.
    """
    from recrawl.detect import judge
    from recrawl.detect.explanation import explain as steps
    from recrawl.detect.version import CostlyError, Effort

    if not (story.before and story.after) or story.repeats:
        return None
    standards = replace(standards, mask=story.noise.mask_of(story.page))
    question = story.before, story.after, standards, story.noise, story.page
    if pool is not None:
        try:
            for one in (story.before, story.after):
                judge(one, None, standards, Effort.CHEAP)
        except CostlyError:
            return pool.call(steps, *question)
    return steps(*question)


def page_named(store: Store, url: str) -> Page:
    """The page of this URL; an error if there is none."""
    from recrawl.errors import InputError
    from recrawl.fetch.files import LocalFile

    page = store.find(LocalFile().source(url, {}).url if url.startswith("file:") else url)
    if page is None:
        raise InputError(f"{url} is not a page of this workspace.", "recrawl list pages shows what there is.")
    return page


def story_of(store: Store, archived: ArchivedBytes, page: Page, until: float, *, changed: bool) -> Story:
    """Find the last visit of a page up to a time, and the two versions that were compared."""
    import numpy as np

    from recrawl.detect.learned_noise import NoiseEvidence
    from recrawl.errors import InputError
    from recrawl.model import Verdict

    visits = store.visits(pages=np.array([page.id]))
    if not len(visits):
        raise InputError(
            f"{page.url} was not visited yet.", "recrawl plan says when it is due, recrawl run goes there."
        )
    rows = np.flatnonzero((visits.time <= until) & ((visits.verdict == Verdict.CHANGED) | (not changed)))
    if not len(rows):
        what = "visit that found a change" if changed else "visit"
        raise InputError(f"There is no {what} of {page.url} up to then.", "Leave out --at or --changed.")
    row = int(rows[-1])
    captures = store.capture_columns(np.array([page.id]))
    # What was known is the version at the visit before that had an answer: failures between are passed over.
    answered = np.flatnonzero(visits.answered()[:row])
    before = place_at(captures, float(visits.time[answered[-1]])) if len(answered) else None
    after = place_at(captures, float(visits.time[row]))
    return Story(
        page.id,
        store.urls(np.array([page.id]))[0],
        visits,
        row,
        due=float(store.due(np.array([page.id]))[0]),
        repeats=after is not None and before == after,
        before=archived.read(*before) if before else None,
        after=archived.read(*after) if after else None,
        noise=NoiseEvidence.counted(store.noise(np.array([page.host]))).noise_of(page.host),
        checks=int(store.hosts(np.array([page.host])).checks[0]),
        lies=int(store.hosts(np.array([page.host])).lies[0]),
        misdated=store.misdated_visits(np.array([page.id])),
    )


def place_at(captures: Captures, when: float) -> tuple[str, int] | None:
    """Where the bytes lie that stood at a visit: of a record that repeats an earlier one, those of that one."""
    import numpy as np

    from recrawl.store.values import REVISIT

    rows = np.flatnonzero(captures.time <= when)[::-1].tolist()
    if not rows:
        return None
    repeats = captures.mime[rows[0]] == REVISIT
    for row in rows:
        original = captures.mime[row] != REVISIT and captures.warc_file[row]
        if original and (not repeats or captures.digest[row] == captures.digest[rows[0]]):
            return captures.warc_file[row], int(captures.warc_offset[row])
    return None


def _print_page(story: Story) -> None:
    import numpy as np

    from recrawl.cli.tables import print_table
    from recrawl.detect.conduct import is_believed
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
            f"Beside these {counted(len(story.misdated), 'visit')} made while the clock was wrong, dated {times}."
        )
    if masked := len(story.noise.mask_of(story.page)):
        typer.echo(f"Learned noise that is not compared on this page: {counted(masked, 'part')} (recrawl list noise).")
    if not is_believed(story.checks, story.lies):
        typer.echo(
            f"Its host is always asked for the whole page: of {counted(story.checks, 'change')} it would have hidden "
            f"{story.lies} by saying that nothing had changed."
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
                str(visits.status[row]),
                *_verdict_words(visits, row),
                f"{visits.magnitude[row]:.1%}" if visits.magnitude[row] >= 0 else "",
            )
            for row in rows.tolist()
        ],
    )


def _second(when: float) -> str:
    """A time to the second: pages that are watched closely have several visits in a minute."""
    from recrawl.cli.tables import shown_time

    return shown_time(when, "seconds")


def _verdict_words(visits: Visits, row: int) -> tuple[str, str, str]:
    from recrawl.model import ChangeKind, Outcome, Verdict

    kinds = ChangeKind(int(visits.kinds[row]))
    return (
        Outcome(int(visits.outcome[row])).name.lower().replace("_", " "),
        Verdict(int(visits.verdict[row])).name.lower(),
        ", ".join((kind.name or "").lower().replace("_", " ") for kind in kinds),
    )


def _print_visit(story: Story, told: Explanation | None) -> None:
    """The verdict on record and how it came about."""
    from recrawl.cli.tables import print_table
    from recrawl.detect.explanation import reasons

    when = _second(float(story.visits.time[story.row]))
    outcome, verdict, _ = _verdict_words(story.visits, story.row)
    typer.echo(f"The visit of {when}: {outcome}, {verdict}. {_why(story, told)}")
    if told is None:
        return
    if story.before is not None:
        typer.echo(f"It is compared with the version of {_second(story.before.time)}:")
    print_table(("", ""), reasons(told))
    _print_some([f"left out as {rule}: {_short(piece)}" for rule, piece in told.after.noise])
    _print_some([f"not compared ({one.why}): {_short(one.text)}" for one in told.after.left_out])


def _print_some(lines: list[str]) -> None:
    for line in lines[:_MOST_PIECES]:
        typer.echo(f"  {line}")
    if len(lines) > _MOST_PIECES:
        typer.echo(f"  and {len(lines) - _MOST_PIECES} more")


def _why(story: Story, told: Explanation | None) -> str:
    """One sentence on how the verdict on record came about."""
    from recrawl.cli.status_words import failure_words
    from recrawl.model import Outcome, Verdict

    outcome, verdict = int(story.visits.outcome[story.row]), int(story.visits.verdict[story.row])
    status = int(story.visits.status[story.row])
    gone, unchanged = outcome == Outcome.GONE, verdict == Verdict.UNCHANGED
    # The first that applies, in the order in which the judge asks.
    cases = (
        (outcome > Outcome.GONE, f"A failure says nothing about change: {failure_words(status)}."),
        (
            verdict == Verdict.UNKNOWN and _looked_again(story.visits, story.row),
            "It was a second look, to see what differs by itself: what it taught is in the verdict of the first.",
        ),
        (
            verdict == Verdict.UNKNOWN and story.row > 0 and _looked_again(story.visits, story.row + 1),
            "It differed in what may be noise, and the second look failed: the next visit had to tell.",
        ),
        (verdict == Verdict.UNKNOWN, "It had nothing to be compared with."),
        (outcome == Outcome.NOT_MODIFIED, "The server said so (304) and sent no bytes."),
        (gone and unchanged, "It was missing before."),
        (gone, "It was there before."),
        (story.repeats, "The bytes are those that were known before."),
        (told is None, "The archive files do not hold both versions, so the record is all there is."),
        (
            told is not None and int(told.judgement.verdict) != verdict,
            "These two versions alone would be judged otherwise: more was known then, or the rules were others.",
        ),
        (told is not None and told.same_bytes, "The bytes are the same."),
        (unchanged, "The bytes differ, but in nothing that a reader would call a change."),
        (True, "Something differs that a reader would notice."),
    )
    return next(sentence for applies, sentence in cases if applies)


def _looked_again(visits: Visits, row: int) -> bool:
    """Whether this visit was made moments after the one before, which brought a page."""
    from recrawl.detect.comparison import NEAR
    from recrawl.model import Outcome, Verdict

    return (
        0 < row < len(visits)
        and visits.outcome[row - 1] == Outcome.FETCHED
        and visits.verdict[row] == Verdict.UNKNOWN
        and bool(visits.time[row] - visits.time[row - 1] < NEAR)
    )


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
    """Long lines that became others, from shortly before the difference on: cut at their ends they would look alike."""
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
    """One line of bounded length without control characters: what a page says must not steer the terminal."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in text)
    return clean if len(clean) <= _WIDEST else clean[: _WIDEST - 1] + "…"


def as_facts(story: Story, told: Explanation | None, context: int | None) -> dict[str, object]:
    """What is told, for other programs; without the difference line by line, which may take long, for ``None``."""
    outcome, verdict, kinds = _verdict_words(story.visits, story.row)
    facts: dict[str, object] = {
        "url": story.url,
        "page": story.page,
        "visits": len(story.visits),
        "next_due": story.due,
        "time": float(story.visits.time[story.row]),
        "outcome": outcome,
        "verdict": verdict,
        "kinds": kinds.split(", ") if kinds else [],
        "why": _why(story, told),
        "host": {"checks": story.checks, "lies": story.lies},
        "misdated": story.misdated.time.tolist(),
    }
    if told is not None and story.before is not None and story.after is not None:
        facts |= {
            "before": {"time": story.before.time, "bytes": told.before.size, "mime": told.before.mime},
            "after": {"time": story.after.time, "bytes": told.after.size, "mime": told.after.mime},
            "same_bytes": told.same_bytes,
            "similarity": told.similarity,
            "noise": [{"rule": rule, "text": piece} for rule, piece in told.after.noise],
            "not_compared": [{"why": one.why, "text": one.text} for one in told.after.left_out],
            "magnitude": told.judgement.magnitude,
            "min_change": told.standards.min_change,
            "links_added": list(told.links_added),
            "links_removed": list(told.links_removed),
        }
        if context is not None:
            facts["diff"] = told.diff(context)
    return facts
