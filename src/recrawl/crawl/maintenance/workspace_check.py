"""Checks a workspace: what is wrong, how severe it is, and what can be repaired.

Store and archive files are compared both ways: the bytes of every capture exist with the right digest, and every record
is known. Derived tables are compared with their sources. A crawl may run meanwhile: a record that is being written is
no fault.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recrawl.crawl.control.worker_registry import WORKERS, is_alive, live_workers, registered_workers
from recrawl.crawl.maintenance.archive_check import ArchiveCheck, SampleCoverage
from recrawl.crawl.worker.outages import release_dead_workers
from recrawl.formats.atomic_files import find_abandoned, remove_abandoned
from recrawl.formats.warc.archive_folder import ArchiveFolder
from recrawl.store.base import ClockHorizon, ScheduleStore, Store, Tell

EXAMPLES = 5
"""Maximum examples of each kind of finding."""


class Severity(enum.StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    """Bytes or visits are lost or damaged."""
    WARNING = "warning"
    """Nothing is lost, but something is wrong. Mostly it is derived from other data and can be repaired."""
    NOTE = "note"
    """Worth knowing."""


class FindingKind(NamedTuple):
    """The meaning of a kind of finding."""

    severity: Severity
    meaning: str
    remedy: str = ""


_RESTORE = "Restore a backup."
_REPAIR = "Repair it with --repair."
KINDS = {
    "store_damaged": FindingKind(Severity.ERROR, "the database is damaged", _RESTORE),
    "index_damaged": FindingKind(Severity.WARNING, "an index of the database differs from its table", _REPAIR),
    "file_missing": FindingKind(
        Severity.ERROR,
        "captures lie in an archive file that is not there",
        "Restore a backup; or name the folder with --archive, if another workspace shares the store.",
    ),
    "imported_file_missing": FindingKind(
        Severity.WARNING, "captures lie in an imported file that is not there", "Put the file back where it was."
    ),
    "file_damaged": FindingKind(Severity.ERROR, "an archive file has bytes that are no record", _RESTORE),
    "record_missing": FindingKind(
        Severity.ERROR, "no record begins where the store says that a capture lies", _RESTORE
    ),
    "record_damaged": FindingKind(Severity.ERROR, "a record is cut or differs from its digest", _RESTORE),
    "imported_damaged": FindingKind(
        Severity.WARNING, "a capture in an imported file cannot be read, or is another one"
    ),
    "record_differs": FindingKind(Severity.ERROR, "a record is not the capture that the store describes", _RESTORE),
    "revisit_dangling": FindingKind(Severity.ERROR, "a revisit repeats a capture that is not there", _RESTORE),
    "record_unindexed": FindingKind(Severity.WARNING, "the visit of a record is known, but not its place", _REPAIR),
    "record_unknown": FindingKind(
        Severity.WARNING, "a record of a page belongs to no visit", "Import the file to make its visits known."
    ),
    "record_doubled": FindingKind(Severity.NOTE, "a capture is in the archive files twice"),
    "capture_without_visit": FindingKind(Severity.ERROR, "a capture of our own belongs to no visit", _RESTORE),
    "capture_page_missing": FindingKind(Severity.ERROR, "a capture belongs to a page that is not there", _RESTORE),
    "visit_page_missing": FindingKind(Severity.ERROR, "a visit belongs to a page that is not there", _RESTORE),
    "visit_invalid": FindingKind(Severity.ERROR, "a visit has an outcome or a time that cannot be", _RESTORE),
    "page_host_missing": FindingKind(Severity.ERROR, "a page belongs to a host that is not there", _RESTORE),
    "site_capture_broken": FindingKind(Severity.ERROR, "the log of a site capture has gaps", _RESTORE),
    "visit_ahead": FindingKind(
        Severity.WARNING,
        "a visit is dated after now: the clock was wrong then, or is wrong now",
        "The next run marks it, or waits until the clock is right.",
    ),
    "visit_misdated": FindingKind(Severity.NOTE, "a visit is marked: the clock was wrong when it was made"),
    "due_far": FindingKind(Severity.WARNING, "a page is due in more than twenty years", _REPAIR),
    "segment": FindingKind(Severity.WARNING, "counts or the packed copy of a segment of visits are wrong", _REPAIR),
    "page_unscheduled": FindingKind(Severity.WARNING, "a page is not in the schedule", _REPAIR),
    "schedule_host": FindingKind(Severity.WARNING, "a page is scheduled under another host than its own", _REPAIR),
    "page_hash": FindingKind(Severity.WARNING, "a page cannot be found by its URL", _REPAIR),
    "page_key": FindingKind(Severity.WARNING, "the key of a page is not that of its URL"),
    "host_next_due": FindingKind(Severity.WARNING, "a host is due at another time than its first page", _REPAIR),
    "host_bucket": FindingKind(Severity.WARNING, "a host is not in the bucket of its registered domain", _REPAIR),
    "host_ready_far": FindingKind(Severity.WARNING, "a host may not be asked for more than a month", _REPAIR),
    "lease_wrong": FindingKind(Severity.WARNING, "a lease is not covered by a hold on its host", _REPAIR),
    "lease_far": FindingKind(Severity.WARNING, "a lease ends much later than any lease does", _REPAIR),
    "hold_far": FindingKind(Severity.WARNING, "a host is held for much longer than any host is", _REPAIR),
    "lease_of_dead": FindingKind(
        Severity.WARNING,
        "a lease is held by a worker that is not at work",
        "Repair it with --repair, or wait: it ends after crawl.lease_time.",
    ),
    "validators_differ": FindingKind(
        Severity.WARNING,
        "the ETag or Last-Modified that a page is asked with is in none of its archived answers",
        "Repair it with --repair: the next request for the page carries none.",
    ),
    "robots_differ": FindingKind(
        Severity.WARNING,
        "the copy of a robots.txt is not the one that was archived when it was read",
        "Repair it with --repair: it is read again before anything else of its host.",
    ),
    "failing_wrong": FindingKind(Severity.WARNING, "a page is listed as failing without a failed visit", _REPAIR),
    "link_dangling": FindingKind(Severity.WARNING, "a link leads from or to a page that is not there", _REPAIR),
    "link_times": FindingKind(Severity.WARNING, "a link was last seen before it was first seen", _REPAIR),
    "orphan_row": FindingKind(Severity.WARNING, "a row is about a page that is not there", _REPAIR),
    "claim_page_missing": FindingKind(Severity.NOTE, "a claim is about a page that is not there"),
    "file_left_open": FindingKind(
        Severity.NOTE, "an archive file was left open by a process that was killed", "The next run finishes it."
    ),
    "worker_left": FindingKind(Severity.NOTE, "a worker was killed", "The next run gives back what it had leased."),
    "part_left": FindingKind(Severity.NOTE, "a file was left half-written by a process that is gone", _REPAIR),
    "not_checked": FindingKind(
        Severity.NOTE, "captures lie in files that an index names and nobody imported: not checked"
    ),
    "upload_missing": FindingKind(
        Severity.ERROR,
        "an uploaded WARC file is not in object storage, or not as it was",
        "Restore the object, or put the file back into warc/ and upload it again.",
    ),
    "storage_away": FindingKind(
        Severity.WARNING, "captures lie in files whose storage cannot be read now: not checked", "Check the storage."
    ),
    "not_uploaded": FindingKind(
        Severity.NOTE, "a closed WARC file is not in object storage yet", "A run or recrawl upload uploads it."
    ),
    "not_alone": FindingKind(Severity.NOTE, "captures lie in files whose records cannot be read alone: not checked"),
}
"""Every kind of finding."""


@dataclass(slots=True)
class CheckFinding:
    """All findings of one kind."""

    kind: str
    count: int = 0
    repaired: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def about(self) -> FindingKind:
        """The meaning of the kind."""
        return KINDS[self.kind]


class CheckFindings:
    """Findings by kind, with a few examples of each: bounded, however much is wrong."""

    def __init__(self) -> None:
        self._by_kind: dict[str, CheckFinding] = {}

    def add(self, kind: str, examples: Iterable[str], count: int = 1, repaired: int = 0) -> None:
        """Add findings of a kind."""
        found = self._by_kind.setdefault(kind, CheckFinding(kind))
        found.count += count
        found.repaired += repaired
        found.examples += list(examples)[: EXAMPLES - len(found.examples)]

    def all(self) -> list[CheckFinding]:
        """The most severe first."""
        worst = list(Severity)
        return sorted(self._by_kind.values(), key=lambda found: (worst.index(found.about.severity), found.kind))

    def left(self, severity: Severity) -> int:
        """Number of unrepaired findings of a severity."""
        return sum(found.count - found.repaired for found in self._by_kind.values() if found.about.severity is severity)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check."""

    findings: CheckFindings
    captures: int
    """Captures whose bytes were read."""
    records: int
    """Records of archive files that were read, of all types."""
    files: int
    read: int
    """Bytes of archive files that were read."""
    sample: SampleCoverage | None
    """What the sample says about the rest; ``None`` if all was checked."""

    def facts(self) -> dict[str, object]:
        """As plain values, for other programs."""
        return {
            "errors": self.findings.left(Severity.ERROR),
            "warnings": self.findings.left(Severity.WARNING),
            "notes": self.findings.left(Severity.NOTE),
            "findings": [
                {
                    "severity": found.about.severity.value,
                    "kind": found.kind,
                    "count": found.count,
                    "repaired": found.repaired,
                    "meaning": found.about.meaning,
                    "remedy": found.about.remedy,
                    "examples": found.examples,
                }
                for found in self.findings.all()
            ],
            "captures": self.captures,
            "records": self.records,
            "files": self.files,
            "bytes": self.read,
            "sample": None if self.sample is None else asdict(self.sample),
        }


@dataclass(frozen=True, slots=True)
class CheckScope:
    """What to check, and how."""

    repair: bool = False
    """Repair derived data. Visits and bytes are never changed."""
    sample: int | None = None
    """Number of captures drawn at random whose bytes are read; all if ``None``."""
    pause: float = 0.0
    """Seconds that hosts pause whose leases are returned."""
    horizon: ClockHorizon = field(default_factory=ClockHorizon)
    archives: tuple[Path, ...] = ()
    """More folders with archive files: those of other workspaces that share the store."""


def verify(  # noqa: PLR0913 - what, when, how, and callbacks
    store: Store,
    folder: Path,
    now: float,
    scope: CheckScope,
    *,
    rng: np.random.Generator,
    tell: Tell,
    archive_files: ArchiveFolder | None = None,
) -> Verification:
    """Check the workspace in a folder, whose archive files lie in ``warc/`` or where ``archive_files`` finds them."""
    findings = CheckFindings()
    _check_engine(store, findings, scope)
    _check_leases(store, folder, now, findings, scope)
    for fault in store.check_derived(now, scope.horizon, tell, repair=scope.repair):
        findings.add(fault.kind, fault.examples, fault.count, fault.repaired)
    archive = ArchiveCheck(
        store, archive_files or folder / "warc", findings.add, tell, now=now, repair=scope.repair, others=scope.archives
    )
    archive.check_uploads()
    drawn = None
    if scope.sample is None:
        archive.check_all()
    else:
        drawn = archive.check_sample(scope.sample, rng)
    _check_leftovers(folder, findings, repair=scope.repair)
    return Verification(findings, archive.captures, archive.records, archive.files, archive.read, drawn)


def _check_engine(store: Store, findings: CheckFindings, scope: CheckScope) -> None:
    said = store.engine_faults(thorough=scope.sample is None)
    of_indexes = [text for text in said if "index" in text]
    others = [text for text in said if "index" not in text]
    if others:
        findings.add("store_damaged", others, len(others))
    if of_indexes:
        repaired = 0
        if scope.repair and not others:
            store.rebuild_indexes()
            repaired = len(of_indexes)
        findings.add("index_damaged", of_indexes, len(of_indexes), repaired)


def _check_leases(store: ScheduleStore, folder: Path, now: float, findings: CheckFindings, scope: CheckScope) -> None:
    """Find leases of dead workers, and workers that were killed.

    A worker that started or stopped meanwhile is not reported: its leases are not in both lists.
    """
    before = store.leases()
    here = set(live_workers(folder))
    left = sorted(_names(folder / WORKERS) - here)
    alive = here | {one.worker for one in registered_workers(store.controls()) if is_alive(one, now)} - set(left)
    dead = [lease for lease in set(before) & set(store.leases()) if lease.until > now and lease.worker not in alive]
    if scope.repair and left:
        release_dead_workers(store, folder, now, scope.pause)
    if dead:
        repaired = sum(lease.worker in left for lease in dead) if scope.repair else 0
        examples = sorted(f"page {lease.page} of {lease.worker}" for lease in dead)
        findings.add("lease_of_dead", examples, len(dead), repaired)
    if left:
        findings.add("worker_left", left, len(left), len(left) if scope.repair else 0)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _check_leftovers(folder: Path, findings: CheckFindings, *, repair: bool) -> None:
    """Find files that exports and other writers left half-written."""
    for place in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        left = [str(path.relative_to(folder)) for path in find_abandoned(place)]
        if left:
            removed = len(remove_abandoned(place)) if repair else 0
            findings.add("part_left", left, len(left), min(removed, len(left)))
