"""What a URL is to us: how it is written, which host is asked for it, and the key that names its page.

URL canonicalization: the key is a SURT (conventions X3), the same that web archives sort their indexes by: host
reversed, ``www`` and default ports dropped, percent-escapes undone where they are not needed, lower-cased, query
arguments sorted, session ids removed. URLs with one key are one page.
"""

from __future__ import annotations

import re
import string
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import ada_url

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_WWW = re.compile(r"^www\d*\.")
_SLASHES = re.compile(r"//+")
_SESSION_IN_PATH = re.compile(
    r";jsessionid=[0-9a-z]{32}|(?<=/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)|\([0-9a-z]{24}\))/(?=[^?]+\.aspx)"
)
_SESSIONS_IN_QUERY = tuple(
    re.compile(rf"(?s:(.*)){form}(?:&|$)")
    for form in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_NESTED = 32  # escapes of escapes that are undone; a longer chain is made to cost time
_KEPT = frozenset(range(ord("!"), ord("~") + 1)) - {ord("#"), ord("%")}
_WRITTEN = [chr(byte) if byte in _KEPT else f"%{byte:02x}" for byte in range(256)]  # how a key writes each byte
_NAMES_BEGIN = frozenset(string.ascii_letters + string.digits + "._-~%")
"""What a link begins with that names a neighbour or a scheme."""
_REVERSED = re.compile(r"([a-z0-9_,.-]+|\[[0-9a-f:.]+\])(:\d+)?\)(/.*|$)")


class Address(NamedTuple):
    """A URL taken apart far enough to queue and to fetch it."""

    url: str
    """As a browser would write it, without fragment."""
    host: str
    """Host and, if not the default, port: the unit of politeness."""
    key: str
    """SURT: the identity of the page."""


def address(url: str, base: str | None = None) -> Address | None:
    """Normalise a URL, or a link found on the page ``base``; ``None`` if it is not an http(s) URL.

    >>> address("HTTP://www.Example.com:80/A/../b?z=1&a=2#top")
    Address(url='http://www.example.com/b?z=1&a=2', host='www.example.com', key='com,example)/b?a=2&z=1')
    >>> address("../x", base="http://example.com/a/b/").url
    'http://example.com/a/x'
    >>> address("mailto:someone@example.com") is None
    True
    """
    url = url.strip()
    return _address(url, _what_counts(url, base) if base else None)


@lru_cache(maxsize=1 << 16)  # links repeat from page to page and from version to version
def _address(url: str, base: str | None) -> Address | None:
    # One call into the parser and string cuts of what it wrote: four times as fast as reading its attributes.
    try:
        href: str = ada_url.join_url(base, url) if base else ada_url.normalize_url(url)
    except ValueError:
        return None
    href = href.partition("#")[0]
    scheme, mark, rest = href.partition("://")
    if scheme not in ("http", "https") or not mark:
        return None
    place, _, tail = rest.partition("/")  # the path of an http(s) URL is written as "/" at least
    if "@" in place:
        place = place.rpartition("@")[2]
        href = f"{scheme}://{place}/{tail}"
    path, _, query = tail.partition("?")
    return Address(href, place, _surt(place, f"/{path}", query))


def _what_counts(url: str, base: str) -> str | None:
    """As much of ``base`` as the meaning of ``url`` depends on: so a menu means the same on all pages of a site."""
    first = url[:1]
    if first == "/":
        # Two slashes name a host, and browsers take a backslash for a slash.
        return _roots(base)[0] if url[1:2] not in ("/", "\\") else base
    if first in _NAMES_BEGIN:
        if ":" not in url:
            return _roots(base)[1]
        if url.startswith(("http://", "https://")):
            return None
    return base  # empty, only another query or fragment, or a scheme with anything behind it


@lru_cache(maxsize=1 << 12)
def _roots(base: str) -> tuple[str, str]:
    """The site and the directory that a page lies in, both ending in a slash; the page itself if it is on no site."""
    try:
        href: str = ada_url.normalize_url(base)
    except ValueError:
        return base, base
    page = href.partition("#")[0].partition("?")[0]
    scheme, mark, rest = page.partition("://")
    if scheme not in ("http", "https") or not mark:
        return base, base
    return f"{scheme}://{rest.partition('/')[0]}/", page[: page.rfind("/") + 1]


def surt(url: str) -> str | None:
    """The SURT key of a URL, ``None`` if it is not an http(s) URL.

    >>> surt("https://WWW.Example.com/A/b?z=1&a=2")
    'com,example)/a/b?a=2&z=1'
    """
    found = address(url)
    return found.key if found else None


def host_of(url: str) -> str | None:
    """Host and port as politeness counts them; ``None`` if it is not an http(s) URL."""
    found = address(url)
    return found.host if found else None


BUCKETS = 1_024
"""Buckets that hosts are divided into. Workers own buckets, so this number and the hash never change."""
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


def registered_domain(host: str) -> str:
    """The domain that was registered for a host, by the public suffix list that ``publicsuffixlist`` ships.

    The port does not count. Private suffixes are suffixes too: ``a.github.io`` and ``b.github.io`` are two domains,
    because different people run them and one such suffix may have millions of hosts. An unknown top-level domain is a
    suffix. What has no registered domain maps to itself with its port: IP addresses, ``localhost`` and suffixes.

    >>> registered_domain("www.example.co.uk:8080"), registered_domain("a.b.github.io")
    ('example.co.uk', 'b.github.io')
    >>> registered_domain("127.0.0.1:8080"), registered_domain("localhost:81"), registered_domain("co.uk")
    ('127.0.0.1:8080', 'localhost:81', 'co.uk')
    """
    if host.startswith("["):
        return host
    name = host.partition(":")[0].rstrip(".").lower()
    if _IPV4.fullmatch(name):
        return host
    return _suffixes().privatesuffix(name) or host


@cache
def _suffixes() -> PublicSuffixList:
    """The public suffix list, read on first use: about 50 ms."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


@lru_cache(maxsize=1 << 14)
def bucket_of(host: str) -> int:
    """The bucket of a host, from 0 to 1,023: the first 10 bits of BLAKE2b (8 bytes) of its registered domain in UTF-8.

    All hosts of a registered domain are in one bucket.

    >>> bucket_of("example.com") == bucket_of("www.example.com:8080")
    True
    """
    name = registered_domain(host).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 54


def section(url: str, depth: int = 1) -> str:
    """The part of a site a URL lies in: its host and the first ``depth`` directories.

    >>> section("http://example.com/news/2026/item.html"), section("http://example.com/about.html")
    ('http://example.com/news/', 'http://example.com/')
    """
    parsed = ada_url.URL(url)
    directories = parsed.pathname.split("/")[1:-1][:depth]
    return f"{parsed.origin}/" + "".join(f"{name}/" for name in directories)


def home_of(url: str) -> tuple[str, int]:
    """The site of a URL as HACS (§II-A) takes it, and how deep the URL lies below its home page.

    A user's directory is a site of its own, else a host is one. The home page itself has depth 0, whatever its file is
    called. Scheme and a leading ``www.`` do not count.

    >>> home_of("http://www.foo.edu/~bar/pubs/a.html"), home_of("https://foo.edu/%7Ebar"), home_of("http://a.org/x/")
    (('foo.edu/~bar/', 2), ('foo.edu/~bar/', 0), ('a.org/', 1))
    """
    parsed = ada_url.URL(url)
    host = parsed.host.removeprefix("www.")
    parts = [part for part in parsed.pathname.split("/") if part]
    if parts and _HOME_FILE.fullmatch(parts[-1]):
        parts.pop()
    if parts and (user := re.sub("^%7e", "~", parts[0], flags=re.IGNORECASE)).startswith("~"):
        return f"{host}/{user}/", len(parts) - 1
    return f"{host}/", len(parts)


_HOME_FILE = re.compile(r"(index|default|home)\.[a-z0-9]{2,5}", re.IGNORECASE)


def request_key(url: str, method: str, body: str = "") -> str | None:
    """The key of a page that is asked for by POST or PUT: method and form fields count as query arguments.

    ``body`` is a form as it was sent (``application/x-www-form-urlencoded``). This is how pywb files such requests
    (conventions X3), so that they can be told apart and replayed.

    >>> request_key("http://example.com/find?lang=en", "POST", "q=bees")
    'com,example)/find?__wb_method=post&lang=en&q=bees'
    """
    if method.upper() == "GET":
        return surt(url)
    found = address(url)
    if found is None:
        return None
    added = f"__wb_method={method}&{body}" if body else f"__wb_method={method}"
    return surt(f"{found.url}{'&' if '?' in found.url else '?'}{added.replace('#', '%23')}")


def url_of_key(key: str) -> str | None:
    """A URL that has this key, for indexes that list nothing else; ``None`` if the key is not that of a web page.

    Case, scheme and ``www`` are not in a key, so it need not be the URL that was fetched.

    >>> url_of_key("com,example:8080)/a?b=1"), url_of_key("example.com/a"), url_of_key("dns:example.com")
    ('http://example.com:8080/a?b=1', 'http://example.com/a', None)
    """
    parts = _REVERSED.fullmatch(key)
    if parts is None:
        host, slash, tail = key.partition("/")
        return f"http://{host}/{tail}" if slash and re.fullmatch(r"[a-z0-9_.-]+\.[a-z0-9-]+(:\d+)?", host) else None
    host = parts[1] if parts[1].startswith("[") else ".".join(reversed(parts[1].split(",")))
    return f"http://{host}{parts[2] or ''}{parts[3] or '/'}"


def _surt(place: str, path: str, query: str) -> str:
    """The key of a URL as the parser writes it: host and port, path, query without its question mark."""
    name, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        name, colon, port = place, "", ""
    name = _WWW.sub("", name.rstrip("."))
    if not name.startswith("["):
        name = ",".join(reversed(name.split(".")))
    if "%" in path:
        path = _least_escaped(path)
    path = path.lower()
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if ";j" in path or "/(" in path:
        path = _SESSION_IN_PATH.sub("", path)
    if path.endswith("/") and path != "/":
        path = path[:-1]
    query = query and _sorted_query(query)
    return f"{name}{colon}{port}){path}?{query}" if query else f"{name}{colon}{port}){path}"


def _sorted_query(query: str) -> str:
    if "%" in query:
        query = _least_escaped(query)
    query = query.lower()
    if "sid=" in query or "cftoken=" in query or "sessionid" in query:
        for session in _SESSIONS_IN_QUERY:
            if (found := session.match(query)) is not None:
                query = found[1] + query[found.end() :]
    if "&" in query:
        query = "&".join(sorted(query.split("&"), key=_argument))
    return query


def _argument(text: str) -> list[str]:
    """What arguments are sorted by: the name, then the value."""
    return text.split("=", 1)


def _least_escaped(text: str) -> str:
    """All percent-escapes undone, even where they were applied again and again; only what needs one escaped again."""
    data = text.encode()
    for _ in range(_NESTED):
        plain = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), data)
        if plain == data:
            break
        data = plain
    return "".join([_WRITTEN[byte] for byte in data])
