"""The rules of :class:`recrawl.fetch.access.access_method.AccessMethod` as tests, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from recrawl.detect import decoded
from recrawl.errors import ConfigError
from recrawl.fetch.access.access_method import AccessMethod, AccessRequest, AccessSource, Exchange, redirect_of
from recrawl.model import Capture, Validators
from recrawl.testing.checks import pickled, raises
from recrawl.urls import address, host_of

_MOST = 250
"""Requests after which an exchange counts as endless."""
_VISITS = 300
"""Visits with random responses."""
_STATUSES = (0, 200, 200, 200, 206, 301, 303, 304, 404, 429, 500, 999)
_TYPES = (
    "application/sparql-results+json",
    "application/n-triples",
    "text/turtle",
    "application/json",
    "text/html",
    "",
)
_BODIES = (
    b'{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "bnode", "value": "x"}}]}}',
    b"<http://a/> <http://b/> _:c .",
    b'{"records": [1], "next": "?p"}',
    *(
        json.dumps({"records": [1], "next": following}).encode()
        for following in ("mailto:z", "http://y.example/", 5, ["x"])
    ),
    b"{}",
    b"[]",
    b"",
    b"\x00\xff{",
)
_LOCATIONS = ("/on", "?q", "http://x.example/sparql", "http://y.example/", "mailto:z", "", "http://[")
_CUTS = ("", "", "", "length", "time", "gzip")


class AccessConformance:
    """Tests for one access method and one of its sources. Override :meth:`make`, :attr:`url` and :attr:`options`."""

    url: str = "http://x.example/list"
    """What a user gives as the URL of a source."""
    options: Mapping[str, str] = {}
    """What a user gives as options. Choose them so that a visit ends after at most 250 requests."""
    bodies: tuple[bytes, ...] = ()
    """Further bodies that a server may send: good ones, and those that are nearly good."""

    def make(self) -> AccessMethod:
        """The access method."""
        raise NotImplementedError

    def _source(self) -> AccessSource:
        return self.make().source(self.url, self.options)

    def test_it_is_an_access_method_that_explains_itself(self) -> None:
        """Members of the protocol."""
        method = self.make()
        assert isinstance(method, AccessMethod)
        assert method.name
        assert method.summary.endswith(".")
        assert all(name and words for name, words in method.options.items())

    def test_a_source_has_a_page_and_is_the_same_each_time(self) -> None:
        """Rule 6."""
        source = self._source()
        found = address(source.url)
        assert found is not None
        assert found.url == source.url
        assert all(isinstance(text, str) for pair in source.options.items() for text in pair)
        assert self._source() == source

    def test_unknown_options_and_urls_are_refused(self) -> None:
        """Rule 6."""
        for url, options in (
            (self.url, {**self.options, "no such option": "x"}),
            ("gopher://x.example/", self.options),
        ):
            with raises(ConfigError):
                self.make().source(url, options)

    def test_whatever_a_server_sends_a_visit_ends_in_a_capture_and_asks_only_where_it_may(self) -> None:
        """Rules 2 to 5."""
        rng = np.random.default_rng(11)
        for _ in range(_VISITS):
            self._visit(self.make(), rng)

    def test_it_pickles(self) -> None:
        """Rule 7: the copy asks for the same."""
        method, source = self.make(), self._source()
        copy = pickled(method)
        assert copy.source(self.url, self.options) == source
        question = AccessRequest(source.url, source.options, Validators(), decoded)
        assert Exchange(copy, question).request == Exchange(method, question).request

    def _visit(self, method: AccessMethod, rng: np.random.Generator) -> None:
        source = method.source(self.url, self.options)
        etag = '"a"' if rng.random() < 0.5 else ""
        exchange = Exchange(method, AccessRequest(source.url, source.options, Validators(etag), decoded))
        responses = list(self._responses(rng))
        led_to = ""
        for turn in range(_MOST):
            url = exchange.request.url
            assert url.startswith("file:") or host_of(url) == host_of(source.url) or url == led_to, "rule 2"
            status, head, body, truncated = responses[turn % len(responses)]
            capture = Capture(
                url, float(turn), status, head if status else b"", body if status else b"", truncated=truncated
            )
            led_to = redirect_of(capture)
            version = exchange.feed(capture)
            if version is not None:
                assert version.status or version.error or not status, "rule 3: a failure has no reason"
                assert not version.made or version.url == source.url, "rule 5"
                return
        raise AssertionError("rule 4: the exchange never ends")

    def _responses(self, rng: np.random.Generator) -> Iterator[tuple[int, bytes, bytes, str]]:
        bodies = (*_BODIES, *self.bodies)
        for _ in range(int(rng.integers(1, 30))):
            status, mime, at = (int(rng.integers(len(of))) for of in (_STATUSES, _TYPES, bodies))
            cut = _CUTS[int(rng.integers(len(_CUTS)))]
            head = (
                f"HTTP/1.1 {_STATUSES[status]} X\r\nContent-Type: {_TYPES[mime]}\r\n"
                f"Location: {_LOCATIONS[int(rng.integers(len(_LOCATIONS)))]}\r\n"
                f"{'Content-Encoding: gzip' if cut == 'gzip' else 'X: y'}\r\n\r\n"
            )
            yield _STATUSES[status], head.encode(), bodies[at], cut.removeprefix("gzip")
