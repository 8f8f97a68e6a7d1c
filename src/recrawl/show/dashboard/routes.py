"""What the dashboard can be asked, as data: one list from which routes, JSON twins and the OpenAPI document are made.

A view is a question that changes nothing. One function answers it; people get the answer through a template, programs
as JSON. An action changes something, and is only done for somebody who may (see ``security.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Answer: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["string", "integer", "number", "boolean"]
LARGEST = 2**63 - 1
"""Of the integers that a store can hold."""
LONGEST_TEXT = 2_000
"""Characters of a text that is asked for."""


class RefusedError(Exception):
    """A request that is not answered: why, what to do, and the HTTP status that says so."""

    def __init__(self, why: str, remedy: str = "", *, status: int = 400) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.status = status


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that can be said in a question or an order."""

    name: str
    meaning: str
    kind: Kind = "string"
    default: Value = None
    """Where it is left out; ``None`` with ``required`` false means that nothing was said."""
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    """What a text must match as a whole, for the document; whoever reads the text checks it. Empty for any."""
    place: Literal["query", "path", "form"] = "query"

    def parse(self, text: str | None) -> Value:
        """What a text says.

        >>> Parameter("limit", "Rows.", "integer", default=50, most=200).parse("20")
        20

        Raises:
            RefusedError: it makes no sense.
        """
        if text is None or (text == "" and not self.required and self.kind != "string"):
            if self.required:
                raise RefusedError(f"{self.name} is missing.", self.meaning)
            return self.default
        match self.kind:
            case "integer" | "number":
                return self._number(text)
            case "boolean":
                if text.lower() not in _BOOLEANS:
                    raise RefusedError(f"{self.name} is {_short(text)}, not true or false.", self.meaning)
                return _BOOLEANS[text.lower()]
            case "string":
                return self._text(text)

    def _number(self, text: str) -> int | float:
        text = text.strip()
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            raise RefusedError(f"{self.name} is {_short(text)}, which is no number.", self.meaning)
        value: int | float = int(text) if _WHOLE.fullmatch(text) else float(text)
        if self.kind == "integer" and isinstance(value, float):  # 2.0 is a whole number, in JSON, too
            if not value.is_integer() or abs(value) >= _EXACT:
                raise RefusedError(f"{self.name} is no whole number that can be.", self.meaning)
            value = int(value)
        least = self.least if self.least is not None else -LARGEST
        most = self.most if self.most is not None else LARGEST
        if not least <= value <= most:
            raise RefusedError(f"{self.name} is {_short(text)}; it must be {least:g} to {most:g}.", self.meaning)
        return value

    def _text(self, text: str) -> str:
        if not text and self.required:
            raise RefusedError(f"{self.name} is missing.", self.meaning)
        if self.choices and text not in self.choices:
            raise RefusedError(f"{self.name} is {_short(text)}.", f"It must be one of: {', '.join(self.choices)}.")
        if len(text) > LONGEST_TEXT:
            raise RefusedError(f"{self.name} is longer than {LONGEST_TEXT:,} characters.", self.meaning)
        if any(ord(letter) < _PRINTABLE for letter in text):
            raise RefusedError(f"{self.name} has control characters in it.", self.meaning)
        return text


_BOOLEANS = {
    **dict.fromkeys(("true", "1", "on", "yes"), True),
    **dict.fromkeys(("false", "0", "off", "no", ""), False),
}
"""Programs write True, forms on, people yes: all of them mean it, in whatever case."""
_PRINTABLE = 32
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
"""As JSON writes numbers; zeros may lead."""
_LONGEST_NUMBER = 40
_EXACT = 2.0**53
"""Below this every whole number is a float of its own."""


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")  # noqa: PLR2004 - enough to recognise it


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that makes sense."""

    values: Mapping[str, Any]
    """By name, one for each parameter."""
    now: float
    """Seconds since the epoch."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as the parameter declares
        return self.values[name]


@dataclass(frozen=True, slots=True)
class View:
    """A page of the dashboard and its JSON twin."""

    path: str
    """Of the page, with ``{name}`` where a parameter stands."""
    api: str
    """Of its twin."""
    title: str
    summary: str
    answer: Callable[[Asked], Answer | bytes]
    template: str = ""
    """Below ``templates/``; empty for facts that only programs ask for, which have no page."""
    parameters: tuple[Parameter, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    """What the answer holds, by key, in words."""
    menu: str = ""
    """Its word in the navigation; empty if it is not there."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an action."""

    said: str
    """A sentence."""
    back: str = "/"
    """The page to show next, below this server."""
    facts: Answer = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: a POST, from a form or from a program."""

    path: str
    summary: str
    do: Callable[[Asked], Done]
    parameters: tuple[Parameter, ...] = ()


def parse(
    parameters: tuple[Parameter, ...], given: Mapping[str, str], also: frozenset[str] = frozenset()
) -> dict[str, Value]:
    """What is said by name; names that mean nothing are refused, except ``also``."""
    known = {parameter.name for parameter in parameters} | also
    for name in given:
        if name not in known:
            wanted = ", ".join(sorted(known)) or "none"
            raise RefusedError(f"There is no parameter {_short(name)} here.", f"Parameters are: {wanted}.")
    return {parameter.name: parameter.parse(given.get(parameter.name)) for parameter in parameters}
