"""Content negotiation: the same name gives HTML to browsers and data to those who ask for it.

Linked data has names for things that are no documents; such a name answers 303 and leads to a document about the
thing. Persistent names (purl.org, w3id.org, doi.org) lead to the host where the data is at present. So redirects are
followed here, also to other hosts: what the last one answers is the version of the page. Each request keeps the pauses
and the robots.txt of the host that it goes to. With the option ``redirects=host`` a redirect to another host ends the
conversation: it is the version, and its target a page like any other. So is always a redirect to another spelling of
the page's own URL, which the crawler takes over.
"""

from __future__ import annotations

from types import MappingProxyType

from recrawl.errors import ConfigError
from recrawl.fetch.access import (
    Conversation,
    Options,
    Question,
    Source,
    checked_options,
    failed,
    hop_on_host,
    redirect_of,
)
from recrawl.fetch.request import Request
from recrawl.urls import address, surt

RDF_TYPES = (
    "text/turtle, application/n-triples;q=0.9, application/ld+json;q=0.8, application/rdf+xml;q=0.7, "
    "application/n-quads;q=0.6, application/trig;q=0.6, text/html;q=0.1, */*;q=0.05"
)
"""Compact and quickly parsed ones first; a page where there is no data."""
MAX_HOPS = 5


class Negotiation:
    """Asks for RDF, or for other media types, and follows redirects."""

    name = "rdf"
    summary = "Ask for RDF by content negotiation, and follow redirects."
    options = MappingProxyType(
        {
            "accept": "media types wanted, as in the Accept header; RDF if not given",
            "redirects": "any, to follow them to other hosts, or host, to stay; any if not given",
        }
    )

    def source(self, url: str, options: Options) -> Source:
        """Any page; the media types must fit into a header."""
        found = address(url)
        if found is None:
            raise ConfigError(f"{url!r} is not an http(s) URL.", "Write it with http:// or https:// in front.")
        kept = checked_options(self, options)
        if not kept.get("accept", "x").isprintable() or not kept.get("accept", "x").isascii():
            raise ConfigError(
                "The option accept holds characters that HTTP forbids.", "Write for example accept=text/csv."
            )
        if kept.get("redirects", "any") not in ("any", "host"):
            raise ConfigError(
                f"The option redirects is {kept['redirects']!r}.", "Write redirects=any or redirects=host."
            )
        return Source(found.url, kept)

    def talk(self, question: Question) -> Conversation:
        """Ask, and go where the answer points."""
        accept = question.options.get("accept", "") or RDF_TYPES
        said, url, began, asked = question.validators, question.url, None, {question.url}
        elsewhere = question.options.get("redirects", "any") == "any"
        for _ in range(MAX_HOPS + 1):
            answer = yield Request(url, said.etag, said.last_modified, accept=accept)
            began = answer.time if began is None else began
            to = redirect_of(answer) if elsewhere else hop_on_host(question.url, answer)
            if not to or surt(to) == surt(question.url):
                return answer
            if to in asked:
                return failed(question, answer, f"It redirects in circles, to {to} again.", began)
            asked.add(to)
            url = to
        return failed(question, answer, f"It redirects more than {MAX_HOPS} times.", began)
