"""Storage of closed WARC files outside the workspace: S3-compatible object storage, and servers of other workers.

A location is a folder: ``s3://bucket/prefix/``, or ``http(s)://host/warc/`` of a ``recrawl serve``. Both are read by
byte range; only object storage is written.

Rules of this file:

1. Every request is bounded in time and memory: a total timeout, few retries, and never more bytes than asked for.
2. An answer that is not exactly what was asked for is a :class:`~recrawl.errors.StorageError`, never an empty page.
3. Credentials come from the environment or the files of AWS, and appear in no message.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from recrawl.errors import ConfigError, StorageError, require

PART = 8 << 20
"""Bytes of a part of a multipart upload; smaller files are uploaded in one request."""
_MOST_PARTS = 9_000
"""S3 takes 10,000 parts."""
_PARTS_AT_ONCE = 2
_PIECE = 1 << 20
TOKEN = "RECRAWL_PEER_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable with the token that servers of other workers ask for."""
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")
_PARTIAL = 206
_MISSING = frozenset({404, 410})


class StoredObject(NamedTuple):
    """What a storage says of a file."""

    size: int
    """Bytes."""
    etag: str = ""


class FileDigests(NamedTuple):
    """What a file is, and what S3 will say of it."""

    size: int
    """Bytes."""
    sha256: bytes
    etag: str
    """MD5, or for a multipart upload the MD5 of those of its parts; other than that of S3 where it encrypts."""
    part: int
    """Bytes of each part but the last."""


class ArchiveStorage(Protocol):
    """A folder of WARC files that is read by byte range. Safe for several threads."""

    location: str
    """Its URL, with a slash at the end."""

    def about(self, name: str) -> StoredObject | None:
        """What is stored under a name; ``None`` if nothing is.

        Raises:
            StorageError: the storage does not say.
        """
        ...

    def read(self, name: str, start: int, end: int, size: int) -> bytes:
        """The bytes from ``start`` to ``end`` of a file of ``size`` bytes.

        Raises:
            StorageError: they cannot be read, or the file has another size.
        """
        ...


@dataclass(frozen=True, slots=True)
class S3Options:
    """How object storage is reached."""

    endpoint: str = ""
    """URL of the S3 API; empty for that of AWS."""
    region: str = ""
    timeout: float = 60.0
    """Seconds for one request; uploads of a part get five times as long."""
    retries: int = 3


def storage_at(location: str, options: S3Options) -> ArchiveStorage:
    """The storage at a location. Clients are kept for as long as the process lives.

    Raises:
        ConfigError: the location is none.
        MissingExtraError: the library for object storage is not installed.
    """
    return _storage_at(folder_url(location), options, _environment().get(TOKEN, ""))


def _environment() -> Mapping[str, str]:
    """Where credentials are, and nowhere else: so that no setting, argument or value has them."""
    return os.environ  # noqa: TID251 - see above


@lru_cache(maxsize=64)
def _storage_at(location: str, options: S3Options, token: str) -> ArchiveStorage:
    if location.startswith("s3://"):
        return S3Storage(location, options)
    return HttpStorage(location, token, options.timeout)


def folder_url(location: str) -> str:
    """The URL of a folder, with a slash at the end.

    Raises:
        ConfigError: it is no location of archive files.

    >>> folder_url("s3://bucket/crawls/2026"), folder_url("http://unit-2:8081/warc/")
    ('s3://bucket/crawls/2026/', 'http://unit-2:8081/warc/')
    """
    parts = urlsplit(location)
    fine = parts.scheme in {"s3", "http", "https"} and parts.netloc and not parts.query and not parts.fragment
    if not fine or "@" in parts.netloc or re.search(r"\s", location):
        raise ConfigError(
            f"{location!r} is no location of archive files.",
            "Write s3://bucket/prefix, or http(s)://host:port/warc for the server of another worker; no credentials.",
        )
    return location.rstrip("/") + "/"


def digests_of(path: Path) -> FileDigests:
    """Read a file once, for all digests. Memory does not grow with it."""
    size = path.stat().st_size
    part = max(PART, -(-size // _MOST_PARTS))
    whole, parts, done = hashlib.sha256(), [hashlib.md5(usedforsecurity=False)], 0
    with path.open("rb") as file:
        while piece := file.read(min(_PIECE, part - done % part)):
            if done and done % part == 0:
                parts.append(hashlib.md5(usedforsecurity=False))
            parts[-1].update(piece)
            whole.update(piece)
            done += len(piece)
    if done < PART:
        return FileDigests(done, whole.digest(), parts[0].hexdigest(), part)
    joined = hashlib.md5(b"".join(one.digest() for one in parts), usedforsecurity=False)
    return FileDigests(done, whole.digest(), f"{joined.hexdigest()}-{len(parts)}", part)


class S3Storage:
    """A prefix of a bucket."""

    def __init__(self, location: str, options: S3Options) -> None:
        self.location = location
        parts = urlsplit(location)
        self._obstore: Any = require("obstore", "s3")
        stores: Any = require("obstore.store", "s3")
        config = {"aws_region": options.region} if options.region else {}
        config |= {"aws_endpoint": options.endpoint} if options.endpoint else {}
        environment = _environment()
        endpoint = options.endpoint or environment.get("AWS_ENDPOINT_URL_S3", environment.get("AWS_ENDPOINT_URL", ""))
        found = {**_from_files(environment), **config}

        def client(timeout: float) -> Any:  # noqa: ANN401 - obstore's store
            return stores.S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                config=found,
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "connect_timeout": timedelta(seconds=min(10.0, timeout)),
                    "timeout": timedelta(seconds=timeout),
                },
                retry_config={
                    "max_retries": options.retries,
                    "retry_timeout": timedelta(seconds=timeout),
                    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5)},
                },
            )

        with self._explained(""):
            self._reads, self._writes = client(options.timeout), client(5 * options.timeout)

    def about(self, name: str) -> StoredObject | None:
        """See :class:`ArchiveStorage`."""
        with self._explained(name):
            try:
                found = self._obstore.head(self._reads, name)
            except FileNotFoundError:
                return None
        return StoredObject(int(found["size"]), (found["e_tag"] or "").strip('"'))

    def read(self, name: str, start: int, end: int, size: int) -> bytes:
        """See :class:`ArchiveStorage`."""
        with self._explained(name):
            answer = self._obstore.get(self._reads, name, options={"range": (start, end)})
            if answer.meta["size"] != size:
                raise _another(self.location, name, answer.meta["size"], size)
            pieces, got = [], 0
            for piece in answer.stream(min_chunk_size=min(_PIECE, end - start)):
                got += len(piece)
                if got > end - start:
                    break
                pieces.append(bytes(piece))
        if got != end - start:
            raise _cut(self.location, name, got, end - start)
        return b"".join(pieces)

    def upload(self, path: Path, known: FileDigests, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Upload a file under its name and check what is there then. What is there already is not sent again.

        ``cancelled`` is asked before each part; if it says so, nothing is there, and the result is false.

        The object appears when it is complete: an upload that is interrupted leaves nothing to be read.

        Raises:
            StorageError: it could not be uploaded, or what is there is not the file.
        """
        name = path.name
        if self._holds(name, known):
            return True
        with self._explained(name), path.open("rb", buffering=0) as file:
            writer = self._obstore.open_writer(
                self._writes, name, buffer_size=known.part, max_concurrency=_PARTS_AT_ONCE
            )
            while piece := file.read(_PIECE):
                if cancelled():
                    return False  # without its end the object does not appear
                writer.write(piece)
            writer.close()
        if not self._holds(name, known):
            raise StorageError(
                f"{self.location}{name} is not what was uploaded.", "It is uploaded again. Check the object storage."
            )
        return True

    def _holds(self, name: str, known: FileDigests) -> bool:
        """Whether the object is the file: by size and ETag, or by reading it where the ETag is no MD5."""
        found = self.about(name)
        if found is None or found.size != known.size:
            return False
        return found.etag == known.etag or self.sha256(name, known.size) == known.sha256

    def sha256(self, name: str, size: int) -> bytes:
        """The digest of an object of ``size`` bytes. Reads all of it."""
        whole = hashlib.sha256()
        for start in range(0, size, PART):
            whole.update(self.read(name, start, min(start + PART, size), size))
        return whole.digest()

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Errors of the library as sentences. Its own texts repeat requests, so only their kind is told."""
        try:
            yield
        except (StorageError, ConfigError):
            raise
        except FileNotFoundError as error:
            raise StorageError(f"{self.location}{name} is not there.", "Check the bucket.") from error
        except Exception as error:  # noqa: BLE001 - the library documents no others
            reason, remedy = _reason(error)
            raise StorageError(f"{self.location}{name}: {reason}.", remedy) from None


def _reason(error: Exception) -> tuple[str, str]:
    name = type(error).__name__
    if name in {"UnauthenticatedError", "PermissionDeniedError"}:
        return "the object storage refuses access", "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
    text = str(error).partition("\n")[0]  # what follows it describes the client
    status = re.search(r"status code: (\d{3})", text)
    if status:
        return f"the object storage answers {status[1]}", "Check the object storage; what failed is tried again."
    return (
        f"the object storage {'does not answer in time' if 'timed out' in text else 'cannot be reached'}",
        "Check archive.storage_endpoint and the network; what failed is tried again.",
    )


def _cut(location: str, name: str, got: int, wanted: int) -> StorageError:
    return StorageError(
        f"{location}{name}: {got:,} bytes came instead of {wanted:,}.", "Try again; check the server if it goes on."
    )


def _another(location: str, name: str, size: int, known: int) -> StorageError:
    return StorageError(
        f"{location}{name} has {size:,} bytes, not {known:,}.", "It was replaced: check it with recrawl verify."
    )


_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def _from_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Credentials and region of the chosen profile in the files of AWS; the environment overrides them.

    Only keys are read. Roles and single sign-on need a program that turns them into keys.
    """
    import configparser

    profile = environment.get("AWS_PROFILE", "default")
    home = Path(environment.get("HOME") or "~").expanduser()
    values: dict[str, str] = {}
    for variable, usual, section in (
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(environment.get(variable) or home / ".aws" / usual, encoding="utf-8")
        except (OSError, UnicodeError, configparser.Error) as error:
            raise ConfigError(
                f"The file of AWS ({usual}) cannot be read: {type(error).__name__}.", f"Correct it, or set {variable}."
            ) from None
        if parser.has_section(section):
            values = {**dict(parser.items(section)), **values}
    found = {key: values[key] for key in _KEYS if key in values} if "AWS_ACCESS_KEY_ID" not in environment else {}
    if "region" in values and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & environment.keys():
        found["aws_region"] = values["region"]
    return found


def _seconds() -> float:
    """For limits of requests; the clock of a crawl may be virtual."""
    return time.monotonic()  # noqa: TID251 - see above


class HttpStorage:
    """The WARC files of another worker, as its ``recrawl serve`` offers them."""

    def __init__(self, location: str, token: str, timeout: float) -> None:
        self.location = location
        self._token = token
        self._timeout = timeout
        from urllib.request import HTTPErrorProcessor, build_opener

        class NoRedirects(HTTPErrorProcessor):
            """Every answer as it is: a redirect would carry the token elsewhere."""

            def http_response(self, _request: Any, response: Any) -> Any:  # noqa: ANN401 - as of urllib
                return response

            def https_response(self, _request: Any, response: Any) -> Any:  # noqa: ANN401
                return response

        self._opener = build_opener(NoRedirects)

    def about(self, name: str) -> StoredObject | None:
        """See :class:`ArchiveStorage`."""
        try:
            with self._answer(name, "HEAD", {}) as answer:
                return StoredObject(int(answer.headers.get("Content-Length") or ""), answer.headers.get("ETag") or "")
        except FileNotFoundError:
            return None
        except ValueError:
            raise StorageError(f"{self.location}{name}: the server tells no size.", "Check its address.") from None

    def read(self, name: str, start: int, end: int, size: int) -> bytes:
        """See :class:`ArchiveStorage`."""
        until = _seconds() + self._timeout
        try:
            with self._answer(name, "GET", {"Range": f"bytes={start}-{end - 1}"}) as answer:
                said = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range") or "")
                if answer.status != _PARTIAL or said is None:
                    raise StorageError(f"{self.location}{name}: the server reads no ranges.", "Check its address.")
                if int(said[3]) < size:  # one that is being written only grows
                    raise _another(self.location, name, int(said[3]), size)
                data = bytearray()
                while len(data) <= end - start and (piece := answer.read1(min(_PIECE, end - start + 1 - len(data)))):
                    data += piece
                    if _seconds() > until:
                        raise StorageError(f"{self.location}{name}: the server is too slow.", "Try again later.")
        except FileNotFoundError as error:
            raise StorageError(f"{self.location}{name} is not there.", "Check archive.locations.") from error
        if len(data) != end - start or int(said[1]) != start:
            raise _cut(self.location, name, len(data), end - start)
        return bytes(data)

    @contextmanager
    def _answer(self, name: str, method: str, headers: dict[str, str]) -> Iterator[Any]:
        from http.client import HTTPException
        from urllib.request import Request

        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(f"{self.location}{quote(name)}", method=method, headers=headers)  # noqa: S310 - see folder_url
        try:
            with self._opener.open(request, timeout=min(self._timeout, 30.0)) as answer:
                self._check_status(name, answer.status)
                yield answer
        except FileNotFoundError:
            raise
        except (OSError, HTTPException) as error:
            raise StorageError(
                f"{self.location}{name}: the server cannot be reached ({type(error).__name__}).", "Check the server."
            ) from None

    def _check_status(self, name: str, status: int) -> None:
        if status in _MISSING:
            raise FileNotFoundError(name)
        if status not in {200, _PARTIAL}:
            remedy = f"Set the token of that server in {TOKEN}." if status in {401, 403} else "Check the server."
            raise StorageError(f"{self.location}{name}: the server answers {status}.", remedy)
