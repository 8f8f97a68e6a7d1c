"""Content negotiation: one URL serves HTML to browsers and data to clients that request it.

Linked data names things that are no documents; such a URL answers 303 and leads to a document about the thing.
Persistent URLs (purl.org, w3id.org, doi.org) lead to the current host of the data. So redirects are followed here, also
to other hosts: the last response is the version of the page. Each request follows the pauses and the robots.txt of its
host.

With the option ``redirects=host`` a redirect to another host ends the exchange: it is the version, and its target is a
page like any other. A redirect to another spelling of the page's own URL always ends it; the crawler adopts that
spelling.
"""

from __future__ import annotations

from types import MappingProxyType

from recrawl.errors import ConfigError
from recrawl.fetch.access.access_method import (
    REDIRECTS_OPTION,
    AccessRequest,
    AccessSource,
    Conversation,
    Options,
    check_redirects,
    checked_options,
    failed,
    next_hop,
)
from recrawl.fetch.request import FetchRequest
from recrawl.urls import address, surt

RDF_TYPES = (
    "text/turtle, application/n-triples;q=0.9, application/ld+json;q=0.8, application/rdf+xml;q=0.7, "
    "application/n-quads;q=0.6, application/trig;q=0.6, text/html;q=0.1, */*;q=0.05"
)
"""Compact formats that parse quickly first; HTML where there is no data."""
MAX_HOPS = 5


class Negotiation:
    """Requests RDF, or other media types, and follows redirects."""

    name = "rdf"
    summary = "Ask for RDF by content negotiation, and follow redirects."
    options = MappingProxyType(
        {
            "accept": "media types wanted, as in the Accept header; RDF if not given",
            "redirects": REDIRECTS_OPTION,
        }
    )

    def source(self, url: str, options: Options) -> AccessSource:
        """Any page; the media types must fit into a header."""
        found = address(url)
        if found is None:
            raise ConfigError(f"{url!r} is not an http(s) URL.", "Write it with http:// or https:// in front.")
        kept = checked_options(self, options)
        if not kept.get("accept", "x").isprintable() or not kept.get("accept", "x").isascii():
            raise ConfigError(
                "The option accept holds characters that HTTP forbids.", "Write for example accept=text/csv."
            )
        check_redirects(kept)
        return AccessSource(found.url, kept)

    def exchange(self, question: AccessRequest) -> Conversation:
        """Send the request, and follow redirects."""
        accept = question.options.get("accept", "") or RDF_TYPES
        said, url, began, asked = question.validators, question.url, None, {question.url}
        for _ in range(MAX_HOPS + 1):
            answer = yield FetchRequest(url, said.etag, said.last_modified, accept=accept)
            began = answer.time if began is None else began
            to = next_hop(question, answer)
            if not to or surt(to) == surt(question.url):
                return answer
            if to in asked:
                return failed(question, answer, f"It redirects in circles, to {to} again.", began)
            asked.add(to)
            url = to
        return failed(question, answer, f"It redirects more than {MAX_HOPS} times.", began)
