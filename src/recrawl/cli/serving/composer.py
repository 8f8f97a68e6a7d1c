"""What archived pages are shown with, from the archive files of a workspace."""

from __future__ import annotations

from recrawl.assess.composite import ChoiceRule, CoherenceState
from recrawl.crawl.archived_bytes import ArchivedBytes
from recrawl.crawl.composites import CapturedPage, CompositeReader, embeds_apart
from recrawl.crawl.parse_pool import ParsePool
from recrawl.detect.body import decoded, media_type, text_of
from recrawl.detect.embedded import MOST_CSS
from recrawl.errors import InputError
from recrawl.model import Capture
from recrawl.show.timetravel.captures import Kept, kept_of
from recrawl.show.timetravel.composite import ShownComposite, ShownPart
from recrawl.store.base import Store


class WorkspaceComposer:
    """See :class:`recrawl.show.timetravel.composite.Composer`. May be asked by several threads at once."""

    def __init__(self, archived: ArchivedBytes, pool: ParsePool | None = None) -> None:
        """``pool`` reads pages that are costly to read; without one they are read here."""
        self._archived = archived
        self._pool = pool

    def page(self, store: Store, kept: Kept, capture: Capture, rule: ChoiceRule, most: int) -> ShownComposite | None:
        """A page with at most so many of its parts."""
        told = embeds_apart(capture, self._pool)
        if told is None:
            return None
        left_out = max(0, len(told.embeds) - most)
        some = told._replace(embeds=told.embeds[:most], cut=told.cut or left_out > 0)
        root = CapturedPage(kept.page, kept.url, kept.time, kept.file, kept.offset)
        found, shown = self._reader(store).shown(root, some, rule, most)
        parts = tuple(
            ShownPart(one.url, one.state, None if one.capture is None else kept_of(one.capture, 0, one.url))
            for one in shown
        )
        damage = float(found.damage()[0])
        whole = not bool(found.cut[0])
        return ShownComposite(parts, len(parts) + left_out, whole, damage if damage == damage and whole else None)  # noqa: PLR0124 - NaN

    def part(self, store: Store, url: str, at: float) -> tuple[Kept, CoherenceState] | None:
        """The copy of one resource that goes best with a page captured at a time."""
        found = self._reader(store).copy_of(url, at)
        return None if found is None else (kept_of(found[1], 0, url), found[0])

    def style_sheet(self, capture: Capture) -> str | None:
        """The text of a style sheet."""
        if media_type(capture) != "text/css":
            return None
        try:
            return text_of(decoded(capture, MOST_CSS), capture.header("content-type"))
        except InputError:
            return None

    def _reader(self, store: Store) -> CompositeReader:
        return CompositeReader(store, self._archived.read, self._archived.has, self._pool)
