"""The settings of a workspace, declared once: name, type, default, unit and help of every key.

One frozen dataclass per stage. The configuration file, the environment variables, the flags, the file that
``recrawl init`` writes and the reference page all follow from the fields below. Nothing here reads
anything: :mod:`recrawl.cli.configuration` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from recrawl import __version__
from recrawl.errors import ConfigError
from recrawl.time import DAY, HOUR, MINUTE, parse_duration

Value = str | float | int | bool


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value of one type is written, read and shown."""

    name: str
    """As the reference page names it."""
    read: Callable[[object], Value]
    """From YAML or from the text of a flag or variable; raises :class:`ConfigError`."""
    write: Callable[[Any], str]
    """As YAML; what YAML makes of it reads back as the same value."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key, as declared."""

    section: str
    name: str
    kind: Kind
    default: Value
    help: str

    @property
    def key(self) -> str:
        """As a flag names it: ``section.name``."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"RECRAWL_{self.section}_{self.name}".upper()


# -- kinds ---------------------------------------------------------------------------------------


def _read_text(raw: object) -> Value:
    if not isinstance(raw, str):
        raise ConfigError(f"{raw!r} is not a text.", "Put it in quotes.")
    return raw


def _read_duration(raw: object) -> Value:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ConfigError(f"{raw!r} is not a duration.", "Write a number and a unit, for example 6h.")
    if raw in (0, "0"):
        return 0.0
    if not isinstance(raw, str):
        raise ConfigError(f"The duration {raw!r} has no unit.", f"Write {raw}s if you mean seconds, or 6h, 2d, 1w.")
    return parse_duration(raw)


def _read_number(raw: object) -> Value:
    try:
        if isinstance(raw, bool):
            raise TypeError  # noqa: TRY301 - YAML's yes is not the number 1
        number = float(raw)  # type: ignore[arg-type] # a wrong type is the TypeError below
    except (TypeError, ValueError):
        raise ConfigError(f"{raw!r} is not a number.", "Write for example 2.5.") from None
    if not 0 <= number < float("inf"):
        raise ConfigError(f"{raw!r} is negative or not finite.", "Write a number from 0 up, for example 2.5.")
    return number


def _read_count(raw: object) -> Value:
    number = _read_number(raw)
    if number != int(number):
        raise ConfigError(f"{raw!r} is not a whole number.", "Write for example 1000.")
    return int(number)


def _write_duration(seconds: float) -> str:
    """The shortest exact way to write it.

    >>> _write_duration(21_600.0), _write_duration(1.5), _write_duration(0.25)
    ('6h', '1.5s', '250ms')
    """
    for unit, name in ((7 * DAY, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f}{name}"
    return f"{seconds:.12g}s" if seconds >= 1 or seconds == 0 else f"{seconds * 1000:.12g}ms"


def _write_text(text: str) -> str:
    import yaml

    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=1_000_000)).rstrip("\n")


TEXT = Kind("text", _read_text, _write_text)
DURATION = Kind("duration", _read_duration, _write_duration)
NUMBER = Kind("number", _read_number, lambda value: f"{value:.12g}")
COUNT = Kind("whole number", _read_count, str)


def one_of(*choices: str) -> Kind:
    """A text out of a few."""

    def read(raw: object) -> Value:
        if raw not in choices:
            raise ConfigError(f"{raw!r} is not one of {', '.join(choices)}.", f"Write for example {choices[0]}.")
        return str(raw)

    return Kind(" | ".join(choices), read, str)


def _setting(default: Value, kind: Kind, help: str) -> Any:  # noqa: A002, ANN401 - the field takes the type of its annotation
    return field(default=default, metadata={"kind": kind, "help": help})


def _check_span(low_key: str, low: float, high_key: str, high: float) -> None:
    """Two settings that bound the same thing must leave something between them."""
    if low > high:
        raise ConfigError(
            f"{low_key} ({_write_duration(low)}) is longer than {high_key} ({_write_duration(high)}).",
            "Lower the first or raise the second: with --set, in the environment or in recrawl.yaml.",
        )


# -- the keys ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where pages, visits and the schedule are kept."""

    location: str = _setting(
        "recrawl.db",
        TEXT,
        "A SQLite file, relative to the workspace, or a PostgreSQL URL (postgresql://user@host/name).",
    )


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How pages are asked for."""

    user_agent: str = _setting(
        f"recrawl/{__version__}",
        TEXT,
        "Name and version sent to every host; robots.txt rules are looked up by the name.",
    )
    contact: str = _setting(
        "",
        TEXT,
        "Mail address or URL of whoever runs the crawl, sent with the name. A crawl does not start without it.",
    )
    connect_timeout: float = _setting(15.0, DURATION, "Longest wait for a connection.")
    idle_timeout: float = _setting(20.0, DURATION, "Longest silence in the middle of an answer.")
    timeout: float = _setting(120.0, DURATION, "Longest time for one whole answer.")
    allow_networks: str = _setting(
        "",
        TEXT,
        "Networks beside the public ones that may be connected to, as 10.0.0.0/8 or 127.0.0.1, with spaces between.",
    )
    max_size: int = _setting(
        67_108_864, COUNT, "Bytes of body after which an answer is cut off and marked as truncated."
    )

    def agent(self) -> str:
        """The User-Agent header: name, version and contact.

        >>> FetchSettings(user_agent="bot/1", contact="me@example.org").agent()
        'bot/1 (+mailto:me@example.org)'
        """
        if not self.contact:
            raise ConfigError(
                "fetch.contact is empty: hosts could not reach whoever runs this crawl.",
                "Set it to your mail address or a page about the crawl, in recrawl.yaml or with RECRAWL_FETCH_CONTACT.",
            )
        contact = self.contact if "://" in self.contact else f"mailto:{self.contact.removeprefix('mailto:')}"
        return f"{self.user_agent} (+{contact})"


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How long a host is left alone between two requests: factor × the last answer's duration, within bounds."""

    min_delay: float = _setting(3.0, DURATION, "Shortest pause between two requests to one host.")
    max_delay: float = _setting(30.0, DURATION, "Longest pause that a slow answer alone can cause.")
    factor: float = _setting(5.0, NUMBER, "Pause after an answer, as a multiple of how long the answer took.")
    crawl_delay_cap: float = _setting(300.0, DURATION, "Longest Crawl-delay of a robots.txt that is honoured in full.")

    def __post_init__(self) -> None:
        _check_span("politeness.min_delay", self.min_delay, "politeness.max_delay", self.max_delay)


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When to come back."""

    policy: str = _setting(
        "valued",
        one_of("valued", "uniform"),
        "How due times are found: from the value of a visit, or one interval for all pages.",
    )
    objective: str = _setting(
        "archive",
        one_of("archive", "freshness", "changes", "harmonic", "age", "blur", "links"),
        "What a visit is worth, to the policy valued. archive is freshness with 5 % harmonic.",
    )
    budget: float = _setting(
        1_000.0,
        NUMBER,
        "Visits a day, on average, that the schedule is made for. New pages, and a long pause, make more due at once.",
    )
    min_interval: float = _setting(HOUR, DURATION, "The policy valued never comes back sooner.")
    max_interval: float = _setting(180 * DAY, DURATION, "The policy valued never leaves a page alone longer.")

    def __post_init__(self) -> None:
        if self.min_interval == 0:
            raise ConfigError("schedule.min_interval is 0: a page would be due at every moment.", "Write at least 1s.")
        _check_span("schedule.min_interval", self.min_interval, "schedule.max_interval", self.max_interval)


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """What a continuous crawl takes in, and how much at once."""

    scope: str = _setting(
        "prefix",
        one_of("page", "prefix", "host", "domain"),
        "Which links are followed: none, those into the folders of the pages there are, into their hosts or domains.",
    )
    max_depth: int = _setting(20, COUNT, "Folders a URL may be deep; deeper ones are taken for a trap.")
    concurrency: int = _setting(64, COUNT, "Requests at once, over all hosts.")


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Where the bytes go."""

    prefix: str = _setting("recrawl", TEXT, "First part of the name of every WARC file.")
    roll_size: int = _setting(1_000_000_000, COUNT, "Bytes after which a WARC file is closed and a new one begun.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a workspace, by stage."""

    store: StoreSettings = StoreSettings()
    fetch: FetchSettings = FetchSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    crawl: CrawlSettings = CrawlSettings()
    archive: ArchiveSettings = ArchiveSettings()


def stages() -> dict[str, type[Any]]:
    """The dataclass of every section, by name."""
    return {part.name: type(getattr(Settings(), part.name)) for part in fields(Settings)}


def sections() -> dict[str, str]:
    """Every section and the sentence that introduces it."""
    return {name: str(stage.__doc__) for name, stage in stages().items()}


def declared() -> Iterator[Setting]:
    """Every key, in the order of declaration."""
    for section, stage in stages().items():
        for entry in fields(stage):
            default: Value = getattr(stage(), entry.name)
            yield Setting(section, entry.name, entry.metadata["kind"], default, entry.metadata["help"])


def without_password(text: str) -> str:
    """A URL that is fit to be seen; any other text as it is.

    >>> without_password("postgresql://me:secret@host/name"), without_password("recrawl.db")
    ('postgresql://me:***@host/name', 'recrawl.db')
    """
    return re.sub(r"(://[^:/@]*:).*@", r"\1***@", text)
