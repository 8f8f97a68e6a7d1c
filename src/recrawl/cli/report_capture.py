"""What a workspace stated about one of its own captures, as the first section of its report."""

from __future__ import annotations

from recrawl.cli.capture_output import report_lines
from recrawl.crawl.capture_course import course_of
from recrawl.crawl.capture_quality import report_of
from recrawl.errors import StoreError
from recrawl.show.report.section import Section
from recrawl.store.base import Store
from recrawl.store.site_values import SiteCapture


def statement_section(store: Store, capture: SiteCapture) -> Section:
    """The statement in words; of a capture that is not finished, that it is not."""
    title = f"Capture {capture.id}"  # short, for the bar that leads to all sections; its site is told below
    if not capture.is_finished:
        unfinished = f"This capture of {capture.site} is not finished; go on with it: recrawl capture --resume."
        return Section(title, "capture", [unfinished])
    try:
        course = course_of(capture, store.site_log(capture.id))
    except StoreError:  # made by another version, whose strategy went another way: what it gave up is not told
        course = None
    return Section(title, "capture", report_lines(store, report_of(store, capture, course)))
