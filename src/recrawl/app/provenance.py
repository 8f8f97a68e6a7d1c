"""The provenance of a result: question, data, time of reference, settings, seed and version.

Every result of the Python API and every table that a command writes carries one, so that a file found later can be
reproduced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recrawl.time import to_iso

if TYPE_CHECKING:
    from recrawl.app.workspace.configuration import Configuration

KEY = "recrawl"
"""Key of the provenance in the metadata of a Parquet schema. The value is JSON."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is needed to compute a result again.

    >>> Provenance("rates", "0.1.0", ("crawls/",), 1767225600.0, None, {"by": "host"})
    <rates of crawls/ as of 2026-01-01T00:00:00Z, recrawl 0.1.0, by=host>
    """

    question: str
    """The function or command that was called, such as ``rates`` or ``plan slots``."""
    version: str
    """The version of recrawl."""
    sources: tuple[str, ...] = ()
    """The workspace or the files that were loaded, as they were named."""
    as_of: float | None = None
    """Visits after this time do not count. Seconds since the epoch; ``None`` where all data counts."""
    seed: int | None = None
    """Start of the random numbers; ``None`` where none are drawn."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the function, or options of the command that were given."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the workspace that differ from the defaults, by key. Passwords are left out."""

    def __repr__(self) -> str:
        return f"<{self.sentence()}>"

    def sentence(self) -> str:
        """The same for people, without the settings."""
        of = f" of {', '.join(self.sources)}" if self.sources else ""
        when = "" if self.as_of is None else f" as of {to_iso(self.as_of)}"
        seed = "" if self.seed is None else f", seed {self.seed}"
        arguments = "".join(f", {name}={value}" for name, value in self.arguments.items() if value is not None)
        return f"{self.question}{of}{when}, recrawl {self.version}{seed}{arguments}"

    def facts(self) -> dict[str, Any]:
        """The same as values of JSON; the time is ISO 8601, in UTC."""
        return {
            "question": self.question,
            "version": self.version,
            "sources": list(self.sources),
            "as_of": None if self.as_of is None else to_iso(self.as_of),
            "seed": self.seed,
            "arguments": dict(self.arguments),
            "settings": dict(self.settings),
        }

    def json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.facts(), ensure_ascii=False, default=str)


def changed_settings(configuration: Configuration) -> dict[str, Any]:
    """Settings that differ from their defaults, by key, without passwords."""
    from recrawl.app.workspace.settings import declared, without_password

    values = {setting.key: configuration.value(setting) for setting in declared()}
    defaults = {setting.key: setting.default for setting in declared()}
    return {
        key: without_password(value) if isinstance(value, str) else value
        for key, value in values.items()
        if value != defaults[key]
    }
