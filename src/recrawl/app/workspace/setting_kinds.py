"""How values of settings are written, read and shown, one kind for each type of value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recrawl.errors import ConfigError
from recrawl.time import DAY, HOUR, MINUTE, parse_duration

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
