"""Detects the format of a file or folder from its content; the name counts only where the content is ambiguous."""

from __future__ import annotations

import enum
import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import InputError
from recrawl.formats.wacz import PACKAGE

if TYPE_CHECKING:
    from recrawl.formats.warc.archive_folder import ArchivePath

HEAD = 65_536
"""Bytes looked at, after unpacking."""


class SourceFormat(enum.Enum):
    """What recrawl can read, in words."""

    WARC = "WARC"
    ARC = "ARC"
    CDX = "CDX"
    CDXJ = "CDXJ"
    ZIPNUM = "ZipNum index"
    CDX_ANSWER = "answer of a CDX server"
    CRAWL_LOG = "Heritrix crawl.log"
    TIMEMAP = "Memento TimeMap"
    SITEMAP = "sitemap"
    FEED = "feed"
    WACZ = "WACZ"
    ZIP = "ZIP, but no WACZ"
    PARQUET = "Parquet"
    GIT = "git repository"
    SITES = "recorded sites"
    SOURCES = "recorded data sources"
    SEEDS = "list of URLs"
    EVENT_LOG = "log of recrawl"
    WORKSPACE = "workspace of recrawl"
    UNKNOWN = "unknown"


_GZIP, _ZSTD, _LZ4, _ZIP, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"PK\x03\x04", b"PAR1"
_ZSTD_DICTIONARY = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# Possessive where parts repeat: a file that only begins like this one must be told so in linear time.
_BY_HEAD: tuple[tuple[re.Pattern[bytes], SourceFormat], ...] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (rb"\s*(?i:WARC)/\d", SourceFormat.WARC),
        (rb"filedesc://|[^\s:]+://\S+ \d{1,3}(\.\d{1,3}){3} \d{14} ", SourceFormat.ARC),
        (rb"[ \t|,]CDX( [A-Za-z])+", SourceFormat.CDX),
        (rb"<https?://[^>]*>\s*;\s*rel=", SourceFormat.TIMEMAP),
        (rb"!\S+ [\[{](?:.*\n)*?\d{14} \{", SourceFormat.TIMEMAP),
        (rb"(?:!\S+ .*\n)*\S+ \d{4,17} \{", SourceFormat.CDXJ),
        (rb"\S+ \d{14}(\t\S+){3,4}\s", SourceFormat.ZIPNUM),
        (rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z\s+-?\d+\s+(-|\d+)\s", SourceFormat.CRAWL_LOG),
        (rb"\S+ \d{14} \S+ \S+ (-|\d{3}) ", SourceFormat.CDX),
        (rb"\s*\[\s*\[\s*\"", SourceFormat.CDX_ANSWER),
        (rb"\s*\[\s*\]\s*$", SourceFormat.CDX_ANSWER),
        (rb"\s*\{[^\n]*\"(mementos|timemap_uri|original_uri)\"", SourceFormat.TIMEMAP),
        (rb"\s*\{\s*\"(original_uri|self|mementos|timemap_uri|timegate_uri)\"", SourceFormat.TIMEMAP),
        (rb"\s*\{\s*\"timestamp\"\s*:\s*\"[^\"\n]*\"\s*,\s*\"logLevel\"", SourceFormat.EVENT_LOG),
        (rb"\s*\{[^\n]*\"(urlkey|timestamp|response_text)\"", SourceFormat.CDX_ANSWER),
        (
            rb"(?s)\s*+(?><!--.*?-->\s*+|<\?.*?\?>\s*+|<!DOCTYPE[^\[>]*+(?:\[[^\]]*+\]\s*+)?+>\s*+)*+<([\w.-]+:)?(urlset|sitemapindex)\b",
            SourceFormat.SITEMAP,
        ),
        (rb"(?s)\s*+(?><!--.*?-->\s*+|<\?.*?\?>\s*+)*+<([\w.-]+:)?(rss|feed)\b", SourceFormat.FEED),
        (rb"(?>#[^\n]*+\n|\s)*+(https?://|\+)\S", SourceFormat.SEEDS),
    )
)


def sniff(path: ArchivePath) -> SourceFormat:
    """What this file or folder is.

    Raises:
        InputError: it is not there or cannot be read.
    """
    if isinstance(path, Path) and path.is_dir():
        return _folder(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", "Check the path.", source=str(path)) from error
    what = sniff_bytes(head, path.name)
    is_zip = what is SourceFormat.WACZ and head.startswith(_ZIP)
    return _zip(path) if is_zip and isinstance(path, Path) else what


def _zip(path: Path) -> SourceFormat:
    """A ZIP is a WACZ if it has a package or a folder of archives; what cannot be opened may be a damaged one."""
    try:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return SourceFormat.WACZ
    return (
        SourceFormat.WACZ if any(name == PACKAGE or name.startswith("archive/") for name in names) else SourceFormat.ZIP
    )


def sniff_bytes(head: bytes, name: str = "") -> SourceFormat:
    r"""What begins with these bytes.

    >>> sniff_bytes(b" CDX N b a m s k r M S V g\n").value, sniff_bytes(b"WARC/1.1\r\n").value
    ('CDX', 'WARC')
    """
    if head.startswith(_PARQUET):
        return SourceFormat.PARQUET
    if head.startswith(_ZIP):
        return SourceFormat.WACZ
    if head.startswith(_GZIP):
        return sniff_bytes(_unpacked(head), name.removesuffix(".gz")) if _unpacked(head) else _by_name(name)
    if head.startswith((_ZSTD, _LZ4)) or _ZSTD_DICTIONARY.match(head):
        return _by_name(name)
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            head = head[len(mark) :].decode(encoding, "replace").encode()
    for pattern, what in _BY_HEAD:
        if pattern.match(head):
            return what
    return _by_name(name)


def _folder(path: Path) -> SourceFormat:
    names = {entry.name for entry in path.iterdir()}
    if "recrawl.yaml" in names:
        return SourceFormat.WORKSPACE
    if ".git" in names or {"HEAD", "objects", "refs"} <= names:
        return SourceFormat.GIT
    if {"pages.parquet", "events.parquet"} <= names:
        return SourceFormat.SITES
    if {"sources.parquet", "events.parquet"} <= names:
        return SourceFormat.SOURCES
    return SourceFormat.UNKNOWN


def _unpacked(head: bytes) -> bytes:
    """The beginning of what is packed; empty if it cannot be unpacked."""
    try:
        return zlib.decompressobj(wbits=47).decompress(head, HEAD)
    except zlib.error:
        return b""


def _by_name(name: str) -> SourceFormat:
    """What the name promises, where the content could not be looked at."""
    bare = name.lower()
    for ending in (".gz", ".zst", ".lz4", ".bad", ".open"):
        bare = bare.removesuffix(ending)
    endings = {
        ".warc": SourceFormat.WARC,
        ".arc": SourceFormat.ARC,
        ".cdxj": SourceFormat.CDXJ,
        ".cdx": SourceFormat.CDX,
        ".wacz": SourceFormat.WACZ,
    }
    return next((what for ending, what in endings.items() if bare.endswith(ending)), SourceFormat.UNKNOWN)
