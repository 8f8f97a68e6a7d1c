"""Noise of archives: which captures are read to learn it, how it is told, and where that is kept.

A sample of each host is read before its captures are judged. What was found is kept in the store, so that whoever asks
about the archive later is told which parts of its pages were not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recrawl.detect import Judgement, Standards
from recrawl.detect.archive_noise import FEWEST_PAGES, ArchiveNoise, archive_noise
from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.learned_noise import HostNoise
from recrawl.detect.shown import shown
from recrawl.model import Capture, IntArray
from recrawl.model.words import counted
from recrawl.store.base import Store
from recrawl.store.values import REVISIT, Captures

_STATE = "archive-noise"
"""Under which name the store keeps what was learned."""
_PAGES, _VERSIONS = 40, 6
"""Pages of a host that are read to learn from, and versions of each."""
_EXAMPLES = 5
"""Versions that are searched for the text of a part."""
_TOLD, _NAMED, _LETTERS = 20, 3, 80
"""Parts of a host that are kept, parts that a sentence names, and letters of their texts."""


@dataclass(frozen=True, slots=True)
class ToldPart:
    """A part that was not compared, for people."""

    text: str
    """As one capture has it; empty if none at hand has it."""
    kind: str
    pages: int
    """Pages on which it differed …"""
    pages_read: int
    """… of so many that were read to learn it."""
    differed: int
    compared: int


def learn_archive_noise(  # noqa: PLR0913, PLR0917 - what is read, how, and by which standards
    store: Store,
    pages: IntArray,
    read: Callable[[str, int], Capture | None],
    judged: Callable[[Capture, str], Judgement],
    standards: Standards,
    moments: float,
) -> dict[int, HostNoise]:
    """What is noise on each host of these pages, by id; hosts without any are left out. Notes in the store what it is.

    ``judged`` reads a capture of a media type, as if it were the first. Costs at most 240 captures a host.
    """
    known = store.pages(pages)
    several = (store.capture_counts(known.id) > 1) & ~np.isin(known.id, store.resources(pages))
    found: dict[int, HostNoise] = {}
    told: dict[int, list[dict[str, Any]]] = {}
    hosts, size = np.unique(known.host[several], return_counts=True)
    for host in hosts[size >= FEWEST_PAGES].tolist():
        mine = known.id[several & (known.host == host)]
        sample = mine[np.unique(np.linspace(0, len(mine) - 1, _PAGES).astype(np.int64))]
        versions, examples = _versions(store.capture_columns(sample), read, judged)
        if len(versions) < FEWEST_PAGES:
            continue
        learned = archive_noise(host, versions, moments)
        if learned.parts:
            told[host] = _told(learned, examples, standards)
            found[host] = learned.noise
    _keep(store, known.host, told)
    return found


def forget_archive_noise(store: Store, pages: IntArray) -> None:
    """Note that nothing is left out on the hosts of these pages: they are judged without what was learned."""
    _keep(store, store.pages(pages).host, {})


def _versions(
    captures: Captures, read: Callable[[str, int], Capture | None], judged: Callable[[Capture, str], Judgement]
) -> tuple[dict[int, list[Fingerprint]], list[Capture]]:
    """Fingerprints of some versions of each page that has several, by time, and some captures to take texts from."""
    versions: dict[int, list[Fingerprint]] = {}
    examples: list[Capture] = []
    for page in np.unique(captures.page).tolist():
        rows = [
            row
            for row in np.flatnonzero((captures.page == page) & (captures.status // 100 == 2)).tolist()  # noqa: PLR2004
            if captures.mime[row] != REVISIT and captures.warc_file[row]
        ]
        several: list[Fingerprint] = []
        for row in rows[-_VERSIONS:]:
            capture = read(captures.warc_file[row], int(captures.warc_offset[row]))
            if capture is None:
                continue
            time = float(captures.time[row])
            version = Fingerprint.unpack(judged(replace(capture, time=time), captures.mime[row]).fingerprint)
            if version is not None and version.parts.path:
                several.append(replace(version, time=time))
                example = capture
        if len(several) > 1:
            versions[page] = several
            if len(examples) < _EXAMPLES:
                examples.append(example)
    return versions, examples


def _told(learned: ArchiveNoise, examples: Sequence[Capture], standards: Standards) -> list[dict[str, Any]]:
    texts: dict[int, str] = {}
    masked = replace(standards, mask=learned.noise.mask)
    for capture in examples:
        for one in shown(capture, masked, learned.noise).left_out:
            texts.setdefault(one.key, one.text)
    return [
        {
            "text": texts.get(part.key, "")[:_LETTERS],
            "kind": part.place.kind.name.lower(),
            "pages": part.pages,
            "pages_read": learned.pages,
            "differed": part.differed,
            "compared": part.compared,
        }
        for part in learned.parts[:_TOLD]
    ]


def _keep(store: Store, hosts: IntArray, told: dict[int, list[dict[str, Any]]]) -> None:
    """Note what was learned of these hosts, by id, in place of what was learned of them before."""
    kept = _kept(store)
    if not kept and not told:
        return
    named = store.hosts(np.unique(hosts))
    for host, name in zip(named.id.tolist(), named.name, strict=True):
        kept.pop(name, None)
        if host in told:
            kept[name] = told[host]
    store.save_state(_STATE, json.dumps(kept, ensure_ascii=False).encode("utf-8", "backslashreplace"), 0.0)


def _kept(store: Store) -> dict[str, list[dict[str, Any]]]:
    data = store.load_state(_STATE)
    found: dict[str, list[dict[str, Any]]] = json.loads(data) if data else {}
    return found


def noise_in(store: Store, hosts: Sequence[str]) -> dict[str, list[ToldPart]]:
    """The parts that were not compared on these hosts of imported archives, by host, on most pages first."""
    kept = _kept(store)
    return {host: [ToldPart(**part) for part in kept[host]] for host in hosts if host in kept}


def noise_words(noise: dict[str, list[ToldPart]]) -> list[str]:
    """The same in sentences, one a host."""
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


def _quoted(part: ToldPart) -> str:
    return f"“{part.text}”" if part.text else f"a part ({part.kind})"
