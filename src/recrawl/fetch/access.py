"""Access methods: how a page is asked for where one plain request is not the way.

Rules of this file:
 1. A method does no I/O. A visit is a conversation: the method says what to ask, is told what came, and in the end says
    which capture is the version of the page. Whoever carries it out keeps robots.txt and the pauses of the host before
    each request, so a method cannot be impolite.
 2. Nothing that comes from the remote side makes a method raise. A conversation that failed ends in a capture that says
    so, and says nothing about change.
 3. Options are text. A method checks them when a page is added, and returns what is to be kept.

Others can bring methods: see ``access_methods.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from recrawl.errors import ConfigError
from recrawl.fetch.request import Request
from recrawl.model import Capture, Validators
from recrawl.model.failures import BROKEN_OFF
from recrawl.urls import address, host_of

_REDIRECTS = range(300, 400)
_NOT_MODIFIED = 304

Options: TypeAlias = Mapping[str, str]
"""What a source needs beside its URL, by name."""
Conversation: TypeAlias = Generator[Request, Capture, Capture]
"""Yields what to ask, is sent what came, returns the version of the page."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page and how it is asked for, as it is to be kept."""

    url: str
    """Names the page: an http(s) URL, another one for each source."""
    options: Options = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    """Sentences that whoever adds the source should read."""


def in_this_process(parser: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what the parser gives
    """Call a parser at once."""
    return parser(*arguments)


@dataclass(frozen=True, slots=True)
class Question:
    """What one visit is to find out."""

    url: str
    """Of the page."""
    options: Options
    validators: Validators
    """What the page last said of its version; empty ones ask without condition."""
    body_of: Callable[[Capture], bytes]
    """The decoded body of a capture; raises an ``InputError`` if it is broken."""
    parse: Callable[..., Any] = in_this_process
    """Calls a parser with arguments, all of which can be pickled: parsers of foreign bytes run where they harm nobody.
    Raises an ``InputError`` if the budget of time or memory is not enough."""


@runtime_checkable
class AccessMethod(Protocol):
    """How one kind of source is asked for. An instance serves all sources of its kind and keeps no state."""

    @property
    def name(self) -> str:
        """As ``recrawl add --access`` takes it."""
        ...

    @property
    def summary(self) -> str:
        """What it is for, in a sentence."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The options that can be given, each with words that explain it."""
        ...

    def source(self, url: str, options: Options) -> Source:
        """The source that somebody describes by a URL and options.

        Raises:
            ConfigError: an option is missing or wrong.
        """
        ...

    def talk(self, question: Question) -> Conversation:
        """Begin a visit. At least one request is made."""
        ...


class Talk:
    """A visit under way: what to ask now, then what came, until there is a version."""

    def __init__(self, method: AccessMethod, question: Question) -> None:
        self._conversation = method.talk(question)
        self.request = next(self._conversation)
        """What to ask now."""

    def hear(self, capture: Capture) -> Capture | None:
        """Take in the answer: the version of the page, or ``None`` if there is another request to make.

        Raises:
            TypeError: the method ends without a version, or the conversation is over already.
        """
        try:
            self.request = self._conversation.send(capture)
        except StopIteration as end:
            if not isinstance(end.value, Capture):
                msg = f"a conversation ended with {end.value!r} instead of a capture"
                raise TypeError(msg) from end
            return end.value
        return None


def failed(question: Question, last: Capture, why: str, began: float | None = None) -> Capture:
    """A version that is none, since the answer ``last`` cannot be used.

    >>> one = Question("http://x/", {}, Validators(), lambda capture: capture.raw_body)
    >>> failed(one, Capture("http://x/?page=2", 9.0, 200), "The answer ends too early.", began=5.0).error
    'The answer ends too early.'
    """
    time = last.time if began is None else began
    duration = last.time + last.duration - time
    return Capture(question.url, time, 0, ip=last.ip, duration=duration, error=why, failure=BROKEN_OFF)


def made(question: Question, first: Capture, last: Capture, body: bytes, media_type: str) -> Capture:
    """A version that was put together from answers, the first and the last of which are given."""
    return Capture(
        question.url,
        first.time,
        200,
        made_head(200, "OK", {"Content-Type": media_type}),
        body,
        ip=last.ip,
        duration=last.time + last.duration - first.time,
        made=True,
    )


def made_head(status: int, words: str, headers: Mapping[str, str]) -> bytes:
    r"""The head of a capture that no server sent.

    >>> made_head(200, "OK", {"Content-Type": "text/csv"})
    b'HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n\r\n'
    """
    lines = [f"HTTP/1.1 {status} {words}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def hop_on_host(page: str, answer: Capture) -> str:
    r"""Where an answer redirects to, if that is on the host of the page; else empty.

    >>> moved = Capture("http://x/a", 0.0, 303, b"HTTP/1.1 303 See Other\r\nLocation: /b\r\n\r\n")
    >>> hop_on_host("http://x/a", moved), hop_on_host("http://y/a", moved)
    ('http://x/b', '')
    """
    to = redirect_of(answer)
    return to if to and host_of(to) == host_of(page) else ""


def redirect_of(answer: Capture) -> str:
    r"""Where an answer redirects to, if that is an http(s) URL; else empty.

    A method that asks for it next may do so whatever its host: whoever carries out the conversation then keeps the
    pauses and the rules of that host.

    >>> redirect_of(Capture("http://x/a", 0.0, 303, b"HTTP/1.1 303 See Other\r\nLocation: http://y/b\r\n\r\n"))
    'http://y/b'
    """
    if answer.status not in _REDIRECTS or answer.status == _NOT_MODIFIED:
        return ""
    location = answer.header("location")
    to = address(location, base=answer.url) if location else None
    return to.url if to is not None else ""


def checked_options(method: AccessMethod, options: Options, required: tuple[str, ...] = ()) -> dict[str, str]:
    """The options, if the method knows them all and none that it needs is missing.

    Raises:
        ConfigError: it does not, or one is.
    """
    known = ", ".join(method.options) or "none"
    for name in options:
        if name not in method.options:
            raise ConfigError(f"The access method {method.name} has no option {name!r}.", f"It has: {known}.")
    for name in required:
        if not options.get(name, "").strip():
            raise ConfigError(
                f"The access method {method.name} needs the option {name}: {method.options[name]}",
                f"Add --option {name}=… to the command.",
            )
    return dict(options)


def whole_number(method: AccessMethod, options: Options, name: str, default: int) -> int:
    """An option that is a number from 1 up; the default if it is not given.

    Raises:
        ConfigError: it is no such number.
    """
    text = options.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ConfigError(
            f"The option {name} of the access method {method.name} is {text!r}, not a whole number.",
            f"Write for example {name}={default or 1000}.",
        )
    return int(text)
