"""The settings of a workspace, declared once: name, type, default, unit and help of every key.

One frozen dataclass per stage. The configuration file, the environment variables, the flags, the file that
``recrawl init`` writes and the reference page all follow from the fields below. Nothing here reads
anything: :mod:`recrawl.app.workspace.configuration` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from recrawl import __version__
from recrawl.errors import ConfigError
from recrawl.time import DAY, HOUR, MINUTE, parse_duration

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.crawl.visit.scope import ScopeRules
    from recrawl.detect import ChangeCriteria
    from recrawl.formats.warc.archive_folder import StorageOptions
    from recrawl.parse.parse_pool import ParseLimits


Value = str | float | int | bool


@dataclass(frozen=True, slots=True)
class SettingKind:
    """How a value of one type is written, read and shown."""

    name: str
    """As the reference page names it."""
    read: Callable[[object], Value]
    """From YAML or from the text of a flag or variable; raises :class:`ConfigError`."""
    write: Callable[[Any], str]
    """As YAML; what YAML makes of it reads back as the same value."""


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


_PERIODS = {"s": 1.0, "min": MINUTE, "h": HOUR, "hour": HOUR, "d": DAY, "day": DAY, "w": 7 * DAY, "week": 7 * DAY}


def _read_visits_a_day(raw: object) -> Value:
    """Visits in a period as visits a day.

    >>> _read_visits_a_day("10000/day"), _read_visits_a_day("500/h"), _read_visits_a_day(250)
    (10000.0, 12000.0, 250.0)
    """
    number, slash, period = raw.partition("/") if isinstance(raw, str) else (raw, "", "")
    if slash and period.strip() not in _PERIODS:
        raise ConfigError(
            f"{raw!r} has an unknown period.", f"Write for example 10000/day; periods: {', '.join(_PERIODS)}."
        )
    try:
        visits = float(_read_number(number.replace(",", "") if isinstance(number, str) else number))
    except ConfigError:
        raise ConfigError(f"{raw!r} is not a number of visits.", "Write 1000, 10000/day, 500/h or 2/s.") from None
    return visits * DAY / _PERIODS[period.strip()] if slash else visits


def _read_share(raw: object) -> Value:
    number = float(_read_number(raw))
    if number > 1:
        raise ConfigError(f"{raw!r} is above 1.", "Write a share from 0 to 1, for example 0.5.")
    return number


def write_duration(seconds: float) -> str:
    """The shortest exact way to write it.

    >>> write_duration(21_600.0), write_duration(1.5), write_duration(0.25)
    ('6h', '1.5s', '250ms')
    """
    for unit, name in ((7 * DAY, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f}{name}"
    return f"{seconds:.12g}s" if seconds >= 1 or seconds == 0 else f"{seconds * 1000:.12g}ms"


def _write_text(text: str) -> str:
    import yaml

    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=1_000_000)).rstrip("\n")


TEXT = SettingKind("text", _read_text, _write_text)
DURATION = SettingKind("duration", _read_duration, write_duration)
NUMBER = SettingKind("number", _read_number, lambda value: f"{value:.12g}")
COUNT = SettingKind("whole number", _read_count, str)
VISITS = SettingKind("visits a day", _read_visits_a_day, lambda value: f"{value:.12g}")
SHARE = SettingKind("share", _read_share, lambda value: f"{value:.12g}")


_ALWAYS = "always"


def _read_keep(raw: object) -> Value:
    return _ALWAYS if raw == _ALWAYS else write_duration(float(_read_duration(raw)))


KEEP = SettingKind("duration | always", _read_keep, str)


DEFAULT = "default"
"""The value of a parameter of a policy that is what its source gives."""


def or_default(kind: SettingKind) -> SettingKind:
    """A value of a kind, kept as it is written, or the word ``default``."""

    def read(raw: object) -> Value:
        return DEFAULT if raw == DEFAULT else kind.write(kind.read(raw))

    return SettingKind(f"{kind.name} | {DEFAULT}", read, str)


def _read_theta(raw: object) -> Value:
    number = float(_read_number(raw))
    if number >= 1:
        raise ConfigError(f"{raw!r} is no probability to wait for.", "Write a number from 0 to below 1, like 0.7.")
    return number


def _read_history(raw: object) -> Value:
    seconds = float(_read_duration(raw))
    if seconds <= 0:
        raise ConfigError(f"{raw!r} is not above 0.", "Write for example 7d.")
    return seconds


def _read_intervals(raw: object) -> Value:
    """Durations, ascending.

    >>> _read_intervals("24h 3d 31d")
    '1d 3d 31d'
    """
    seconds = [float(_read_history(one)) for one in str(raw).split()]
    if len(seconds) < _TWO_CLASSES or any(low >= high for low, high in pairwise(seconds)):
        raise ConfigError(f"{raw!r} are no classes.", "Write two or more rising intervals, for example 1d 3d 31d 96d.")
    return " ".join(map(write_duration, seconds))


_TWO_CLASSES = 2


def _read_windows(raw: object) -> Value:
    numbers = [int(_read_count(one)) for one in str(raw).split()]
    if not numbers or min(numbers) < 1:
        raise ConfigError(f"{raw!r} are no numbers of visits.", "Write whole numbers from 1 up, for example 3 2 2 1.")
    return " ".join(map(str, numbers))


_POSITIVE = SettingKind("duration", _read_history, write_duration)
_THETA = or_default(SettingKind("probability", _read_theta, lambda value: f"{value:.12g}"))
_PERIOD = or_default(_POSITIVE)
_INTERVALS = or_default(SettingKind("durations", _read_intervals, str))
_WINDOWS = or_default(SettingKind("whole numbers", _read_windows, str))


def _location(*, s3: bool = False) -> SettingKind:
    """Locations of archive files; with ``s3`` a single one of object storage."""

    def read(raw: object) -> Value:
        from recrawl.formats.warc.archive_folder import locations_of

        found = locations_of(str(_read_text(raw)))
        if s3 and (len(found) > 1 or not all(one.startswith("s3://") for one in found)):
            raise ConfigError(f"{raw!r} is no object storage.", "Write s3://bucket/prefix.")
        return " ".join(found)

    return SettingKind("location" if s3 else "locations", read, _write_text)


def one_of(*choices: str) -> SettingKind:
    """A text out of a few. Where YAML takes one for a truth value (yes, no), that is meant all the same."""

    def read(raw: object) -> Value:
        if isinstance(raw, bool):
            raw = "yes" if raw else "no"
        if raw not in choices:
            raise ConfigError(f"{raw!r} is not one of {', '.join(choices)}.", f"Write for example {choices[0]}.")
        return str(raw)

    return SettingKind(" | ".join(choices), read, str)


def one_of_or_plugin(kind: str, *choices: str) -> SettingKind:
    """The name of a built-in implementation of a seam, of an entry point, or ``package.module:Name``.

    Reading it imports no plug-in: that is done where the setting is used.
    """

    def read(raw: object) -> Value:
        from recrawl.plugins import installed, is_known

        name = str(raw)
        if name not in choices and not is_known(kind, name):
            known = [*choices, *(entry.name for entry in installed(kind))]
            raise ConfigError(
                f"{name!r} is not one of {', '.join(known)}.",
                f"Write for example {choices[0]}, or package.module:Name for a {kind} of another package.",
            )
        return name

    return SettingKind(" | ".join((*choices, "package.module:Name")), read, str)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key, as declared."""

    section: str
    name: str
    kind: SettingKind
    default: Value
    help: str
    live: bool = False
    """Whether crawls that run take it over from ``recrawl limit``; all other keys hold from the next start on."""

    @property
    def key(self) -> str:
        """As a flag names it: ``section.name``."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"RECRAWL_{self.section}_{self.name}".upper()


def _setting(default: Value, kind: SettingKind, help: str, *, live: bool = False) -> Any:  # noqa: A002, ANN401 - the field takes the type of its annotation
    return field(default=default, metadata={"kind": kind, "help": help, "live": live})


def _check_span(low_key: str, low: float, high_key: str, high: float) -> None:
    """Two settings that bound the same thing must leave something between them."""
    if low > high:
        raise ConfigError(
            f"{low_key} ({write_duration(low)}) is longer than {high_key} ({write_duration(high)}).",
            "Lower the first or raise the second: with --set, in the environment or in recrawl.yaml.",
        )


POLICY_NAMES = (
    "uniform", "proportional",
    "hacs", "hacs-threshold", "hacs-since-look", "last-obs", "random", "brute-force", "fix", "dyn", "window",
    "state-1", "state-2", "week", "historic-classes", "bayes-classes",
    "nutch", "stormcrawler", "news-crawl", "heritrix", "aduana", "fixed-interval",
    "valued-archive", "valued-freshness", "valued-changes", "valued-harmonic", "valued-age", "valued-blur",
    "valued-links",
)  # fmt: skip
"""As :data:`recrawl.schedule.policies.policy_registry.POLICIES` names them, which takes a second to import."""


# -- the keys ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where pages, visits and the schedule are stored."""

    location: str = _setting(
        "recrawl.db",
        TEXT,
        "A SQLite file, relative to the workspace, or a PostgreSQL URL (postgresql://user@host/name); other "
        "schemes are stores of other packages.",
    )


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How pages are requested."""

    user_agent: str = _setting(
        f"recrawl/{__version__}",
        TEXT,
        "Name and version sent to every host; robots.txt rules are looked up by the name.",
    )
    contact: str = _setting(
        "",
        TEXT,
        "Mail address or URL of the operator, sent with the name. A crawl does not start without it.",
    )
    fetcher: str = _setting(
        "http",
        one_of_or_plugin("fetcher", "http"),
        "Fetcher of pages: the built-in HTTP client, or one of another package.",
    )
    connect_timeout: float = _setting(15.0, DURATION, "Timeout for a connection.")
    idle_timeout: float = _setting(20.0, DURATION, "Timeout without data during a response.")
    timeout: float = _setting(120.0, DURATION, "Timeout for a whole response.")
    protocol: str = _setting(
        "http2",
        one_of("http2", "http1"),
        "Highest HTTP version: HTTP/2 for hosts that offer it over TLS, or HTTP/1.1 for all.",
    )
    allow_networks: str = _setting(
        "",
        TEXT,
        "Non-public networks that may be connected to, such as 10.0.0.0/8 or 127.0.0.1, separated by spaces.",
    )
    allow_files: str = _setting(
        "",
        TEXT,
        "Folders whose files may be pages (recrawl add --access file): absolute paths, separated by colons.",
    )
    validator_audit_rate: float = _setting(
        0.05,
        SHARE,
        "Share of visits that request the whole page instead of a conditional request, to check the validators of the "
        "host. "
        "Two wrong 304s make them unreliable.",
    )
    max_size: int = _setting(
        67_108_864, COUNT, "Maximum size of a response body in bytes; longer ones are cut off and marked as truncated."
    )
    max_in_flight: int = _setting(
        167_772_160,
        COUNT,
        "Memory in bytes for all responses that are being received or not yet recorded; each counts twice. Beyond it, "
        "connections of large responses are not read for a while. One response of fetch.max_size always fits.",
    )

    def agent(self) -> str:
        """The User-Agent header: name, version and contact.

        Raises:
            ConfigError: the contact is not an address.

        >>> FetchSettings(user_agent="bot/1", contact="me@example.org").agent()
        'bot/1 (+mailto:me@example.org)'
        """
        from recrawl.fetch.request import is_contact

        contact = self.contact if "://" in self.contact else f"mailto:{self.contact.removeprefix('mailto:')}"
        if not is_contact(contact):
            fault = f"is {self.contact!r}, which is not an address" if self.contact else "is empty"
            raise ConfigError(
                f"fetch.contact {fault}: hosts could not reach the operator of this crawl.",
                "Set it to your mail address or a page about the crawl, in recrawl.yaml or with RECRAWL_FETCH_CONTACT.",
            )
        return f"{self.user_agent} (+{contact})"


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How long a host is left alone between two requests: factor × the last answer's duration, within bounds."""

    min_delay: float = _setting(3.0, DURATION, "Shortest pause between two requests to one host.", live=True)
    max_delay: float = _setting(30.0, DURATION, "Longest pause caused by a slow response.", live=True)
    factor: float = _setting(5.0, NUMBER, "Pause after a response, as a multiple of its duration.", live=True)
    crawl_delay_cap: float = _setting(
        300.0, DURATION, "Longest Crawl-delay of a robots.txt that is obeyed in full.", live=True
    )
    retry: float = _setting(
        15 * MINUTE,
        DURATION,
        "Wait before a failed page is retried; doubled after each further failure, up to a day. A host that does not "
        "respond at all first waits this long, but at most a minute.",
    )
    ip_delay: float = _setting(
        0.5, DURATION, "Shortest pause between two requests to one IP address, which many hosts may share."
    )
    ip_connections: int = _setting(4, COUNT, "Maximum number of concurrent requests to one IP address.")

    def __post_init__(self) -> None:
        if self.retry == 0:
            raise ConfigError("politeness.retry is 0: a failing page would be requested endlessly.", "Write 1s.")
        _check_span("politeness.min_delay", self.min_delay, "politeness.max_delay", self.max_delay)


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When to come back."""

    policy: str = _setting(
        "valued",
        one_of_or_plugin("policy", "valued", *POLICY_NAMES),
        "Rule for due times: the value of a visit (valued, with schedule.objective), one interval for all pages "
        "(uniform), "
        "a rule of the papers or of another crawler, or a policy of another package.",
    )
    objective: str = _setting(
        "archive",
        one_of("archive", "freshness", "changes", "harmonic", "age", "blur", "links"),
        "Value of a visit in the policy valued. archive is freshness with 5 % harmonic.",
    )
    links: str = _setting(
        "all",
        one_of("all", "internal", "external"),
        "New links that the objective links counts: all, those within a host, or those to other hosts.",
    )
    budget: float = _setting(
        1_000.0,
        VISITS,
        "Maximum visits per day, over all workers. Other periods: 500/h, 2/s.",
        live=True,
    )
    burst: float = _setting(
        HOUR,
        DURATION,
        "Time for which unused budget is saved, to be spent at once later.",
        live=True,
    )
    discovery_share: float = _setting(
        0.5,
        SHARE,
        "Maximum share of the budget for new pages; the rest is reserved for revisits.",
        live=True,
    )
    min_interval: float = _setting(HOUR, DURATION, "Shortest interval between visits of a page in the policy valued.")
    max_interval: float = _setting(
        180 * DAY, DURATION, "Longest interval between visits of a page in the policy valued."
    )

    theta: str = _setting(
        DEFAULT,
        _THETA,
        "Probability of a change from which hacs-threshold visits a page (theta of HACS). Default: 0.7.",
    )
    window: str = _setting(
        DEFAULT, _PERIOD, "Past from which hacs and hacs-threshold learn (w of HACS). Default: all of it."
    )
    horizon: str = _setting(
        DEFAULT,
        _PERIOD,
        "Time ahead for which hacs and hacs-threshold rank pages (e of HACS), and time between rounds of last-obs and "
        "brute-force. Default: 1w.",
    )
    start: str = _setting(
        DEFAULT,
        _PERIOD,
        "First interval of a page in fix, dyn, window, state-1, state-2, nutch, stormcrawler, news-crawl and heritrix, "
        "and the interval of fixed-interval.",
    )
    shortest: str = _setting(
        DEFAULT,
        _PERIOD,
        "Shortest interval in the same policies except news-crawl and fixed-interval, and in proportional and "
        "hacs-since-look.",
    )
    longest: str = _setting(
        DEFAULT,
        _PERIOD,
        "Longest interval in the policies of schedule.shortest, and in hacs, hacs-threshold, last-obs.",
    )
    classes: str = _setting(
        DEFAULT,
        _INTERVALS,
        "Intervals of the classes of historic-classes and bayes-classes, separated by spaces. Default: those of the "
        "trained model, found by clustering the rates of the pages; without a model 1d 3d 31d 96d.",
    )
    windows: str = _setting(
        DEFAULT,
        _WINDOWS,
        "Visits after which historic-classes classifies a page again, for each class; the last number holds for all "
        "further classes. Default: 3 2 2 1.",
    )

    def __post_init__(self) -> None:
        bounds = [(name, parse_duration(text)) for name in ("shortest", "start", "longest")
                  if (text := getattr(self, name)) != DEFAULT]  # fmt: skip
        for (low, least), (high, most) in pairwise(bounds):
            _check_span(f"schedule.{low}", least, f"schedule.{high}", most)
        if self.min_interval == 0:
            raise ConfigError("schedule.min_interval is 0: a page would be due at every moment.", "Write at least 1s.")
        _check_span("schedule.min_interval", self.min_interval, "schedule.max_interval", self.max_interval)


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """What a continuous crawl takes in, and how much at once."""

    scope: str = _setting(
        "prefix",
        one_of("page", "page-spa", "prefix", "host", "domain", "any", "custom"),
        "Links to follow: none; into the folders, hosts or domains of the added pages; all; or only those that match "
        "crawl.include.",
    )
    include: str = _setting(
        "",
        TEXT,
        "Regular expressions, one per line or separated by ;;, searched in URLs: matching links are always followed.",
    )
    exclude: str = _setting(
        "", TEXT, "Regular expressions of links that are never followed. Known pages stay in the schedule."
    )
    max_depth: int = _setting(20, COUNT, "Maximum number of folders in a URL; deeper URLs count as traps.")
    max_pages_per_host: int = _setting(
        100_000, COUNT, "Maximum number of pages per host; links to further ones are not followed. This bounds traps."
    )
    nofollow: str = _setting(
        "obey",
        one_of("obey", "ignore"),
        "Treatment of links marked nofollow by rel, meta robots or X-Robots-Tag.",
    )
    page_requisites: str = _setting(
        "leave",
        one_of("leave", "take"),
        "Whether page requisites (images, style sheets, scripts and similar) within the scope become pages, too.",
    )
    feeds_every: float = _setting(
        HOUR,
        DURATION,
        "Interval between reads of a feed that a page links to (rel=alternate) or recrawl add --feed added.",
    )
    concurrency: int = _setting(64, COUNT, "Maximum number of concurrent requests over all hosts.", live=True)
    lease_time: float = _setting(
        2 * MINUTE,
        DURATION,
        "Duration of a lease on pages. A running worker renews it; after a crash other workers wait this long at most.",
    )
    metrics: str = _setting(
        "",
        TEXT,
        "Address and port of the metrics for Prometheus, for example 127.0.0.1:9090. Empty for none.",
    )
    log_level: str = _setting(
        "info",
        one_of("debug", "info", "warn", "error", "fatal"),
        "Lowest level of events that are written to recrawl.log.",
    )
    log_size: int = _setting(
        100_000_000, COUNT, "Size in bytes after which recrawl.log and crawl.log are rotated. 0 for never."
    )

    def __post_init__(self) -> None:
        if self.lease_time < MINUTE / 2:
            raise ConfigError("crawl.lease_time is below 30 s.", "Set at least 30s: one request may take that long.")
        if self.concurrency == 0:
            raise ConfigError("crawl.concurrency is 0: nothing would be requested.", "Write at least 1.")
        if self.include or self.exclude or self.scope == "custom":
            self.scope_rules()

    def scope_rules(self) -> ScopeRules:
        """What a continuous crawl takes in.

        Raises:
            ConfigError: a pattern cannot be read, or is missing.
        """
        from recrawl.crawl.visit.scope import ScopeKind, ScopeRules
        from recrawl.detect.change_criteria import each_written

        include, exclude = (tuple(each_written(text)) for text in (self.include, self.exclude))
        return ScopeRules(kind=ScopeKind(self.scope), include=include, exclude=exclude, max_depth=self.max_depth)


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """What counts as a change. Rules have ;; between them; URL* => RULE is for some pages only."""

    detector: str = _setting(
        "parts",
        one_of_or_plugin("detector", "parts", "bytes"),
        "How captures are compared: text, links and data without noise (parts), the bytes alone (bytes; finds no "
        "links), or by a detector of another package.",
    )
    min_change: float = _setting(
        0.0,
        SHARE,
        "Share of the text that must differ, from 0 to 1. 0 for any visible difference, 0.1 to ignore small edits.",
        live=True,
    )
    row_order: str = _setting(
        "count",
        one_of("count", "ignore"),
        "Whether a new order of rows in CSV, or of values in JSON lists, is a change.",
        live=True,
    )
    confirm_changes: str = _setting(
        "yes",
        one_of("yes", "no"),
        "Whether a difference that may be noise is confirmed by a second fetch before it counts as a change.",
    )
    most_masked: float = _setting(
        0.5,
        SHARE,
        "Largest share of the text of a page that learned noise may mask. Larger parts are always compared.",
        live=True,
    )
    learn_from_archives: str = _setting(
        "yes",
        one_of("yes", "no"),
        "Whether parts that differ in nearly every capture of nearly every page of an imported or assessed archive, "
        "such as counters, are noise. Live visits start from this noise and audit it.",
    )
    ignore_selectors: str = _setting("", TEXT, "CSS selectors of elements that are not compared.", live=True)
    only_selectors: str = _setting(
        "", TEXT, "CSS selectors of the only elements that are compared, if any are given.", live=True
    )
    ignore_text: str = _setting("", TEXT, "Regular expressions of text that is not compared.", live=True)
    read_time: float = _setting(
        10.0,
        DURATION,
        "Maximum CPU time for parsing one response. A response that takes more is compared by its bytes.",
    )
    read_memory: int = _setting(
        167_772_160,
        COUNT,
        "Maximum memory in bytes for parsing one response; beyond it the response is compared by its bytes.",
    )

    def standards(self) -> ChangeCriteria:
        """The rules of the change detector, without learned noise.

        Raises:
            ConfigError: a rule cannot be read.
        """
        from recrawl.detect import ChangeCriteria
        from recrawl.detect.change_criteria import IgnoreRules

        rules = IgnoreRules.parse(self.ignore_selectors, self.ignore_text, self.only_selectors)
        return ChangeCriteria(self.min_change, self.row_order == "count", rules, most_masked=self.most_masked)

    def parse_limits(self) -> ParseLimits:
        """What it may take to read one answer."""
        from recrawl.parse.parse_pool import ParseLimits

        return ParseLimits(max(self.read_time, 1.0), self.read_memory)


@dataclass(frozen=True, slots=True)
class PredictSettings:
    """What is expected of pages that have little history of their own."""

    model: str = _setting(
        "default", TEXT, "Name of the model made by recrawl predict train, used if it exists. Empty for none."
    )
    retrain: float = _setting(
        2.0,
        NUMBER,
        "Factor between predicted and observed changes or new links of new pages from which a run trains the model "
        "again. "
        "0 for never.",
    )
    train_from: int = _setting(
        200,
        COUNT,
        "Number of pages with two or more observations from which a run trains the first model, in a process of its "
        "own; later again when there are four times as many. 0 for never.",
    )


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Where the bytes go."""

    prefix: str = _setting("recrawl", TEXT, "First part of the name of every WARC file.")
    roll_size: int = _setting(
        1_000_000_000, COUNT, "Size in bytes after which a WARC file is closed and a new one started."
    )
    resources: str = _setting(
        "captures",
        one_of("captures", "pages"),
        "Treatment of robots.txt, style sheets, scripts, images and similar in imported or assessed archives: "
        "captures only, "
        "or pages to revisit.",
    )
    storage: str = _setting(
        "",
        _location(s3=True),
        "Object storage that closed WARC files are uploaded to: s3://bucket/prefix. Empty for none.",
    )
    storage_endpoint: str = _setting(
        "", TEXT, "URL of the S3 API, for example https://s3.example.org. Empty for AWS or AWS_ENDPOINT_URL."
    )
    storage_region: str = _setting("", TEXT, "Region of the bucket. Empty for AWS_REGION or the files of AWS.")
    keep_local: str = _setting(
        "always",
        KEEP,
        "Time for which an uploaded WARC file stays in the folder warc/, too: a duration, or always.",
    )
    cache_size: int = _setting(
        1_000_000_000, COUNT, "Maximum size in bytes of the folder cache/, for parts of WARC files that are elsewhere."
    )
    locations: str = _setting(
        "",
        _location(),
        "Further places of WARC files, separated by spaces: s3://bucket/prefix, or http(s)://host:port/warc of the "
        "recrawl serve of another worker (token in RECRAWL_PEER_TOKEN).",
    )

    def storage_options(self, cache: Path) -> StorageOptions:
        """Where archive files are besides ``warc/``; what is read of them is kept in the folder ``cache``."""
        from recrawl.formats.warc.archive_folder import StorageOptions, locations_of
        from recrawl.formats.warc.archive_storage import S3Options

        return StorageOptions(
            self.storage,
            locations_of(self.locations),
            S3Options(self.storage_endpoint, self.storage_region),
            cache,
            self.cache_size,
            None if self.keep_local == _ALWAYS else parse_duration(self.keep_local),
        )


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """Several stores that crawl together, each with its own workers: a unit each."""

    name: str = _setting("", TEXT, "Name of this unit, different from all others; empty if there are no other units.")
    coordination: str = _setting(
        "",
        TEXT,
        "The database by which the units find each other, the same for all of them: a SQLite file, relative to the "
        "workspace, or a PostgreSQL URL. Never the store of a unit.",
    )
    address: str = _setting("", TEXT, "URL of this unit's server (recrawl serve), shown to the other units.")
    stand_in_from: float = _setting(
        0.0,
        NUMBER,
        "Importance from which on another unit visits a page while its own unit is silent for more than five minutes. "
        "0 for no page.",
    )


@dataclass(frozen=True, slots=True)
class FrontierSettings:
    """What holds for crawlers of others that ask this workspace what to fetch."""

    refetch_date: str = _setting(
        "policy",
        one_of("policy", "client", "ignore"),
        "Who decides when a reported URL is handed out again: the policy, where a client may still say never; the "
        "client, where it names a date; or the policy alone, whatever the client says.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a workspace, by stage."""

    store: StoreSettings = StoreSettings()
    fetch: FetchSettings = FetchSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    crawl: CrawlSettings = CrawlSettings()
    detect: DetectSettings = DetectSettings()
    predict: PredictSettings = PredictSettings()
    archive: ArchiveSettings = ArchiveSettings()
    units: UnitSettings = UnitSettings()
    frontier: FrontierSettings = FrontierSettings()


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
            said = entry.metadata
            yield Setting(section, entry.name, said["kind"], default, said["help"], said["live"])


def without_password(text: str) -> str:
    """A URL that is fit to be seen; any other text as it is.

    >>> without_password("postgresql://me:secret@host/name"), without_password("recrawl.db")
    ('postgresql://me:***@host/name', 'recrawl.db')
    """
    return re.sub(r"(://[^:/@]*:).*@", r"\1***@", text)
