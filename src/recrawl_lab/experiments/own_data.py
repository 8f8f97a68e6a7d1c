"""The data an experiment works on: a data set, or one made of a workspace or of captures for the time it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from recrawl.errors import ConfigError, InputError

if TYPE_CHECKING:
    from recrawl.store.base import Store


@contextmanager
def experiment_data(data: Path | None, workspace: Path | None, files: Sequence[Path] = ()) -> Iterator[Path]:
    """The folder of a data set: ``data`` itself, or one with what a workspace or some files of captures tell.

    Anyone who names a workspace or files means these, also where ``data`` is set for all experiments.

    Raises:
        ConfigError: both a workspace and files are named, or nothing is.
        InputError: there is nothing in them to learn from.
    """
    if workspace is not None and files:
        raise ConfigError("A workspace and files are two archives.", "Name one of them.")
    if workspace is None and not files:
        if data is None:
            raise ConfigError("There is no data to work on.", "Name a workspace with -w, or a data set with --data.")
        yield data
        return
    from recrawl.app.progress import line
    from recrawl.app.workspace.workspace import make_workspace, open_workspace
    from recrawl.transfer.dataset_export import write_dataset

    with TemporaryDirectory(prefix="recrawl-experiment-") as scratch:
        # The folder has the name that reports call the data by.
        folder = Path(scratch) / (workspace.resolve().name if workspace is not None else files[0].name)
        with line("Reading the archive"):
            place = (
                make_workspace(Path(scratch) / ".archive", {}) if workspace is None else open_workspace(workspace, {})
            )
            with place.open_store() as store:
                if files:
                    _take(store, place.warc, files)
                write_dataset(store, folder)
        try:
            yield folder
        except InputError as error:
            if not error.source.startswith(scratch):
                raise
            # The folder is gone when this is read: what is named is the archive that it was made of.
            archive = str(workspace if workspace is not None else files[0])
            raise InputError(error.what.removeprefix(f"{error.source}: "), error.remedy, source=archive) from error


def _take(store: Store, warc: Path, files: Sequence[Path]) -> None:
    """Import files of captures, to be evaluated by their digests."""
    from recrawl.crawl.clock import RealClock
    from recrawl.transfer.archive_import import Importer
    from recrawl.transfer.import_sources import ImportSources, check_known

    importer = Importer(store, RealClock())
    sources = ImportSources(store, importer, RealClock(), warc)
    brought = [one for file in files for one in sources.bring(file)]
    check_known(brought, files)
    importer.judge()
