"""The settings of a workspace, declared once: name, type, default, unit and help of every key.

One frozen dataclass per stage. The configuration file, the environment variables, the flags, the file that
``recrawl init`` writes and the reference page all follow from the fields below. Nothing here reads
anything: :mod:`recrawl.cli.configuration` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from recrawl import __version__
from recrawl.cli.setting_kinds import COUNT, DURATION, NUMBER, SHARE, TEXT, VISITS, Kind, Value, one_of, write_duration
from recrawl.errors import ConfigError
from recrawl.time import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from recrawl.crawl.scope import ScopeRules
    from recrawl.detect import Standards


@dataclass(frozen=True, slots=True)
class Setting:
    """One key, as declared."""

    section: str
    name: str
    kind: Kind
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


def _setting(default: Value, kind: Kind, help: str, *, live: bool = False) -> Any:  # noqa: A002, ANN401 - the field takes the type of its annotation
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
"""As :data:`recrawl.schedule.policies.POLICIES` names them, which takes a second to import."""


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
    protocol: str = _setting(
        "http2",
        one_of("http2", "http1"),
        "The newest HTTP that is spoken: HTTP/2 with hosts that offer it over TLS, or HTTP/1.1 with all.",
    )
    allow_networks: str = _setting(
        "",
        TEXT,
        "Networks beside the public ones that may be connected to, as 10.0.0.0/8 or 127.0.0.1, with spaces between.",
    )
    allow_files: str = _setting(
        "",
        TEXT,
        "Folders whose files may be pages (recrawl add --access file), as absolute paths with : between them.",
    )
    check_validators: float = _setting(
        0.05,
        SHARE,
        "Share of visits that ask for the whole page although the server could say that it did not change, to see "
        "whether the server can be believed. One that lied twice is not.",
    )
    max_size: int = _setting(
        67_108_864, COUNT, "Bytes of body after which an answer is cut off and marked as truncated."
    )

    def agent(self) -> str:
        """The User-Agent header: name, version and contact.

        Raises:
            ConfigError: nobody can be reached by the contact.

        >>> FetchSettings(user_agent="bot/1", contact="me@example.org").agent()
        'bot/1 (+mailto:me@example.org)'
        """
        from recrawl.fetch.request import is_contact

        contact = self.contact if "://" in self.contact else f"mailto:{self.contact.removeprefix('mailto:')}"
        if not is_contact(contact):
            fault = f"is {self.contact!r}, which is no address" if self.contact else "is empty"
            raise ConfigError(
                f"fetch.contact {fault}: hosts could not reach whoever runs this crawl.",
                "Set it to your mail address or a page about the crawl, in recrawl.yaml or with RECRAWL_FETCH_CONTACT.",
            )
        return f"{self.user_agent} (+{contact})"


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How long a host is left alone between two requests: factor × the last answer's duration, within bounds."""

    min_delay: float = _setting(3.0, DURATION, "Shortest pause between two requests to one host.", live=True)
    max_delay: float = _setting(30.0, DURATION, "Longest pause that a slow answer alone can cause.", live=True)
    factor: float = _setting(
        5.0, NUMBER, "Pause after an answer, as a multiple of how long the answer took.", live=True
    )
    crawl_delay_cap: float = _setting(
        300.0, DURATION, "Longest Crawl-delay of a robots.txt that is honoured in full.", live=True
    )
    retry: float = _setting(
        15 * MINUTE,
        DURATION,
        "Wait before a page is tried again that could not be had; twice as long after each further failure, up to a "
        "day. A host that does not answer at all is left alone for so long at first, but no more than a minute.",
    )
    ip_delay: float = _setting(
        0.5, DURATION, "Shortest pause between two requests to one IP address, which many hosts may share."
    )
    ip_connections: int = _setting(4, COUNT, "Most requests at once to one IP address.")

    def __post_init__(self) -> None:
        if self.retry == 0:
            raise ConfigError("politeness.retry is 0: a page that fails would be asked for without end.", "Write 1s.")
        _check_span("politeness.min_delay", self.min_delay, "politeness.max_delay", self.max_delay)


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When to come back."""

    policy: str = _setting(
        "valued",
        one_of("valued", *POLICY_NAMES),
        "How due times are found: from the value of a visit (valued, with schedule.objective), one interval for all "
        "pages (uniform), or by a rule of the papers or of another crawler.",
    )
    objective: str = _setting(
        "archive",
        one_of("archive", "freshness", "changes", "harmonic", "age", "blur", "links"),
        "What a visit is worth, to the policy valued. archive is freshness with 5 % harmonic.",
    )
    links: str = _setting(
        "all",
        one_of("all", "internal", "external"),
        "Which new links the objective links wants: all, those within a host, or those that lead elsewhere.",
    )
    budget: float = _setting(
        1_000.0,
        VISITS,
        "Visits a day: the schedule is made for so many, and no more are made, by all runs together. "
        "10000/day, 500/h and 2/s say the same of other periods.",
        live=True,
    )
    burst: float = _setting(
        HOUR,
        DURATION,
        "Time whose budget can be saved up while nothing is due, and then be spent at once.",
        live=True,
    )
    new_share: float = _setting(
        0.5,
        SHARE,
        "Share of the budget that pages never seen may take: the rest is kept for coming back.",
        live=True,
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
        one_of("page", "page-spa", "prefix", "host", "domain", "any", "custom"),
        "Which links are followed: none, those into the folders of the pages there are, into their hosts or domains, "
        "all, or only those that crawl.include names.",
    )
    include: str = _setting(
        "",
        TEXT,
        "Regular expressions, a line each or with ;; between them, looked for in URLs: these are always followed.",
    )
    exclude: str = _setting(
        "", TEXT, "Likewise, for links that are not followed whatever else is said. Pages that are there already stay."
    )
    max_depth: int = _setting(20, COUNT, "Folders a URL may be deep; deeper ones are taken for a trap.")
    max_pages_per_host: int = _setting(
        100_000, COUNT, "Pages of a host beyond which links to further ones are not followed: traps end there at last."
    )
    nofollow: str = _setting(
        "obey",
        one_of("obey", "ignore"),
        "What to do with links that a page asks robots not to follow, by rel, meta robots or X-Robots-Tag.",
    )
    embeds: str = _setting(
        "leave",
        one_of("leave", "take"),
        "Whether pictures, styles, scripts and the like that pages embed become pages too, within the scope.",
    )
    feeds_every: float = _setting(
        HOUR,
        DURATION,
        "How often a feed is looked at that pages name (link rel=alternate) or recrawl add --feed named.",
    )
    concurrency: int = _setting(64, COUNT, "Requests at once, over all hosts.", live=True)
    lease_time: float = _setting(
        2 * MINUTE,
        DURATION,
        "How long a worker has pages to itself. A worker that runs renews this; after a crash others wait no longer.",
    )
    metrics: str = _setting(
        "",
        TEXT,
        "Address and port at which a run tells Prometheus how it goes, for example 127.0.0.1:9090. Empty for nowhere.",
    )
    log_level: str = _setting(
        "info",
        one_of("debug", "info", "warn", "error", "fatal"),
        "Events of recrawl.log that matter less than this are not written.",
    )
    log_size: int = _setting(
        100_000_000, COUNT, "Bytes after which recrawl.log and crawl.log are put aside and begun anew. 0 for never."
    )

    def __post_init__(self) -> None:
        if self.lease_time < MINUTE / 2:
            raise ConfigError("crawl.lease_time is below 30 s.", "Write at least 30s: one request may take that long.")
        if self.concurrency == 0:
            raise ConfigError("crawl.concurrency is 0: nothing would be asked for.", "Write at least 1.")
        if self.include or self.exclude or self.scope == "custom":
            self.scope_rules()

    def scope_rules(self) -> ScopeRules:
        """What a continuous crawl takes in.

        Raises:
            ConfigError: a pattern cannot be read, or is missing.
        """
        from recrawl.crawl.scope import ScopeKind, ScopeRules
        from recrawl.detect.rules import each_written

        include, exclude = (tuple(each_written(text)) for text in (self.include, self.exclude))
        return ScopeRules(kind=ScopeKind(self.scope), include=include, exclude=exclude, max_depth=self.max_depth)


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """What counts as a change. Rules have ;; between them; URL* => RULE is for some pages only."""

    min_change: float = _setting(
        0.0,
        SHARE,
        "Share of the text that must differ, from 0 to 1. 0 for any visible difference, 0.1 to pass over small edits.",
        live=True,
    )
    row_order: str = _setting(
        "count",
        one_of("count", "ignore"),
        "Whether another order of rows in CSV, or of values in JSON lists, is a change.",
        live=True,
    )
    second_looks: str = _setting(
        "yes",
        one_of("yes", "no"),
        "Whether a page with a difference that may be noise is asked for again at once, before it is called a change.",
    )
    most_masked: float = _setting(
        0.5,
        SHARE,
        "Largest share of a page's text that learned noise may hide. What carries more is compared, however often it "
        "differs.",
        live=True,
    )
    learn_from_archives: str = _setting(
        "yes",
        one_of("yes", "no"),
        "Whether parts that differ in nearly every capture of nearly every page of an archive, such as counters, are "
        "noise there. Holds for what is imported or assessed.",
    )
    ignore_selectors: str = _setting("", TEXT, "CSS selectors of elements that are not compared.", live=True)
    only_selectors: str = _setting(
        "", TEXT, "CSS selectors of elements that alone are compared, if any is named.", live=True
    )
    ignore_text: str = _setting("", TEXT, "Regular expressions of text that is not compared.", live=True)
    read_time: float = _setting(
        10.0, DURATION, "CPU time that reading one answer may take. An answer that takes more is compared by its bytes."
    )
    read_memory: int = _setting(268_435_456, COUNT, "Bytes of memory that reading one answer may take; likewise.")

    def standards(self) -> Standards:
        """What a judge is to go by, without what is learned.

        Raises:
            ConfigError: a rule cannot be read.
        """
        from recrawl.detect import Standards
        from recrawl.detect.rules import Rules

        rules = Rules.parse(self.ignore_selectors, self.ignore_text, self.only_selectors)
        return Standards(self.min_change, self.row_order == "count", rules, most_masked=self.most_masked)


@dataclass(frozen=True, slots=True)
class PredictSettings:
    """What is expected of pages that have little history of their own."""

    model: str = _setting(
        "default", TEXT, "The model, if there is one of this name: recrawl predict train makes it. Empty for none."
    )
    retrain: float = _setting(
        2.0,
        NUMBER,
        "A run trains the model anew if the changes or new links it expects of new pages and those found differ by "
        "more than this factor. 0 for never.",
    )


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Where the bytes go."""

    prefix: str = _setting("recrawl", TEXT, "First part of the name of every WARC file.")
    roll_size: int = _setting(1_000_000_000, COUNT, "Bytes after which a WARC file is closed and a new one begun.")
    resources: str = _setting(
        "captures",
        one_of("captures", "pages"),
        "What robots.txt, style sheets, scripts, pictures and the like are in archives that are imported or assessed: "
        "captures only, or pages to come back to.",
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
