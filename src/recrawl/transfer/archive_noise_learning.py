"""Noise of archives: which captures are read to learn it, how it is detected, and where it is stored.

A sample of each host is read before its captures are classified: of all its pages that were captured several times, not
only of those in the current source. Pages that change are captured more often, and would dominate otherwise. The result
is stored, so that reports on the archive can name the parts of its pages that were not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from recrawl.detect import ChangeCriteria, ChangeResult
from recrawl.detect.digest_verdicts import outcomes_of
from recrawl.detect.explanation import shown
from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.noise.archive_noise import (
    ARCHIVE_NOISE,
    FEWEST_PAGES,
    ArchivedVersion,
    ArchiveNoise,
    NoisePartReport,
    ReportsByHost,
    archive_noise,
    are_compared,
    pack_reports,
    unpack_reports,
    with_archived,
)
from recrawl.detect.noise.learned_noise import HostNoise
from recrawl.detect.noise.noise_keys import split_key
from recrawl.errors import counted
from recrawl.model import Capture, IntArray, Outcome
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.store.store_values import REVISIT, CaptureColumns

_PAGES, _VERSIONS = 40, 6
"""Pages of a host that are compared, and versions of each."""
_PAGES_LOOKED_AT, _PAGES_COUNTED = 10 * _PAGES, 5_000
"""Pages whose captures are listed until enough can be compared, and pages whose captures are counted at once."""
_MAY_BE_HTML = frozenset({"", "unk", REVISIT, "text/html", "application/xhtml+xml"})
"""Media types of captures without available bytes that may have parts like other pages of their host."""
_SPREADS = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose products spread ids evenly (Knuth, TAOCP 6.4)."""
_EXAMPLES = 5
"""Versions that are searched for the text of a part."""
_TOLD, _NAMED, _LETTERS = 200, 3, 80
"""Parts of a host that are stored, parts that a sentence names, and characters of their texts."""


def learn_archive_noise(  # noqa: PLR0913, PLR0917 - what is read, how, and by which standards
    store: Store,
    pages: IntArray,
    read: Callable[[str, int], Capture | None],
    judged: Callable[[Capture, str], ChangeResult],
    standards: ChangeCriteria,
    moments: float,
) -> dict[int, HostNoise]:
    """The noise on each host of these pages, by id; hosts without any are left out. Stores what it is.

    ``judged`` parses a capture of a media type, as if it were the first. Costs at most 240 captures per host.
    """
    brought = np.unique(store.pages(pages).host)
    known = store.pages()
    resources = store.resources()
    found: dict[int, HostNoise] = {}
    told: dict[int, list[NoisePartReport]] = {}
    for host in brought.tolist():
        mine = np.setdiff1d(known.id[known.host == host], resources)
        if len(mine) < FEWEST_PAGES:
            continue
        versions, examples = _sample(store, mine, read, judged)
        learned = archive_noise(host, versions, moments)
        if learned.pages >= FEWEST_PAGES and learned.parts:
            told[host] = _told(learned, examples, standards)
            found[host] = learned.noise
    _keep(store, brought, told)
    return found


def forget_archive_noise(store: HistoryStore, pages: IntArray) -> None:
    """Record that nothing is masked on the hosts of these pages: they are classified without learned noise."""
    _keep(store, np.unique(store.pages(pages).host), {})


def _sample(
    store: CaptureIndex,
    pages: IntArray,
    read: Callable[[str, int], Capture | None],
    judged: Callable[[Capture, str], ChangeResult],
) -> tuple[dict[int, list[ArchivedVersion]], list[Capture]]:
    """Versions of some pages, by time, and some captures to take texts from."""
    order = pages[np.argsort((pages.astype(np.uint64) * _SPREADS) >> np.uint64(32), kind="stable")]
    versions: dict[int, list[ArchivedVersion]] = {}
    examples: list[Capture] = []
    looked_at = 0
    for start in range(0, len(order), _PAGES_COUNTED):
        some = order[start : start + _PAGES_COUNTED]
        several = some[store.capture_counts(some) > 1]
        for first in range(0, len(several), _PAGES):
            listed = store.capture_columns(np.sort(several[first : first + _PAGES]))
            for page in several[first : first + _PAGES].tolist():
                if len(versions) >= _PAGES or looked_at >= _PAGES_LOOKED_AT:
                    return versions, examples
                looked_at += 1
                rows = np.arange(*np.searchsorted(listed.page, [page, page + 1]).tolist())
                found, example = _versions(listed.take(rows), read, judged)
                if not are_compared(found):
                    continue
                versions[page] = found
                if example is not None and len(examples) < _EXAMPLES:
                    examples.append(example)
    return versions, examples


def _versions(
    captures: CaptureColumns,
    read: Callable[[str, int], Capture | None],
    judged: Callable[[Capture, str], ChangeResult],
) -> tuple[list[ArchivedVersion], Capture | None]:
    """The latest versions of a page, by time, and the last capture with available bytes.

    Bytes of a digest are read once. A revisit record without a digest repeats the capture before it.
    """
    outcome = outcomes_of(captures.status)
    shows = np.flatnonzero((outcome == Outcome.FETCHED) | (outcome == Outcome.NOT_MODIFIED)).tolist()
    places: dict[bytes, list[int]] = {}
    for row in shows:
        if captures.mime[row] != REVISIT and captures.warc_file[row] and captures.digest[row]:
            places.setdefault(captures.digest[row], []).append(row)
    contents: dict[bytes, tuple[int, Fingerprint | None]] = {}
    found: list[ArchivedVersion] = []
    example: Capture | None = None
    for row in shows[-_VERSIONS:]:
        digest, time = captures.digest[row], float(captures.time[row])
        repeats = captures.mime[row] == REVISIT or outcome[row] == Outcome.NOT_MODIFIED
        if digest in contents:
            content, fingerprint = contents[digest]
        elif repeats and not digest:
            content, fingerprint = (found[-1].content, found[-1].fingerprint) if found else (0, None)
        else:
            content, fingerprint = row + 1, None
            for place in [*([] if repeats else [row]), *places.get(digest, [])]:
                capture = read(captures.warc_file[place], int(captures.warc_offset[place]))
                if capture is None:
                    continue
                example = capture
                seen = judged(replace(capture, time=time), captures.mime[place])
                fingerprint = Fingerprint.unpack(seen.fingerprint)
                if fingerprint is None or not fingerprint.parts.path:  # nothing of which parts could be noise
                    content, fingerprint = 0, None
                break
            else:
                content = row + 1 if captures.mime[row] in _MAY_BE_HTML else 0
            if digest:
                contents[digest] = content, fingerprint
        dated = None if fingerprint is None else replace(fingerprint, time=time)
        found.append(ArchivedVersion(time, content, dated))
    return found, example


def _told(learned: ArchiveNoise, examples: Sequence[Capture], standards: ChangeCriteria) -> list[NoisePartReport]:
    texts: dict[int, str] = {}
    masked = replace(standards, mask=learned.noise.mask)
    for capture in examples:
        for one in shown(capture, masked, learned.noise).left_out:
            texts.setdefault(one.key, one.text)
    return [
        NoisePartReport(
            texts.get(part.key, "")[:_LETTERS],
            part.place.kind.name.lower(),
            part.pages,
            learned.pages,
            part.differed,
            part.compared,
            part.key,
        )
        for part in learned.parts[:_TOLD]
    ]


def _keep(store: HistoryStore, hosts: IntArray, told: dict[int, list[NoisePartReport]]) -> None:
    """Store what was learned of these hosts, by id, replacing the last."""
    kept = _kept(store)
    if not kept and not told:
        return
    named = store.hosts(np.unique(hosts))
    for host, name in zip(named.id.tolist(), named.name, strict=True):
        kept.pop(name, None)
        if host in told:
            kept[name] = told[host]
    store.save_state(ARCHIVE_NOISE, pack_reports(kept), 0.0)


def _kept(store: HistoryStore) -> ReportsByHost:
    return unpack_reports(store.load_state(ARCHIVE_NOISE))


def hosts_with_noise(store: HistoryStore) -> frozenset[str]:
    """Names of the hosts with noise learned from imported archives."""
    return frozenset(_kept(store))


def noise_in(store: HistoryStore, hosts: Sequence[str]) -> ReportsByHost:
    """The parts that were not compared on these hosts of imported archives, by host, on most pages first."""
    kept = _kept(store)
    return {host: kept[host] for host in hosts if host in kept}


def with_archive_noise(store: HistoryStore, host: int, noise: HostNoise) -> HostNoise:
    """The noise of a host from visits and from imported archives together, as live visits mask it."""
    named = store.hosts(np.array([host])).name
    return with_archived(noise, host, noise_in(store, named).get(named[0], [])) if len(named) else noise


def noise_json(noise: ReportsByHost) -> dict[str, list[dict[str, Any]]]:
    """The parts as JSON, without their keys, which are internal."""
    return {
        host: [{name: value for name, value in asdict(part).items() if name != "key"} for part in parts]
        for host, parts in noise.items()
    }


def noise_words(noise: ReportsByHost) -> list[str]:
    """The same in sentences, one per host."""
    lines = []
    for host, parts in noise.items():
        named = "; ".join(
            f"{_quoted(part)} on {part.pages:,} of {counted(part.pages_read, 'page')} read, in {part.differed:,} of "
            f"{counted(part.compared, 'comparison')}"
            for part in parts[:_NAMED]
        )
        more = f" and {len(parts) - _NAMED:,} more" if len(parts) > _NAMED else ""
        which = "it differs" if len(parts) == 1 else "they differ"
        lines.append(
            f"Not compared on {host}, since {which} in nearly every capture of nearly every page: {named}{more}. With "
            "the setting detect.learn_from_archives=no all is compared."
        )
    return lines


def _quoted(part: NoisePartReport) -> str:
    if part.text:
        return f"“{part.text}”"
    return f"a part {split_key(part.key).without_text}" if part.key else f"a part ({part.kind})"
