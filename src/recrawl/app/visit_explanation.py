"""Why a visit counted as a change, or did not: the versions compared, the steps of the detector, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.detect.change_criteria import ChangeCriteria
    from recrawl.detect.explanation import Explanation
    from recrawl.detect.noise.learned_noise import HostNoise
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.model import Capture, Page, Visits
    from recrawl.parse.parse_pool import ParsePool
    from recrawl.store.base import PageTable, Store
    from recrawl.store.store_values import CaptureColumns


@dataclass(frozen=True, slots=True)
class VisitStory:
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


def compared(story: VisitStory, standards: ChangeCriteria, pool: ParsePool | None = None) -> Explanation | None:
    """The steps of the change detector over the two versions; ``None`` without two. Expensive ones run in the pool.

    Raises:
        OverBudgetError: the pool could not.
    """
    from recrawl.detect import classify_change
    from recrawl.detect.explanation import explain as steps
    from recrawl.detect.version import CostlyError, Effort

    if not (story.before and story.after) or story.repeats:
        return None
    standards = replace(standards, mask=story.noise.mask_of(story.page))
    question = story.before, story.after, standards, story.noise, story.page
    if pool is not None:
        try:
            for one in (story.before, story.after):
                classify_change(one, None, standards, Effort.CHEAP)
        except CostlyError:
            return pool.call(steps, *question)
    return steps(*question)


def page_named(store: PageTable, url: str) -> Page:
    """The page of this URL; an error if there is none."""
    from recrawl.errors import InputError
    from recrawl.fetch.access.access_methods import LocalFile

    page = store.find(LocalFile().source(url, {}).url if url.startswith("file:") else url)
    if page is None:
        raise InputError(f"{url} is not a page of this workspace.", "List all pages with recrawl list pages.")
    return page


def story_of(store: Store, archived: ArchivedBytes, page: Page, until: float, *, changed: bool) -> VisitStory:
    """Find the last visit of a page up to a time, and the two versions that were compared."""
    import numpy as np

    from recrawl.detect.noise.learned_noise import NoiseEvidence
    from recrawl.errors import InputError
    from recrawl.model import Verdict
    from recrawl.transfer.archive_noise_learning import with_archive_noise

    visits = store.visits(pages=np.array([page.id]))
    if not len(visits):
        raise InputError(
            f"{page.url} was not visited yet.", "recrawl plan shows when it is due; recrawl run visits it."
        )
    rows = np.flatnonzero((visits.time <= until) & ((visits.verdict == Verdict.CHANGED) | (not changed)))
    if not len(rows):
        what = "visit that found a change" if changed else "visit"
        raise InputError(f"There is no {what} of {page.url} before that time.", "Leave out --at or --changed.")
    row = int(rows[-1])
    captures = store.capture_columns(np.array([page.id]))
    # What was known is the version at the visit before that had an answer: failures between are passed over.
    answered = np.flatnonzero(visits.answered()[:row])
    before = place_at(captures, float(visits.time[answered[-1]])) if len(answered) else None
    after = place_at(captures, float(visits.time[row]))
    learned = NoiseEvidence.counted(store.noise(np.array([page.host]))).noise_of(page.host)
    return VisitStory(
        page.id,
        store.urls(np.array([page.id]))[0],
        visits,
        row,
        due=float(store.due(np.array([page.id]))[0]),
        repeats=after is not None and before == after,
        before=archived.read(*before) if before else None,
        after=archived.read(*after) if after else None,
        noise=with_archive_noise(store, page.host, learned),
        checks=int(store.hosts(np.array([page.host])).checks[0]),
        lies=int(store.hosts(np.array([page.host])).lies[0]),
        misdated=store.misdated_visits(np.array([page.id])),
    )


def place_at(captures: CaptureColumns, when: float) -> tuple[str, int] | None:
    """Where the bytes lie that stood at a visit: of a record that repeats an earlier one, those of that one."""
    import numpy as np

    from recrawl.store.store_values import REVISIT

    rows = np.flatnonzero(captures.time <= when)[::-1].tolist()
    if not rows:
        return None
    repeats = captures.mime[rows[0]] == REVISIT
    for row in rows:
        original = captures.mime[row] != REVISIT and captures.warc_file[row]
        if original and (not repeats or captures.digest[row] == captures.digest[rows[0]]):
            return captures.warc_file[row], int(captures.warc_offset[row])
    return None


def verdict_words(visits: Visits, row: int) -> tuple[str, str, str]:
    """Outcome, verdict and kinds of change of one visit, in words."""
    from recrawl.model import ChangeKind, Outcome, Verdict

    kinds = ChangeKind(int(visits.kinds[row]))
    return (
        Outcome(int(visits.outcome[row])).name.lower().replace("_", " "),
        Verdict(int(visits.verdict[row])).name.lower(),
        ", ".join((kind.name or "").lower().replace("_", " ") for kind in kinds),
    )


def verdict_reason(story: VisitStory, told: Explanation | None) -> str:
    """One sentence on how the verdict on record came about."""
    from recrawl.app.status import failure_words
    from recrawl.model import Outcome, Verdict

    outcome, verdict = int(story.visits.outcome[story.row]), int(story.visits.verdict[story.row])
    status = int(story.visits.status[story.row])
    gone, unchanged = outcome == Outcome.GONE, verdict == Verdict.UNCHANGED
    # The first that applies, in the order of the change detector.
    cases = (
        (outcome > Outcome.GONE, f"A failed visit is not evidence of a change: {failure_words(status)}."),
        (
            verdict == Verdict.UNKNOWN and was_confirmation(story.visits, story.row),
            "This was a confirmation fetch; its result is part of the verdict of the first fetch.",
        ),
        (
            verdict == Verdict.UNKNOWN and story.row > 0 and was_confirmation(story.visits, story.row + 1),
            "The difference may be noise, and the confirmation fetch failed: the next visit decides.",
        ),
        (verdict == Verdict.UNKNOWN, "There was no earlier version to compare with."),
        (outcome == Outcome.NOT_MODIFIED, "The server returned a 304 without a body."),
        (gone and unchanged, "The page was missing before."),
        (gone, "The page existed before."),
        (story.repeats, "The bytes equal the known version."),
        (told is None, "The archive files do not hold both versions, so only the recorded verdict is known."),
        (
            told is not None and int(told.judgement.verdict) != verdict,
            "These two versions alone would give another verdict: versions or settings differed then.",
        ),
        (told is not None and told.same_bytes, "The bytes are the same."),
        (unchanged, "The bytes differ, but not in visible content."),
        (True, "The visible content differs."),
    )
    return next(sentence for applies, sentence in cases if applies)


def was_confirmation(visits: Visits, row: int) -> bool:
    """Whether this visit was made moments after the one before, which brought a page."""
    from recrawl.detect.comparison import NEAR
    from recrawl.model import Outcome, Verdict

    return (
        0 < row < len(visits)
        and visits.outcome[row - 1] == Outcome.FETCHED
        and visits.verdict[row] == Verdict.UNKNOWN
        and bool(visits.time[row] - visits.time[row - 1] < NEAR)
    )


def as_facts(story: VisitStory, told: Explanation | None, context: int | None) -> dict[str, object]:
    """The explanation as JSON values; without the slow line-by-line difference for ``None``."""
    outcome, verdict, kinds = verdict_words(story.visits, story.row)
    facts: dict[str, object] = {
        "url": story.url,
        "page": story.page,
        "visits": len(story.visits),
        "next_due": story.due,
        "time": float(story.visits.time[story.row]),
        "outcome": outcome,
        "verdict": verdict,
        "kinds": kinds.split(", ") if kinds else [],
        "why": verdict_reason(story, told),
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
