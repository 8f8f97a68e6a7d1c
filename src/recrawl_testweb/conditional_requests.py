"""Conditional requests and content negotiation, as RFC 9110 has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from recrawl.time import from_http_date


class TypedContent(Protocol):
    """Something with a media type."""

    @property
    def media_type(self) -> str:
        """For example ``text/html``."""
        ...


F = TypeVar("F", bound=TypedContent)


def best_type(offers: Sequence[F], accept: str) -> F:
    """The offer a client likes best; the first of equals, and the first if none is acceptable (RFC 9110 12.4.1).

    >>> from typing import NamedTuple
    >>> class Offer(NamedTuple): media_type: str
    >>> html, turtle = Offer("text/html"), Offer("text/turtle")
    >>> best_type([html, turtle], "text/turtle, text/*;q=0.5").media_type
    'text/turtle'
    >>> best_type([html, turtle], "*/*").media_type
    'text/html'
    """
    if len(offers) == 1 or not accept:
        return offers[0]
    ranges = _weights(accept)
    return max(offers, key=lambda offer: _quality(offer.media_type, ranges))


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client takes gzip; without the header it is not sent (RFC 9110 12.5.3).

    >>> accepts_gzip("br, gzip;q=0.8"), accepts_gzip("gzip;q=0"), accepts_gzip("")
    (True, False, False)
    """
    weights = _weights(accept_encoding)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def not_modified(request: Mapping[str, str], answer: Mapping[str, str]) -> bool:
    """Whether 304 is right for validators that the page now has (RFC 9110 13.2.2).

    If-None-Match wins over If-Modified-Since; entity tags are compared weakly.

    >>> not_modified({"if-none-match": 'W/"a", "b"'}, {"ETag": '"a"'})
    True
    """
    tags = request.get("if-none-match")
    if tags is not None:
        own = answer.get("ETag")
        return own is not None and (
            tags.strip() == "*" or own.removeprefix("W/") in {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        )
    since, modified = request.get("if-modified-since"), answer.get("Last-Modified")
    if since is None or modified is None:
        return False
    limit, own_time = from_http_date(since), from_http_date(modified)
    return limit is not None and own_time is not None and own_time <= limit


def _weights(header: str) -> dict[str, float]:
    """Names and weights of a list header; a weight that is no number counts as 0."""
    weights = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = 0.0
    return weights


def _quality(media_type: str, ranges: Mapping[str, float]) -> float:
    """The weight of the most specific range that covers a media type."""
    family = media_type.partition("/")[0]
    for covering in (media_type, f"{family}/*", "*/*"):
        if covering in ranges:
            return ranges[covering]
    return 0.0
