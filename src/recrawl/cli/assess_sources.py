"""Archive files read into a store of their own, which is gone when the question is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from recrawl.cli.import_errors import ImportErrors
from recrawl.cli.options import command_in, seconds_of
from recrawl.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from recrawl.cli.settings import Settings
    from recrawl.crawl.sources import Brought
    from recrawl.store.base import Store


@dataclass(frozen=True, slots=True)
class Archive:
    """What the files hold."""

    store: Store
    brought: list[Brought]
    errors: ImportErrors
    merge_within: float
    """Seconds within which downloads of a page are one visit."""
    warc: Path
    """Where archive files without a folder in their names lie."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How archive files are read: as an import into a workspace with these settings would read them."""

    settings: Settings
    merge_within: float
    """Seconds within which downloads of a page are one visit."""
    digests_only: bool = False
    list_errors: Path | None = None
    """A file for very many errors."""

    @classmethod
    def of(cls, merge_within: str, assignments: Mapping[str, object], *, digests_only: bool = False) -> Reading:
        """From options, as the user gave them; an environment variable sets what no option does.

        Raises:
            ConfigError: a setting is not known, or its value is wrong.
        """
        import os

        from recrawl.cli.configuration import configure

        settings = configure(None, os.environ, assignments).settings  # noqa: TID251 - a command may
        return cls(settings, seconds_of("--merge-within", merge_within), digests_only)


def check_files(files: list[str], verb: str = "") -> list[Path]:
    """The paths, all of which must be there, and none of them a workspace: these the ``verb``, if any, takes alone."""
    from recrawl.formats.sniff import Format, sniff

    for file in files:
        if file.startswith(("http://", "https://")):
            raise InputError(f"{file} is not a file.", "Bring it into a workspace first, with recrawl import.")
        if not Path(file).exists():
            raise InputError(f"There is no file {file}.", "Check the path.")
        if Path(file).is_dir() and sniff(Path(file)) is Format.WORKSPACE:
            remedy = f"Write: {command_in(Path(file), verb)}" if verb else "Load it alone."
            raise InputError(f"{file} is a workspace.", remedy)
    return [Path(file) for file in files]


@contextmanager
def read_archive(paths: list[Path], reading: Reading, bar: Progress) -> Iterator[Archive]:
    """A temporary store with everything these files and folders tell, judged by digest and by content.

    What is broken in a file is told and the rest goes on.

    Raises:
        InputError: nothing there is of a format that recrawl reads.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.importing import Cleaning, Importer
    from recrawl.crawl.sources import Sources, check_known
    from recrawl.store.open import open_store

    with TemporaryDirectory(prefix="recrawl-assess-") as name:
        folder, clock = Path(name), RealClock()
        with (
            ImportErrors(reading.list_errors or folder / "errors.jsonl") as errors,
            open_store(str(folder / "recrawl.db"), create=True) as store,
        ):
            taking = bar.add_task("captures", total=None)
            resources = reading.settings.archive.resources == "pages"
            cleaning = Cleaning(reading.merge_within, resources=resources)
            importer = Importer(store, clock, cleaning, lambda count: bar.advance(taking, count))
            sources = Sources(store, importer, clock, folder / "warc", on_bad=errors.tell)
            brought = [one for path in paths for one in sources.bring(path)]
            if not errors.count:  # else those are told, and say more
                check_known(brought, paths)
            judging = bar.add_task("pages judged by digest", total=len(store.unjudged()))
            importer.judge(lambda done, _all: bar.update(judging, completed=done))
            if not reading.digests_only:
                _read_bytes(store, folder / "warc", reading, bar, errors)
            yield Archive(store, brought, errors, reading.merge_within, folder / "warc")


def _read_bytes(store: Store, warc: Path, reading: Reading, bar: Progress, errors: ImportErrors) -> None:
    """Judge by content what has any."""
    from recrawl.cli.wiring import parse_limits_of
    from recrawl.crawl.archived_bytes import ArchivedBytes, imported_into
    from recrawl.crawl.judging import readers
    from recrawl.crawl.payloads import PayloadJudge

    archived = ArchivedBytes(warc, imported_into(store))
    pages = store.unread([file for file in store.unread_files() if archived.has(file)])
    task = bar.add_task("pages judged by content", total=len(pages))
    standards = reading.settings.detect.standards()
    with readers(parse_limits_of(reading.settings.detect), standards) as pool:
        judge = PayloadJudge(
            store,
            archived.read,
            reading.merge_within,
            standards,
            pool,
            errors.tell,
            learns_noise=reading.settings.detect.learn_from_archives == "yes",
        )
        judge.judge(pages, lambda done, _all: bar.update(task, completed=done))
