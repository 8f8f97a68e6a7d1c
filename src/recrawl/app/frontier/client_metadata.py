"""What crawlers say of a fetch in the metadata of its URL: names that StormCrawler, Heritrix and others use. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from recrawl.detect.reported_visits import ReportedVisit

_PREFIXES = ("fetch.", "protocol.", "http.", "parse.", "_")
_NAMES: Mapping[str, str] = {
    "statuscode": "status",
    "status": "status",
    "signature": "digest",
    "digest": "digest",
    "etag": "etag",
    "last-modified": "last_modified",
    "last_modified": "last_modified",
    "lastmodified": "last_modified",
    "redirto": "redirect_to",
    "redirect": "redirect_to",
    "redirect_to": "redirect_to",
    "content-type": "mime",
    "mime": "mime",
    "changed": "changed",
    "exception": "exception",
    "error.count": "errors",
    "bytelength": "size",
    "size": "size",
    "loadingtime": "milliseconds",
    "retry-after": "retry_after",
}
_LARGEST_STATUS = 10_000


def said_of(metadata: Mapping[str, Sequence[str]]) -> tuple[ReportedVisit, float]:
    """What metadata say of a fetch, and for how many seconds its host asks to be left alone.

    Names count in whatever case, with or without ``fetch.``, ``protocol.``, ``http.``, ``parse.`` or ``_`` before them.
    What cannot be understood counts as not said.

    >>> visit, rest = said_of({"fetch.statusCode": ["200"], "signature": ["abc"], "protocol.ETag": ['"1"']})
    >>> visit.status, visit.digest, visit.etag, rest
    (200, 'abc', '"1"', 0.0)
    >>> said_of({"fetch.exception": ["timeout"]})[0].failed, said_of({})[0].failed
    (True, False)
    """
    said = dict(_named(metadata))
    status = int(_number(said.get("status")))
    if abs(status) > _LARGEST_STATUS:
        status = 0
    changed = {"true": True, "1": True, "false": False, "0": False}.get(said.get("changed", "").lower())
    failed = not status and ("exception" in said or _number(said.get("errors")) > 0)
    visit = ReportedVisit(
        status=status,
        failed=failed,
        digest=said.get("digest", ""),
        etag=said.get("etag", ""),
        last_modified=said.get("last_modified", ""),
        redirect_to=said.get("redirect_to", ""),
        mime=said.get("mime", ""),
        changed=changed,
        size=int(max(_number(said.get("size")), 0)),
        seconds=max(_number(said.get("milliseconds")), 0) / 1000,
    )
    return visit, max(_number(said.get("retry_after")), 0.0)


def _named(metadata: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for name, values in metadata.items():
        if not values:
            continue
        bare = name.lower()
        for prefix in _PREFIXES:
            bare = bare.removeprefix(prefix)
        if bare in _NAMES:
            yield _NAMES[bare], values[0]


def _number(text: str | None) -> float:
    """The number in a text, 0 if there is none."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and abs(value) < 1e15 else 0.0  # noqa: PLR2004 - no size or time is so large
