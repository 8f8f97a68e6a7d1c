"""Captures and claims in a store over any database that speaks our statements: each call as one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.store import archives, recording
from recrawl.store.database import Database
from recrawl.store.values import CaptureRecord, Captures, Claims, ImportMark, MementoState


class SqlArchives:
    """See :class:`recrawl.store.base_archives.Archives` for what each call promises."""

    _database: Database

    def captures(self, pages: IntArray) -> list[CaptureRecord]:
        """Where the captures of these pages lie."""
        return self._database.read(lambda session: recording.captures_of(session, pages))

    def add_captures(
        self, captures: Captures, mark: ImportMark | None = None, *, located: bool = False, anew: bool = False
    ) -> tuple[int, int]:
        """Note captures made elsewhere, and how far their source was read."""
        return self._database.write(
            lambda session: archives.add_captures(session, captures, mark, located=located, anew=anew)
        )

    def capture_columns(self, pages: IntArray) -> Captures:
        """Captures of these pages, by page and time."""
        return self._database.read(lambda session: archives.capture_columns(session, pages))

    def captures_of_page(self, page: int, *, after: float, limit: int) -> Captures:
        """The first captures of a page after a time."""
        return self._database.read(lambda session: archives.captures_of_page(session, page, after, limit))

    def capture_counts(self, pages: IntArray) -> IntArray:
        """How many captures each page has."""
        return self._database.read(lambda session: archives.capture_counts(session, pages))

    def capture_offsets(self, file: str) -> IntArray:
        """Where the captures in an archive file begin."""
        return self._database.read(lambda session: recording.capture_offsets(session, file))

    def unjudged(self) -> IntArray:
        """Pages whose captures wait for judgement."""
        return self._database.read(lambda session: archives.waiting(session, session.statements.unjudged))

    def set_judged(self, pages: IntArray) -> None:
        """The captures of these pages have been judged."""
        self._database.write(lambda session: archives.wait_no_more(session, session.statements.drop_unjudged, pages))

    def unread(self, files: Sequence[str] | None = None) -> IntArray:
        """Pages whose archived bytes wait to be read."""
        if files is not None:
            return self._database.read(lambda session: archives.unread_in(session, files))
        return self._database.read(lambda session: archives.waiting(session, session.statements.unread))

    def unread_files(self) -> list[str]:
        """Archive files with captures of unread pages."""
        return [file for (file,) in self._database.read(lambda session: session.rows(session.statements.unread_files))]

    def set_read(self, pages: IntArray) -> None:
        """The archived bytes of these pages have been read."""
        self._database.write(lambda session: archives.wait_no_more(session, session.statements.drop_unread, pages))

    def add_mementos(self, page: IntArray, time: FloatArray, question: int, uri: Sequence[str]) -> None:
        """Let captures wait for their bytes."""
        self._database.write(lambda session: archives.add_mementos(session, page, time, question, uri))

    def mementos(self, question: int, state: MementoState) -> tuple[IntArray, FloatArray]:
        """The captures of a question in a state."""
        return self._database.read(lambda session: archives.mementos(session, question, state))

    def memento_uri(self, page: int, time: float) -> str:
        """Where the bytes of a capture are given."""
        rows = self._database.read(lambda session: session.rows(session.statements.memento_uri, page, time))
        return str(rows[0][0]) if rows else ""

    def set_mementos(self, page: IntArray, time: FloatArray, state: MementoState) -> None:
        """What became of captures that waited."""
        self._database.write(lambda session: archives.set_mementos(session, page, time, state))

    def memento_counts(self, question: int) -> dict[MementoState, int]:
        """How many captures of a question are in each state."""
        rows = self._database.read(lambda session: session.rows(session.statements.memento_counts, question))
        return {MementoState(state): int(count) for state, count in rows}

    def retry_mementos(self, question: int) -> None:
        """What an archive did not give waits once more."""
        self._database.write(lambda session: session.run(session.statements.retry_mementos, question))

    def resources(self, pages: IntArray | None = None) -> IntArray:
        """Imported pages that are not to come back to."""
        return self._database.read(lambda session: archives.resources(session, pages))

    def set_resources(self, pages: IntArray, are: BoolArray) -> None:
        """Note which pages are resources."""
        self._database.write(lambda session: archives.set_resources(session, pages, are))

    def add_claims(self, claims: Claims, mark: ImportMark | None = None) -> int:
        """Note what sites say about their changes."""
        return self._database.write(lambda session: archives.add_claims(session, claims, mark))

    def claims(self, pages: IntArray) -> Claims:
        """What was said about these pages."""
        return self._database.read(lambda session: archives.claims_of(session, pages))

    def set_import_mark(self, mark: ImportMark) -> None:
        """Note how far a source was read."""
        self._database.write(lambda session: archives.set_mark(session, mark))

    def import_mark(self, source: str) -> ImportMark | None:
        """How far a source was read."""
        return self._database.read(lambda session: archives.mark_of(session, source))

    def import_sources(self) -> list[str]:
        """Everything that was ever read, sorted."""
        return self._database.read(lambda session: sorted(one for (one,) in session.rows(session.statements.sources)))
