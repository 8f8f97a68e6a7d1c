"""The end of the demo: one of its sites is captured whole, and the truth is told about what the capture claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.errors import ExitCode
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.site_capture.capture_course import CaptureReport
    from recrawl.model import BoolArray, IntArray
    from recrawl.simulate.virtual_web import VirtualWeb
    from recrawl.store.base import Store
    from recrawl_testweb.virtual_trial import TrialAftermath

SITE = "news"
LATER = 1 * DAY
"""Seconds between the end of the crawl and the capture: nobody looks, and new pages appear."""
LASTS = 1 * DAY
"""Seconds that the capture takes or so: a site that changes meanwhile shows what the order of visits is good for."""
GOES_ON = 4 * DAY
"""Seconds for which the web goes on after the crawl, with time to spare."""
PAGES_A_NEW_ONE = 5
"""Pages of the site for each that appears."""


@dataclass(frozen=True, slots=True)
class DemoCapture:
    """What came of the capture, and what was so."""

    report: CaptureReport
    new: int
    """Pages captured that nobody had seen before."""
    predicted: int
    """Those of them whose place in the order is owed to the model: nothing but their URLs was known."""
    claimed: int
    """Pages of the web that the capture says were the same from visit to revisit."""
    held: int
    """Those of them that really were."""


async def capture_site(place: Workspace, store: Store, after: TrialAftermath, seed: int) -> DemoCapture:
    """Let a day pass, capture a site as ``recrawl capture`` does, and ask the test web what was so."""
    import numpy as np
    import typer

    from recrawl.app.site_capture import carry_out, rates_of
    from recrawl.cli.operate.run_display import interruptible
    from recrawl.crawl.site_capture.capture_order import CaptureOrder
    from recrawl.crawl.site_capture.capture_terms import DEFAULT_STRATEGY

    web = _going_on(after.living.truth().web, seed)
    after.living.go_on(web)
    after.clock.advance_to(after.clock.now() + LATER)
    site = _site(web)
    order = CaptureOrder(
        site=after.living.seeds()[site],
        strategy=DEFAULT_STRATEGY,
        delay=LASTS / (2 * np.count_nonzero(web.host == site)),
    )
    started = after.clock.now()
    report = await carry_out(
        place, store, order, None, lambda _: None, stopping=interruptible, clock=after.clock, settings=after.crawl
    )
    if report is None:
        raise typer.Exit(ExitCode.INTERRUPTED)
    said = report.quality
    captured = np.concatenate([said.coherent, said.changed, said.missing, said.unknown])
    new = captured[~np.isin(captured, store.histories(until=started).page)]
    held = stayed(web, after.living.urls(), store, report)
    return DemoCapture(
        report,
        new=len(new),
        predicted=int(rates_of(place, store, order, started).predicted(new).sum()),
        claimed=len(held),
        held=int(held.sum()),
    )


def stayed(web: VirtualWeb, urls: list[str], store: Store, report: CaptureReport) -> BoolArray:
    """Of the pages that a capture says were unchanged and that are pages of the web: which really were.

    ``urls`` are those of the web's pages. An old address that only leads to a page is none of them.
    """
    import numpy as np

    from recrawl.urls import surt

    log = store.site_log(report.capture.id)
    first, last = np.full((2, len(log.found)), np.nan)
    for step in log.steps:
        last[step.number] = step.time
        if not step.revisit:
            first[step.number] = step.time
    numbers = {surt(url): number for number, url in enumerate(urls)}
    there: IntArray = np.array([numbers.get(surt(url), -1) for url in store.urls(log.found.page)], np.int64)
    asked = np.flatnonzero(np.isin(log.found.page, report.quality.coherent) & (there >= 0))
    page, begin, end = there[asked], first[asked], last[asked]
    same = web.version(page, begin) == web.version(page, end)
    return np.asarray(same & web.alive(page, begin) & web.alive(page, end))


def capture_words(result: DemoCapture) -> list[str]:
    """What came out, in two sentences."""
    from recrawl.errors import counted
    from recrawl.time import format_duration

    capture, said = result.report.capture, result.report.quality
    by = (
        "by the change rates that the model predicts"
        if result.predicted
        else "by the change rates of neighbouring pages"
    )
    ranked = result.predicted or result.new
    blur = said.predicted_blur if said.achieved_blur is None else said.achieved_blur
    lasted, pause = format_duration(capture.finished - capture.started), format_duration(capture.delay)
    share = len(said.coherent) / max(said.pages, 1)
    how = (
        f"A day later the site {SITE} was captured in {lasted}, with one request every {pause}: "
        f"{counted(said.pages, 'page')}, {ranked:,} of them new and ordered {by}."
    )
    quality = (
        f"{counted(len(said.coherent), 'page')} ({share:.0%}) are coherent, that is unchanged from visit to revisit; "
        f"blur {blur.average:.2g} changes per page. True for {result.held:,} of {result.claimed:,} pages."
    )
    return [how, quality]


def _site(web: VirtualWeb) -> int:
    """The number of the host that is captured."""
    return [name.partition(".")[0] for name in web.hosts].index(SITE)


def _going_on(web: VirtualWeb, seed: int) -> VirtualWeb:
    """The web of the demo some days longer; on the site, pages appear before it is captured."""
    import numpy as np

    from recrawl.simulate.sites import HOST_LAWS
    from recrawl_testweb.extend_web import prolonged, with_new_pages

    rng, site = np.random.default_rng([seed, 1]), _site(web)
    new = -(-np.count_nonzero(web.host == site) // PAGES_A_NEW_ONE)
    born = np.sort(rng.uniform(web.end, web.end + LATER, new))
    longer = prolonged(web, web.end + GOES_ON, list(HOST_LAWS.values()), rng)
    return with_new_pages(longer, born, host=site, law=HOST_LAWS[SITE], rng=rng)
