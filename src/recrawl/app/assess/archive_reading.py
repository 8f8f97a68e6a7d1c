"""Archive files read into a temporary store, and the errors of reading.

The first few errors are kept in memory. All are counted, and written to a file if they are many.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self, TextIO

from recrawl.app.display import command_in, seconds_of
from recrawl.app.progress import bars
from recrawl.errors import ConfigError, DiskFullError, InputError, RecrawlError

if TYPE_CHECKING:
    from types import TracebackType

    from recrawl.app.progress import ProgressBars
    from recrawl.app.workspace.settings import Settings
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.formats.warc.archive_folder import ArchiveFolder
    from recrawl.model import IntArray
    from recrawl.store.base import Store
    from recrawl.transfer.import_sources import SourceResult


KEPT = 20
"""Errors that are shown. An archive can have millions."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ImportErrors:
    """Takes errors as they come. More than can be shown go to a file, a JSON object a line."""

    def __init__(self, file: Path) -> None:
        self.count = 0
        self.first: list[InputError] = []
        self.file: Path | None = None
        """Where all of them are, if there are more than shown."""
        self._path = file
        self._stream: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        try:
            self._stream.close()
        except OSError as problem:
            if error is None:  # else this or a worse error is already reported
                raise self._explained(problem) from problem

    def tell(self, error: InputError) -> None:
        """Note one error. O(1) memory after the first few.

        Raises:
            DiskFullError: the disk has no space for the file.
        """
        self.count += 1
        if self.count <= KEPT:
            self.first.append(error)
            return
        try:
            if self._stream is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self._path.open("w", encoding="utf-8", errors="backslashreplace")
                self.file = self._path
                for earlier in self.first:
                    self._write(earlier)
            self._write(error)
        except OSError as problem:
            raise self._explained(problem) from problem

    def stopped_by(self, error: InputError) -> None:
        """Record the error that ended the import, unless it is already reported."""
        if error not in self.first:
            self.count += 1
            self.first.append(error)

    def _explained(self, problem: OSError) -> RecrawlError:
        if problem.errno in _FULL:
            return DiskFullError(f"{self._path}: the disk is full.", "Free some space and import again.")
        return InputError(
            f"the list of errors cannot be written ({problem.strerror})", "Check the folder.", source=str(self._path)
        )

    def _write(self, error: InputError) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(row_of(error)) + "\n")


def row_of(error: InputError) -> dict[str, object]:
    """An error as data: which file, where in it, and what is wrong.

    >>> row_of(InputError("the line is cut off", source="a.cdx", position=7))
    {'source': 'a.cdx', 'position': 7, 'error': 'a.cdx at byte 7: the line is cut off'}
    """
    return {"source": error.source, "position": error.position, "error": str(error)}


@dataclass(frozen=True, slots=True)
class TemporaryArchive:
    """What the files hold."""

    store: Store
    brought: list[SourceResult]
    errors: ImportErrors
    merge_within: float
    """Seconds within which downloads of a page are one visit."""
    warc: Path
    """Where archive files without a folder in their names lie."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How archive files are read: as an import into a workspace with these settings would read them."""

    settings: Settings
    merge_within: float
    """Seconds within which downloads of a page are one visit; 0 merges nothing."""
    digests_only: bool = False
    list_errors: Path | None = None
    """A file for very many errors."""

    @classmethod
    def of(cls, merge_within: str, assignments: Mapping[str, object], *, digests_only: bool = False) -> ReadOptions:
        """From options, as the user gave them; an environment variable sets what no option does.

        Raises:
            ConfigError: a setting is not known, or its value is wrong.
        """
        import os

        from recrawl.app.workspace.configuration import configure

        settings = configure(None, os.environ, assignments).settings  # noqa: TID251 - a command may
        return cls(settings, seconds_of("--merge-within", merge_within), digests_only)


def check_merge_needs_files(merge_within: str | None) -> None:
    """Check that ``--merge-within`` is not given for a workspace.

    Raises:
        ConfigError: it is.
    """
    if merge_within is not None:
        raise ConfigError(
            "--merge-within needs files. In a workspace, downloads were merged when they were imported.",
            "Import the files again: recrawl import FILES --merge-within DURATION.",
        )


def check_files(files: list[str], command: str = "") -> list[Path]:
    """The paths, which must exist; a workspace is an error that names ``command``, the command for it."""
    from recrawl.formats.sniff import SourceFormat, sniff

    for file in files:
        if file.startswith(("http://", "https://")):
            raise InputError(f"{file} is not a file.", "Import it into a workspace first, with recrawl import.")
        if not Path(file).exists():
            raise InputError(f"There is no file {file}.", "Check the path.")
        if Path(file).is_dir() and sniff(Path(file)) is SourceFormat.WORKSPACE:
            remedy = f"Write: {command_in(Path(file), command)}" if command else "Load it alone."
            raise InputError(f"{file} is a workspace.", remedy)
    return [Path(file) for file in files]


@contextmanager
def read_archive(paths: list[Path], reading: ReadOptions, bar: ProgressBars) -> Iterator[TemporaryArchive]:
    """A temporary store with all captures in these files and folders, compared by digest and by content.

    Broken records are reported, and the rest is read.

    Raises:
        InputError: nothing there is of a format that recrawl reads.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.store.open import open_store
    from recrawl.transfer.archive_import import CleaningRules, Importer
    from recrawl.transfer.import_sources import ImportSources, check_known

    with TemporaryDirectory(prefix="recrawl-assess-") as name:
        folder, clock = Path(name), RealClock()
        with (
            ImportErrors(reading.list_errors or folder / "errors.jsonl") as errors,
            open_store(str(folder / "recrawl.db"), create=True) as store,
        ):
            taking = bar.add_task("captures", total=None)
            resources = reading.settings.archive.resources == "pages"
            cleaning = CleaningRules(reading.merge_within, resources=resources)
            importer = Importer(store, clock, cleaning, lambda count: bar.advance(taking, count))
            sources = ImportSources(store, importer, clock, folder / "warc", on_bad=errors.tell)
            brought = [one for path in paths for one in sources.bring(path)]
            if not errors.count:  # else these are reported, with more detail
                check_known(brought, paths)
            classifier = bar.add_task("pages compared by digest", total=len(store.unjudged()))
            importer.judge(lambda done, _all: bar.update(classifier, completed=done))
            if not reading.digests_only:
                _read_bytes(store, folder / "warc", reading.settings, reading.merge_within, bar, errors)
            yield TemporaryArchive(store, brought, errors, reading.merge_within, folder / "warc")


@contextmanager
def workspace_store(place: Workspace, bar: ProgressBars) -> Iterator[Store]:
    """The store of a workspace, classified by the settings of the command line.

    Visits were classified when they were made or imported. If the command line has other settings (``detect.…``,
    ``archive.resources``), a temporary copy of the store is classified again from the available bytes. The same
    captures are visits: how many downloads are one visit was decided by each import.

    Raises:
        ConfigError: the store is in PostgreSQL, of which there is no copy.
    """
    import numpy as np

    from recrawl.store.open import open_store, sqlite_path
    from recrawl.store.store_copy import copy_sqlite

    given = [name for name, origin in place.configuration.origins.items() if origin.kind == "flag"]
    judged = [name for name in given if name.startswith("detect.")]
    if not judged and "archive.resources" not in given:
        with place.open_store() as store:
            yield store
        return
    file = sqlite_path(place.store)
    if file is None:
        raise ConfigError(
            "Captures in a PostgreSQL store cannot be compared with other settings for one result.",
            "Import the archives again: recrawl import FILES --reimport, with the same --set.",
        )
    with TemporaryDirectory(prefix="recrawl-assess-") as name:
        folder = Path(name)
        copy_sqlite(file, folder / "recrawl.db", lambda *_: None)
        with (
            open_store(str(folder / "recrawl.db")) as store,
            ImportErrors(folder / "errors.jsonl") as errors,
        ):
            if place.configuration.settings.archive.resources == "pages":
                resources = store.resources()
                store.set_resources(resources, np.zeros(len(resources), np.bool_))
            if judged:
                known = store.pages().id
                captured = known[store.capture_counts(known) > 0]
                _read_bytes(store, place.archive, place.configuration.settings, None, bar, errors, captured)
            yield store


def classify_all_parts(place: Workspace, store: Store, host: int) -> int:
    """Classify the captures of a host again without its learned noise; returns the number of recorded visits."""
    from dataclasses import replace

    settings = place.configuration.settings
    off = replace(settings, detect=replace(settings.detect, learn_from_archives="no"))
    known = store.pages()
    mine = known.id[known.host == host]
    captured = mine[store.capture_counts(mine) > 0]
    with bars() as bar, ImportErrors(place.reports / "noise-reset-errors.jsonl") as errors:
        return _read_bytes(store, place.archive, off, None, bar, errors, captured)


def _read_bytes(  # noqa: PLR0913, PLR0917 - what is read, where from, how, and the progress callback
    store: Store,
    warc: Path | ArchiveFolder,
    settings: Settings,
    merge_within: float | None,
    bar: ProgressBars,
    errors: ImportErrors,
    pages: IntArray | None = None,
) -> int:
    """Compare these pages, or all that wait, by content if they have any. Returns the number of recorded visits.

    With ``merge_within`` ``None``, captures are visits if they are visits in the store.
    """
    from recrawl.app.workspace.workspace_wiring import detector_named
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.parse.parse_pool import new_parse_pool
    from recrawl.transfer.payload_classifier import PayloadClassifier

    archived = ArchivedBytes.of(warc, store)
    if pages is None:
        pages = store.unread([file for file in store.unread_files() if archived.has(file)])
    task = bar.add_task("pages compared by content", total=len(pages))
    standards = settings.detect.standards()
    with new_parse_pool(settings.detect.parse_limits(), standards) as pool:
        payloads = PayloadClassifier(
            store,
            archived.read,
            merge_within,
            standards,
            pool,
            errors.tell,
            learns_noise=settings.detect.learn_from_archives == "yes",
            detector=detector_named(settings.detect.detector),
        )
        return payloads.judge(pages, lambda done, _all: bar.update(task, completed=done))
