"""Data sets of real change histories, brought from their tables to the collections that experiments work on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import InputError

if TYPE_CHECKING:
    from recrawl.simulate.sampling import Collection


def find_datasets(folder: Path) -> list[Path]:
    """The data sets in a folder: itself, or those directly below it, by name.

    Raises:
        InputError: there is none.
    """
    from recrawl.formats.columnar.dataset import is_dataset

    places = [folder, *(sorted(folder.iterdir()) if folder.is_dir() else [])]
    found = [place for place in places if place.is_dir() and is_dataset(place)]
    if not found:
        remedy = (
            "Name a folder with events.parquet and pages.parquet (or sources.parquet), or one that holds such folders."
        )
        raise InputError("there is no data set here", remedy, source=str(folder))
    return found[:1] if found[0] == folder else found


def collections(folder: Path) -> list[Collection]:
    """The collections of one data set: its sites, in the order of the tables; those without events are left out."""
    from recrawl.formats.change_log import LoggedChange
    from recrawl.formats.columnar.dataset import read_dataset
    from recrawl.simulate.sampling import Events, collect

    return [
        collect(
            log.site,
            log.urls,
            Events(log.page, log.time, log.kind == LoggedChange.ADD, log.kind == LoggedChange.DEL, log.bulk, log.links),
        )
        for log in read_dataset(folder)
        if len(log)
    ]
