"""Pages as one unit sends them to another: their address, and whatever the sender has learned of them.

A page moves with its importance, due time, visits, claims, validators, fingerprint and access method; a host with its
pause, delay and counts, and the evidence on its noise. Beliefs follow from the visits. Captures stay in the archive
files of the unit that made them, and so do links: the first visit at the new unit reads them again.

To take a page twice changes nothing: what is there already is not added again. So a sender may send again, and a
receiver may take again, whatever was interrupted.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from recrawl.model import IntArray, NoiseCounts, Validators, Visits
from recrawl.store.base import Store
from recrawl.store.store_values import ClaimColumns, LearnedFacts, ValidatorCounts
from recrawl.urls import address, bucket_of

_VISIT_COLUMNS = tuple(column.name for column in fields(Visits) if column.name != "page")
_CLAIM_COLUMNS = tuple(column.name for column in fields(ClaimColumns) if column.name != "page")
_NOISE_COLUMNS = tuple(column.name for column in fields(NoiseCounts) if column.name not in {"host", "page"})


class PackedRows(NamedTuple):
    """What to send."""

    buckets: IntArray
    contents: list[bytes]


def packed(store: Store, pages: IntArray) -> PackedRows:
    """Distinct pages, then their hosts, as rows for the units that own their buckets. O(pages and their visits)."""
    found = store.pages(pages)
    names = dict(zip(*_named_hosts(store, found.host), strict=True))
    bucket = {number: bucket_of(name) for number, name in names.items()}
    rows = [*_page_rows(store, found.id)]
    buckets = [bucket[host] for host in found.host.tolist()]
    for host, row in _host_rows(store, np.unique(found.host)):
        rows.append(row)
        buckets.append(bucket[host])
    return PackedRows(np.array(buckets, np.int64), [zlib.compress(json.dumps(row).encode(), 1) for row in rows])


def retire(store: Store, pages: IntArray) -> None:
    """Let pages that were sent rest here: they are link targets from now on, and their history stays as it was."""
    hosts = np.unique(store.pages(pages).host)
    store.drop_noise(hosts)
    store.set_importance(pages, np.zeros(len(pages)))


def take(store: Store, contents: Sequence[bytes]) -> int:
    """Add pages that other units sent; return how many were not scheduled here before."""
    rows: list[dict[str, Any]] = [json.loads(zlib.decompress(content)) for content in contents]
    added = _take_pages(store, [row for row in rows if "url" in row])
    for row in rows:
        if "host" in row:
            _take_host(store, row)
    return added


def _named_hosts(store: Store, hosts: IntArray) -> tuple[list[int], list[str]]:
    known = store.hosts(np.unique(hosts))
    return known.id.tolist(), known.name


def _page_rows(store: Store, pages: IntArray) -> list[dict[str, Any]]:
    found, visits, claims = store.pages(pages), store.visits(pages=pages), store.claims(pages)
    sources = store.sources(pages)
    visit_rows, claim_rows = (_rows_of(pages, column) for column in (visits.page, claims.page))
    said = zip(
        pages.tolist(),
        store.urls(pages),
        found.importance.tolist(),
        found.discovered.tolist(),
        store.due(pages).tolist(),
        store.validators(pages),
        store.fingerprints(pages),
        strict=True,
    )
    rows = []
    for page, url, importance, discovered, due, validators, fingerprint in said:
        row: dict[str, Any] = {"url": url, "importance": importance, "discovered": discovered}
        if len(mine := visit_rows[page]):
            row |= {
                "due": due,
                "visits": {name: getattr(visits, name)[mine].tolist() for name in _VISIT_COLUMNS},
                "validators": _validators_row(validators),
                "fingerprint": base64.b64encode(fingerprint).decode(),
            }
        if len(mine := claim_rows[page]):
            some = claims.take(mine)
            row["claims"] = {name: _listed(getattr(some, name)) for name in _CLAIM_COLUMNS}
        if page in sources:
            row["source"] = sources[page]
        rows.append(row)
    return rows


def _host_rows(store: Store, hosts: IntArray) -> list[tuple[int, dict[str, Any]]]:
    known, noise = store.hosts(hosts), store.noise(hosts)
    rows = []
    for place, host in enumerate(known.id.tolist()):
        mine = np.flatnonzero(noise.host == host)
        on = np.unique(noise.page[mine][noise.page[mine] > 0])
        url_of = dict(zip(on.tolist(), store.urls(on), strict=True))
        row: dict[str, Any] = {
            "host": known.name[place],
            "ready_at": float(known.ready_at[place]),
            "delay": float(known.delay[place]),
            "paused": bool(known.paused[place]),
            "counts": [int(column[place]) for column in (known.checks, known.lies, known.restless)],
        }
        if len(mine):
            row["noise"] = {name: getattr(noise, name)[mine].tolist() for name in _NOISE_COLUMNS}
            row["noise_on"] = [url_of.get(page, "") for page in noise.page[mine].tolist()]
        rows.append((host, row))
    return rows


def _take_pages(store: Store, rows: list[dict[str, Any]]) -> int:
    if not rows:
        return 0
    rows.sort(key=lambda row: "visits" in row)  # a page may be there twice: what is known of it counts
    rows = list({key: row for row in rows if (key := _key(row["url"]))}.values())
    discovered = np.array([row["discovered"] for row in rows])
    ids = store.discover([row["url"] for row in rows], discovered, importance=0.0)
    by_id = dict(zip(ids.tolist(), rows, strict=True))
    known = store.pages(np.sort(ids))
    before = dict(zip(known.id.tolist(), known.importance.tolist(), strict=True))
    _take_visits(store, by_id)
    _take_claims(store, by_id)
    for page, row in by_id.items():
        if "source" in row:
            store.set_source(np.array([page]), *row["source"])
    new = np.array([page for page, row in by_id.items() if before[page] <= 0 < row["importance"]], np.int64)
    if len(new):
        # The due time first: a page without one is due at once when it becomes important.
        timed = np.array([page for page in new.tolist() if np.isfinite(by_id[page].get("due", np.inf))], np.int64)
        if len(timed):
            store.reschedule(timed, np.array([by_id[page]["due"] for page in timed.tolist()]))
        store.set_importance(new, np.array([by_id[page]["importance"] for page in new.tolist()]))
    return len(new)


def _take_visits(store: Store, by_id: dict[int, dict[str, Any]]) -> None:
    """Record visits that are not there yet; where they are the latest of a page, so is its last version."""
    pages = np.array(sorted(page for page, row in by_id.items() if "visits" in row), np.int64)
    if not len(pages):
        return
    there = store.visits(pages=pages)
    known = set(zip(there.page.tolist(), there.time.tolist(), strict=True))
    last = dict.fromkeys(pages.tolist(), -np.inf)
    for page, time in known:
        last[page] = max(last[page], time)
    parts, validators, fingerprints = [], list[Validators | None](), list[bytes]()
    for page in pages.tolist():
        row = by_id[page]
        visits = _visits_of(page, row["visits"])
        new = visits.take(np.array([(page, time) not in known for time in visits.time.tolist()], np.bool_))
        latest = len(new) > 0 and float(new.time.max()) > last[page]
        version = _validators_of(row["validators"]) if latest else None
        parts.append(new)
        validators += [version] * len(new)
        fingerprints += [base64.b64decode(row["fingerprint"]) if latest else b""] * len(new)
    every = Visits.concatenate(parts)
    if len(every):
        store.record(every, validators=validators, learned_facts=LearnedFacts(fingerprints))


def _take_claims(store: Store, by_id: dict[int, dict[str, Any]]) -> None:
    for page, row in by_id.items():
        if claims := row.get("claims"):
            store.add_claims(
                ClaimColumns(
                    np.full(len(claims["time"]), page, np.int64),
                    np.array(claims["time"], np.float64),
                    list(claims["source"]),
                    np.array(claims["lastmod"], np.float64),
                    np.array(claims["changefreq"], np.int64),
                    np.array(claims["priority"], np.float64),
                )
            )


def _take_host(store: Store, row: dict[str, Any]) -> None:
    """Set what the sender knew of a host; counts and evidence only where there are none, since they add up."""
    host = store.find_host(row["host"])
    if host is None:
        return
    ids = np.array([host], np.int64)
    known = store.hosts(ids)
    store.set_host(ids, ready_at=np.maximum(known.ready_at, row["ready_at"]), delay=np.array([row["delay"]]))
    if row["paused"] != bool(known.paused[0]):
        (store.pause if row["paused"] else store.resume)(ids)
    trust = noise = None
    if any(row["counts"]) and not (known.checks[0] or known.lies[0] or known.restless[0]):
        trust = ValidatorCounts(ids, *(np.array([count], np.int64) for count in row["counts"]))
    if "noise" in row and not len(store.noise(ids)):
        on = [url for url in dict.fromkeys(row["noise_on"]) if url]
        page_of = dict(zip(on, store.discover(on, known.ready_at[0], importance=0.0).tolist(), strict=True))
        columns = {name: np.array(row["noise"][name], np.int64) for name in _NOISE_COLUMNS}
        page = np.array([page_of.get(url, 0) for url in row["noise_on"]], np.int64)
        noise = NoiseCounts(np.full(len(page), host, np.int64), page, **columns)
    if trust is not None or noise is not None:
        store.record(Visits.concatenate([]), learned_facts=LearnedFacts((), noise, trust))


def _rows_of(pages: IntArray, column: IntArray) -> dict[int, IntArray]:
    """The rows of each page in a column that is sorted by page."""
    first, last = (np.searchsorted(column, pages, side=side) for side in ("left", "right"))
    return {
        page: np.arange(low, high)
        for page, low, high in zip(pages.tolist(), first.tolist(), last.tolist(), strict=True)
    }


def _visits_of(page: int, columns: dict[str, list[Any]]) -> Visits:
    given = {name: columns[name] for name in _VISIT_COLUMNS if name != "time"}
    return Visits.of(np.full(len(columns["time"]), page), np.array(columns["time"]), **given)


def _validators_row(validators: Validators) -> dict[str, Any]:
    """Without the time at which links were read: they stay behind."""
    digests = (base64.b64encode(digest).decode() for digest in (validators.digest, validators.text_digest))
    return {
        "texts": (validators.etag, validators.last_modified, validators.mime),
        "digests": tuple(digests),
        "gone": validators.gone,
    }


def _validators_of(row: dict[str, Any]) -> Validators:
    (etag, last_modified, mime), (digest, text_digest) = row["texts"], map(base64.b64decode, row["digests"])
    return Validators(etag, last_modified, digest, text_digest, mime, row["gone"])


def _listed(column: Any) -> list[Any]:  # noqa: ANN401 - an array or a list
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _key(url: str) -> str:
    found = address(url)
    return found.key if found else ""
