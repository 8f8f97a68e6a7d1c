"""The statements about what a running crawl learns and is told, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.model import NoiseCounts
from recrawl.model.noise_counts import FAR_WINDOW, NEAR_WINDOW
from recrawl.store.dialect import Dialect
from recrawl.store.values import QUARANTINED

_NOISE_TYPES = dict.fromkeys(NoiseCounts.__slots__, "bigint")
_FAILING_TYPES = {
    "page": "bigint",
    "since": "float8",
    "time": "float8",
    "failures": "integer",
    "outcome": "smallint",
    "status": "smallint",
    "faults": "integer",
}


class LiveStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        among = dialect.among
        self.set_fingerprints = dialect.insert(
            "fingerprint", {"page": "bigint", "data": "bytea"}, "ON CONFLICT (page) DO UPDATE SET data = excluded.data"
        )
        self.fingerprints = f"SELECT page, data FROM fingerprint WHERE page {among(1)}"
        self.add_noise = dialect.insert(
            "noise", _NOISE_TYPES, f"ON CONFLICT (host, page, part) DO UPDATE SET {_faded()}"
        )
        columns = ", ".join(_NOISE_TYPES)
        self.noise = f"SELECT {columns} FROM noise ORDER BY host, page, part"
        self.noise_of = f"SELECT {columns} FROM noise WHERE host {among(1)} ORDER BY host, page, part"
        self.drop_noise = f"DELETE FROM noise WHERE host {among(1)}"
        self.drop_noise_parts = f"DELETE FROM noise WHERE host = $1 AND page = 0 AND part {among(2)}"
        self.drop_noise_pages = f"DELETE FROM noise WHERE host = $1 AND page {among(2)}"
        self.add_conduct = dialect.update(
            "host", "id", {"checks": "integer", "lies": "integer", "restless": "integer"}, how="add"
        )
        self._failures(dialect)
        self._settings(dialect)
        self._backlog(dialect)

    def _failures(self, dialect: Dialect) -> None:
        self.add_failures = dialect.insert(
            "failing",
            _FAILING_TYPES | {"reason": "text"},
            "ON CONFLICT (page) DO UPDATE SET time = excluded.time, failures = failing.failures + 1, "
            "outcome = excluded.outcome, status = excluded.status, faults = failing.faults + excluded.faults, "
            "reason = excluded.reason WHERE excluded.time > failing.time",
        )
        self.fault_reasons = "SELECT page, reason FROM failing WHERE faults > 0 AND reason <> ''"
        self.quarantined = f"SELECT count(*) FROM failing WHERE faults >= {QUARANTINED}"
        self.drop_failures = f"DELETE FROM failing WHERE page {dialect.among(1)}"
        columns = ", ".join(f"failing.{name}" for name in _FAILING_TYPES)
        self.failing = f"SELECT {columns} FROM failing ORDER BY time DESC, page LIMIT $1"
        self.failing_of_host = (
            f"SELECT {columns} FROM failing JOIN schedule ON schedule.page = failing.page "
            "WHERE schedule.host = $1 ORDER BY time DESC, failing.page LIMIT $2"
        )

    def _settings(self, dialect: Dialect) -> None:
        self.set_sources = dialect.insert(
            "source",
            {"page": "bigint", "method": "text", "options": "text"},
            "ON CONFLICT (page) DO UPDATE SET method = excluded.method, options = excluded.options",
        )
        self.drop_sources = f"DELETE FROM source WHERE page {dialect.among(1)}"
        self.sources = f"SELECT page, method, options FROM source WHERE page {dialect.among(1)}"
        self.all_sources = "SELECT page, method, options FROM source ORDER BY page"
        self.any_source = "SELECT 1 FROM source LIMIT 1"
        self.set_control = (
            "INSERT INTO control (name, value, changed) VALUES ($1, $2, $3) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed = excluded.changed"
        )
        self.controls = "SELECT name, value FROM control WHERE value IS NOT NULL ORDER BY name"
        self.controls_changed = "SELECT max(changed) FROM control"

    def _backlog(self, dialect: Dialect) -> None:
        """By hosts that have a page due: so these cost what is due, not what there is."""
        due = "FROM host JOIN schedule ON schedule.host = host.id WHERE host.next_due <= $1 AND schedule.due <= $1"
        self.backlog = (
            f"SELECT count(*), coalesce(sum(CASE WHEN host.paused = 0 THEN 1 ELSE 0 END), 0), min(schedule.due), "
            f"coalesce(sum(CASE WHEN host.paused = 0 AND host.ready_at > $1 THEN 1 ELSE 0 END), 0) {due}"
        )
        # Hosts that nobody holds, with a page due, and at most in the pause between two requests.
        self.soon_free = (
            "SELECT min(wake) FROM host WHERE paused = 0 AND held_by IS NULL AND next_due <= $1 "
            f"AND ready_at <= $1 + {dialect.larger}(delay, $2)"
        )
        self.due_pages = f"SELECT page, host, due {due} ORDER BY due, page LIMIT $2"
        self.due_pages_of_host = (
            "SELECT page, host, due FROM schedule WHERE due <= $1 AND host = $2 ORDER BY due, page LIMIT $3"
        )


def _faded() -> str:
    """New counts added to old ones, which fade: ``detect.learned_noise.NoiseEvidence.plus`` in SQL."""
    sums = {name: f"(noise.{name} + excluded.{name})" for name in ("near", "near_differed", "far", "far_differed")}
    full = {"near": f"{sums['near']} > {NEAR_WINDOW}", "far": f"{sums['far']} > {FAR_WINDOW}"}
    kept = {
        name: f"(CASE WHEN {full[name.partition('_')[0]]} THEN {total} / 2 ELSE {total} END)"
        for name, total in sums.items()
    }
    mostly = f"{full['near']} AND 2 * {kept['near_differed']} >= {kept['near']}"
    empty = {
        "near_pages": f"{kept['near_differed']} = 0",
        "agreed_pages": mostly,
        "far_pages": f"{kept['far_differed']} = 0",
        "times": f"{kept['near_differed']} = 0",
    }
    sets = {name: f"CASE WHEN {when} THEN 0 ELSE noise.{name} | excluded.{name} END" for name, when in empty.items()}
    return ", ".join(f"{name} = {value}" for name, value in (kept | sets).items())
