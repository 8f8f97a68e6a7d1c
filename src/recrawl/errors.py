"""The errors a user can cause, each with a sentence that says what to do.

    RecrawlError
    ├── InputError      their data: which file, which position, why
    ├── ConfigError     their settings and options: which one, from where
    ├── StoreError      the database: missing, newer, damaged
    │   ├── StoreMissingError  not made yet
    │   ├── StoreAwayError  out of reach for now
    │   └── DiskFullError
    ├── StorageError    archive files elsewhere: object storage, or the server of another worker
    ├── FetchError      the remote side; becomes data (a failed visit) before it leaves ``fetch/``
    └── MissingExtraError   an optional library is not installed

Anything else that is raised is a bug and keeps its traceback.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from importlib import import_module
from types import ModuleType


class ExitCode(enum.IntEnum):
    """Process exit codes, stable and shared with Browsertrix (conventions S4)."""

    OK = 0
    ERROR = 1
    DISK_FULL = 3
    BAD_CONFIG = 4
    FAILED = 9
    INTERRUPTED = 11
    FORCED = 13
    SIZE_LIMIT = 14
    TIME_LIMIT = 15
    DISK_SHARE = 16
    FATAL = 17
    RATE_LIMITED = 18


class RecrawlError(Exception):
    """What went wrong, and the remedy."""

    exit_code = ExitCode.ERROR

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        if not self.remedy:
            return self.what
        return f"{self.what}{'' if self.what.endswith(('.', '?', '!', ':')) else '.'} {self.remedy}"


class InputError(RecrawlError):
    """A file or answer that cannot be read, with the place where it stops making sense."""

    def __init__(self, what: str, remedy: str = "", *, source: str = "", position: int | None = None) -> None:
        place = source if position is None else f"{source} at byte {position}"
        super().__init__(f"{place}: {what}" if place else what, remedy)
        self.source = source
        self.position = position


def our_fault(error: Exception, source: str, position: int | None = None) -> InputError:
    """The error for a record on which our own code failed: the record is skipped, and the rest is processed.

    >>> str(our_fault(ValueError("x"), "a.warc.gz", 7))
    "a.warc.gz at byte 7: recrawl itself failed here (ValueError('x')). Please report it."
    """
    return InputError(f"recrawl itself failed here ({error!r})", "Please report it.", source=source, position=position)


class ConfigError(RecrawlError):
    """A setting or an option that is unknown, has a wrong value, or lacks or excludes another one."""

    exit_code = ExitCode.BAD_CONFIG


class StoreError(RecrawlError):
    """The store is missing, from a newer recrawl, damaged or out of reach."""

    passing = False
    """Whether it may be over by itself: who can wait does, and tries again."""


class StoreMissingError(StoreError):
    """There is no store yet at a place where there may be one."""


class StoreAwayError(StoreError):
    """The store exists but cannot be reached or written now; nothing acknowledged is lost."""

    passing = True


class DiskFullError(StoreError):
    """Nothing more can be written; nothing acknowledged is lost."""

    exit_code = ExitCode.DISK_FULL
    passing = True


class StorageError(RecrawlError):
    """Archive files that are kept elsewhere: out of reach, refused, or not what they were."""


class FetchError(RecrawlError):
    """The remote side failed. Recorded as a failed visit, not shown as a crash."""


class MissingExtraError(RecrawlError):
    """An optional library is needed and not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"This needs the Python module {module!r}.", f"Install it with: pip install 'recrawl[{extra}]'"
        )


def question_of(name: str, known: Collection[str]) -> str:
    """Whether the nearest known name was meant; nothing where none is near.

    >>> question_of("nutsch", ["nutch", "uniform"]), question_of("foo", ["nutch", "uniform"])
    ("Did you mean 'nutch'?", '')
    """
    from difflib import get_close_matches

    nearest = get_close_matches(name, known, n=1)
    return f"Did you mean {nearest[0]!r}?" if nearest else ""


def meant(name: str, known: Collection[str], where: str = "") -> str:
    """The remedy for a name that is not known: one that is near, and all of them, or ``where`` they are if many.

    >>> meant("nutsch", ["nutch", "uniform"])
    "Did you mean 'nutch'? There are: nutch, uniform."
    >>> meant("foo", list(map(str, range(99))), "recrawl list hosts shows all.")
    'recrawl list hosts shows all.'
    """
    listed = where if where and not 0 < len(known) <= _FEW else f"There are: {', '.join(known)}."
    return f"{question_of(name, known)} {listed}".lstrip()


_FEW = 12
"""Names that can be read at a glance."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    >>> require("json", "columns").__name__
    'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(module, extra) from missing


def counted(number: float, one: str, many: str = "") -> str:
    """A number and its noun, in the singular for 1; ``many`` is a plural that is not made with an s.

    >>> counted(1, "page"), counted(1200, "page"), counted(2, "policy", "policies"), counted(1.5, "day")
    ('1 page', '1,200 pages', '2 policies', '1.5 days')
    """
    figure = f"{number:,g}" if number % 1 else f"{int(number):,}"
    return f"{figure} {one if number == 1 else many or f'{one}s'}"


def four_digits(number: float) -> str:
    """A number with four significant digits, and all before the point.

    >>> four_digits(983_123.4), four_digits(90.2916), four_digits(0.02), four_digits(100.0)
    ('983,123', '90.29', '0.02', '100')
    """
    return f"{number:,.0f}" if abs(number) >= _WHOLE else f"{number:.4g}"


_WHOLE = 1_000.0
"""Numbers from here on are written without decimals."""
