"""Access methods: how to fetch a page that takes more than one plain request.

Rules of this file:

1. A method does no I/O. A visit is an exchange: the method yields requests, receives the responses, and returns the
   capture that is the version of the page. The caller applies robots.txt and the pauses of the host before each
   request, so a method cannot be impolite.
2. Nothing from the remote side makes a method raise. An exchange that failed ends in a capture that says so, and that
   says nothing about change.
3. Options are text. A method checks them when a page is added, and returns what is to be stored.

Other packages can add methods: see ``access_methods.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from recrawl.errors import ConfigError
from recrawl.fetch.request import FetchRequest
from recrawl.model import Capture, Validators
from recrawl.model.visits import BROKEN_OFF
from recrawl.urls import address, host_of

_REDIRECTS = range(300, 400)
_NOT_MODIFIED = 304

Options: TypeAlias = Mapping[str, str]
"""The options of a source beside its URL, by name."""
Conversation: TypeAlias = Generator[FetchRequest, Capture, Capture]
"""Yields requests, receives responses, returns the version of the page."""


@dataclass(frozen=True, slots=True)
class AccessSource:
    """A page and its access options, as they are stored."""

    url: str
    """The name of the page: an http(s) URL, unique for each source."""
    options: Options = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    """Remarks for the person who adds the source."""


def in_this_process(parser: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - what the parser returns
    """Call a parser in this process."""
    return parser(*arguments)


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """The request for one visit."""

    url: str
    """Of the page."""
    options: Options
    validators: Validators
    """The last validators of the page; empty ones make the request unconditional."""
    body_of: Callable[[Capture], bytes]
    """The decoded body of a capture; raises an ``InputError`` if it is broken."""
    parse: Callable[..., Any] = in_this_process
    """Calls a parser with picklable arguments, in a subprocess where foreign bytes do no harm. Raises an
    ``InputError`` if the limit of time or memory is exceeded."""


@runtime_checkable
class AccessMethod(Protocol):
    """How one kind of source is fetched. An instance serves all sources of its kind and has no state.

    ``source`` is called when a page is added, ``exchange`` at each visit. A visit yields a request, is sent its
    response (:class:`Exchange`), and ends with the capture that is the version of the page. Times are seconds.

    Rules for all implementations:
     1. A method does no I/O and reads no clock. The caller sends the requests, with robots.txt, pauses and limits.
     2. Every request goes to the host of the page, or where the response before redirects to.
     3. Remote data never make it raise: an unusable response ends in a capture with an ``error``.
     4. Every exchange ends, after a number of requests that its options bound.
     5. A version that was assembled (``Capture.made``) has the URL of the page.
     6. Equal URLs and options give equal sources; options are text. Unknown options and URLs are a ``ConfigError``.
     7. A method pickles.

    Every implementation passes :class:`recrawl.testing.AccessConformance`.
    """

    @property
    def name(self) -> str:
        """As ``recrawl add --access`` takes it."""
        ...

    @property
    def summary(self) -> str:
        """Its purpose, in a sentence."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The options, each with an explanation."""
        ...

    def source(self, url: str, options: Options) -> AccessSource:
        """The source for a URL and options.

        Raises:
            ConfigError: an option is missing or wrong.
        """
        ...

    def exchange(self, question: AccessRequest) -> Conversation:
        """Start a visit. It makes at least one request."""
        ...


class Exchange:
    """A visit under way: the next request, then its response, until there is a version."""

    def __init__(self, method: AccessMethod, question: AccessRequest) -> None:
        self._conversation = method.exchange(question)
        self.request = next(self._conversation)
        """The next request."""

    def feed(self, capture: Capture) -> Capture | None:
        """Pass a response to the method; return the version of the page, or ``None`` if another request follows.

        Raises:
            TypeError: the method ends without a version, or the exchange is over already.
        """
        try:
            self.request = self._conversation.send(capture)
        except StopIteration as end:
            if not isinstance(end.value, Capture):
                msg = f"a conversation ended with {end.value!r} instead of a capture"
                raise TypeError(msg) from end
            return end.value
        return None


def failed(question: AccessRequest, last: Capture, why: str, began: float | None = None) -> Capture:
    """A failed version, since the response ``last`` cannot be used.

    >>> one = AccessRequest("http://x/", {}, Validators(), lambda capture: capture.raw_body)
    >>> failed(one, Capture("http://x/?page=2", 9.0, 200), "The answer ends too early.", began=5.0).error
    'The answer ends too early.'
    """
    time = last.time if began is None else began
    duration = last.time + last.duration - time
    return Capture(question.url, time, 0, ip=last.ip, duration=duration, error=why, failure=BROKEN_OFF)


def made(question: AccessRequest, first: Capture, last: Capture, body: bytes, media_type: str) -> Capture:
    """A version assembled from responses, the first and the last of which are given."""
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
    r"""The header of a capture that no server sent.

    >>> made_head(200, "OK", {"Content-Type": "text/csv"})
    b'HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n\r\n'
    """
    lines = [f"HTTP/1.1 {status} {words}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def hop_on_host(page: str, answer: Capture) -> str:
    r"""The redirect target of a response, if it is on the host of the page; else empty.

    >>> moved = Capture("http://x/a", 0.0, 303, b"HTTP/1.1 303 See Other\r\nLocation: /b\r\n\r\n")
    >>> hop_on_host("http://x/a", moved), hop_on_host("http://y/a", moved)
    ('http://x/b', '')
    """
    to = redirect_of(answer)
    return to if to and host_of(to) == host_of(page) else ""


def redirect_of(answer: Capture) -> str:
    r"""The redirect target of a response, if it is an http(s) URL; else empty.

    A method may request it next whatever its host: the caller then applies the pauses and the robots.txt of that host.

    >>> redirect_of(Capture("http://x/a", 0.0, 303, b"HTTP/1.1 303 See Other\r\nLocation: http://y/b\r\n\r\n"))
    'http://y/b'
    """
    if answer.status not in _REDIRECTS or answer.status == _NOT_MODIFIED:
        return ""
    location = answer.header("location")
    to = address(location, base=answer.url) if location else None
    return to.url if to is not None else ""


REDIRECTS_OPTION = "any, to follow them to other hosts, or host, to stay; any if not given"
"""What the option ``redirects`` of a method is."""


def next_hop(question: AccessRequest, answer: Capture) -> str:
    """Where an answer redirects to, if the option ``redirects`` lets the method go there; else empty."""
    elsewhere = question.options.get("redirects", "any") == "any"
    return redirect_of(answer) if elsewhere else hop_on_host(question.url, answer)


def check_redirects(options: Options) -> None:
    """Check the option ``redirects``.

    Raises:
        ConfigError: it is neither ``any`` nor ``host``.
    """
    if options.get("redirects", "any") not in ("any", "host"):
        raise ConfigError(
            f"The option redirects is {options['redirects']!r}.", "Write redirects=any or redirects=host."
        )


def checked_options(method: AccessMethod, options: Options, required: tuple[str, ...] = ()) -> dict[str, str]:
    """The options, if the method knows all of them and no required one is missing.

    Raises:
        ConfigError: an option is unknown, or a required one is missing.
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
    """An option that is an integer from 1 up; the default if it is not given.

    Raises:
        ConfigError: it is no such integer.
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
