"""Updates of scholarly sites, read from a data set: new links on home pages, and anywhere near them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.dataset import OBSERVATIONS
from recrawl.model import ChangeKind, Histories, Visits

if TYPE_CHECKING:
    from recrawl.simulate.sampling import Truth

LEVELS = ("home page", "web site")


def updates(folder: Path) -> dict[str, Truth]:
    """For each level the sites as rows, and as changes the times at which a link within the site was new.

    A home page updates when it gets a link it never had; a site when one of its pages within two clicks gets a link
    that no page of the site ever had (HACS l*). Bulk edits count too: new links are new however they came. Chains
    closer than an hour are one update.

    Raises:
        InputError: the data set does not tell home pages and new links.
    """
    pq: Any = require("pyarrow.parquet", "columns")
    pages = _columns(pq, folder / "pages.parquet", ("site", "page_id", "is_home", "in_d2"))
    events = _columns(pq, folder / "events.parquet", ("site", "page_id", "t", "kind", "new_int", "site_new_int"))
    sites, site = np.unique(events["site"].astype(str), return_inverse=True)
    keys = zip(pages["site"], pages["page_id"], strict=True)
    near = dict(zip(keys, zip(pages["is_home"], pages["in_d2"], strict=True), strict=True))
    flags = np.array(
        [near.get(page, (False, False)) for page in zip(events["site"], events["page_id"], strict=True)], dtype=np.bool_
    )
    time = events["t"].astype(np.float64)
    born = np.full(len(sites), np.inf)
    np.minimum.at(born, site, time)
    died = np.full(len(sites), -np.inf)
    np.maximum.at(died, site, time)
    changed = events["kind"].astype(str) == "mod"
    new = [np.nan_to_num(events[name].astype(np.float64)) > 0 for name in ("new_int", "site_new_int")]
    found = {}
    for level, name in enumerate(LEVELS):
        happened = new[level] & flags[:, level] & (changed if level == 0 else True)
        found[name] = _truth(site[happened], time[happened], born, died)
    return found


def has_observations(folder: Path) -> bool:
    """Whether a data set tells when somebody observed its pages."""
    return (folder / f"{OBSERVATIONS}.parquet").is_file()


def captured(folder: Path, kind: ChangeKind) -> dict[str, Histories]:
    """For each level the sites as rows, and their real captures as observations of one kind of update.

    A home page is captured when it is; a site when one of its pages within two clicks of the home page is, and it
    updates when one of them does.

    Raises:
        InputError: no page was captured twice, or nobody read what this kind of update is told by.
    """
    pq: Any = require("pyarrow.parquet", "columns")
    pages = _columns(pq, folder / "pages.parquet", ("site", "page_id", "is_home", "in_d2"))
    told = _columns(
        pq,
        folder / f"{OBSERVATIONS}.parquet",
        ("site", "page_id", "t", "outcome", "verdict", "kinds", "new_int", "new_ext"),
    )
    sites = {name: number for number, name in enumerate(sorted(set(pages["site"].tolist())))}
    site = np.array([sites[name] for name in pages["site"]], np.int64)
    keys = {key: row for row, key in enumerate(zip(site.tolist(), pages["page_id"].tolist(), strict=True))}
    named = zip((sites[name] for name in told["site"]), told["page_id"].tolist(), strict=True)
    page = np.fromiter((keys[one] for one in named), np.int64, len(told["t"]))
    visits = Visits.of(
        page, told["t"], outcome=told["outcome"], verdict=told["verdict"], kinds=told["kinds"],
        new_internal=told["new_int"], new_external=told["new_ext"],
    )  # fmt: skip
    histories = Histories.from_visits(visits, kind)
    if not len(Histories.from_visits(visits).gaps):
        raise InputError("no page was captured twice", "Import more captures.", source=str(folder))
    if not len(histories.gaps):
        wanted = (kind.name or "").lower().replace("_", " ")
        remedy = "Read the bytes (recrawl import --bytes, or import the WARC files), or ask for --kind content."
        raise InputError(f"{wanted} are not known: nobody read the captures of this archive", remedy)
    found = {}
    for level, name in zip(LEVELS, ("is_home", "in_d2"), strict=True):
        some = histories.take(pages[name].astype(np.bool_)[histories.page])
        found[level] = some.group(site[some.page]).align(np.unique(site[some.page]))
    return found


def _truth(site: Any, time: Any, born: Any, died: Any) -> Truth:  # noqa: ANN401 - columns as they come
    from recrawl.simulate.sampling import Truth
    from recrawl.simulate.web_events import EventTimes
    from recrawl.time import HOUR

    later = time > born[site]
    changes = EventTimes.of(site[later], time[later], len(born))
    return Truth(born, died, changes, float(born.min()), float(died.max())).merged(HOUR)


def _columns(pq: Any, file: Path, names: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401 - pyarrow ships no types
    if not file.is_file():
        raise InputError(
            f"{file.name} is missing", "Name the folder of the scholarly data set.", source=str(file.parent)
        )
    lacking = [name for name in names if name not in pq.read_schema(file).names]
    if lacking:
        remedy = "Take the scholarly data set: home pages and new links must be told."
        raise InputError(f"{file.name} has no column {lacking[0]!r}", remedy, source=str(file))
    table = pq.read_table(file, columns=list(names))
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
