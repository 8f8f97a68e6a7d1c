"""Archive files in object storage and at the servers of others: read by range, within limits, never by half."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recrawl.errors import ConfigError, MissingExtraError, StorageError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.warc import archive_storage
from recrawl.formats.warc.archive_folder import BLOCK, ArchiveFolder, BlockCache, RangeFile, StorageOptions
from recrawl.formats.warc.archive_storage import (
    PART,
    TOKEN,
    HttpStorage,
    S3Options,
    S3Storage,
    digests_of,
    folder_url,
    storage_at,
)
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.formats.warc.warc_check import checked_records
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.model.captures import UploadedFile
from recrawl.time import VirtualClock

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def a_warc(folder: Path, bodies: list[bytes]) -> tuple[Path, list[int]]:
    """A closed WARC file with these responses, and where they begin."""
    clock = VirtualClock(1.8e9)
    with WarcWriter(folder, clock, WarcInfo()) as writer:
        places = [
            writer.write(Capture(f"http://a.example/{number}", 1.8e9 + number, 200, HEAD, body))
            for number, body in enumerate(bodies)
        ]
    [path] = folder.glob("*.warc.gz")
    return path, [place.offset for place in places]


def uploaded(storage: S3Storage, path: Path) -> Callable[[str], UploadedFile | None]:
    known = digests_of(path)
    storage.upload(path, known)
    row = UploadedFile(path.name, storage.location, known.size, known.sha256, 1.0)
    return {path.name: row}.get


def test_captures_of_a_file_that_is_only_in_object_storage_are_read_by_range(tmp_path, s3_bucket):
    bodies = [b"small", os.urandom(3 * BLOCK), b"x" * 100_000, os.urandom(70_000)]
    path, offsets = a_warc(tmp_path / "warc", bodies)
    storage = S3Storage(f"s3://{s3_bucket}/some/prefix/", S3Options())
    where = uploaded(storage, path)
    expected = [read_capture(path, offset) for offset in offsets]
    with path.open("rb") as file:
        whole = list(checked_records(file, path.name, lambda *_: None))
    rows = [batch.to_pydict() for batch in index_warc(path, ReadReport())]
    path.unlink()
    asked: list[tuple[int, int]] = []
    read = S3Storage.read

    def counted(self, name, start, end, size):
        asked.append((start, end))
        return read(self, name, start, end, size)

    folder = ArchiveFolder(tmp_path / "warc", StorageOptions(cache=tmp_path / "cache", cache_size=1 << 30), where)
    archived = ArchivedBytes(folder, lambda _file: False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Storage, "read", counted)
        assert [archived.read(path.name, offset) for offset in offsets] == expected
        first = len(asked)
        assert first
        assert [archived.read(path.name, offset) for offset in offsets] == expected
    assert len(asked) == first, "the cache has all of it"
    remote = folder.find(path.name)
    with remote.open() as file:
        assert list(checked_records(file, path.name, lambda *_: None)) == whole
    assert [batch.to_pydict() for batch in index_warc(remote, ReadReport())] == rows
    assert not archived.has("other.warc.gz")
    assert archived.read("../" + path.name, offsets[0]) is None


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 2 * PART + 17])
def test_an_upload_is_checked_and_not_repeated(tmp_path, s3_bucket, size, monkeypatch):
    path = tmp_path / "a file~1.warc.gz"
    data = os.urandom(size)
    path.write_bytes(data)
    storage = S3Storage(f"s3://{s3_bucket}/", S3Options())
    known = digests_of(path)
    assert known.sha256 == hashlib.sha256(data).digest()
    storage.upload(path, known)
    assert storage.about(path.name) == (size, known.etag)
    assert storage.sha256(path.name, size) == known.sha256
    monkeypatch.setattr(storage, "_writes", None)  # nothing can be sent any more
    storage.upload(path, known)
    storage.upload(path, known._replace(etag="of-an-encrypted-bucket"))  # read back instead
    with pytest.raises(StorageError):
        storage.upload(path, known._replace(etag="", sha256=bytes(32)))


def test_a_file_that_was_replaced_is_an_error_and_not_its_bytes(tmp_path, s3_bucket):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"x" * 1000)
    storage = S3Storage(f"s3://{s3_bucket}/", S3Options())
    storage.upload(path, digests_of(path))
    assert storage.read("a.warc.gz", 10, 20, 1000) == b"x" * 10
    with pytest.raises(StorageError, match="has 1,000 bytes, not 999"):
        storage.read("a.warc.gz", 10, 20, 999)
    with pytest.raises(StorageError, match="not there"):
        storage.read("b.warc.gz", 0, 10, 1000)
    assert storage.about("b.warc.gz") is None


def test_credentials_come_from_the_files_of_aws_and_are_in_no_message(tmp_path, s3_bucket, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    files = tmp_path / "credentials"
    files.write_text(
        "[default]\nregion = nowhere\n[crawler]\naws_access_key_id = AKIA1\naws_secret_access_key = hidden\n"
    )
    config = tmp_path / "config"
    config.write_text("[profile crawler]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(files))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "crawler")
    found = archive_storage._from_files(archive_storage._environment())
    assert found == {"aws_access_key_id": "AKIA1", "aws_secret_access_key": "hidden", "aws_region": "eu-west-1"}
    storage = S3Storage(f"s3://{s3_bucket}/", S3Options())
    assert storage.about("nothing") is None
    with pytest.raises(StorageError) as caught:
        S3Storage(f"s3://{s3_bucket}/", S3Options(endpoint="http://127.0.0.1:9", timeout=2, retries=0)).about("a")
    assert "hidden" not in str(caught.value)
    assert "AKIA1" not in str(caught.value)
    files.write_text("this is = [no\nsuch file")
    with pytest.raises(ConfigError, match="cannot be read"):
        S3Storage(f"s3://{s3_bucket}/", S3Options())


def test_without_the_library_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    archive_storage._storage_at.cache_clear()
    with pytest.raises(MissingExtraError, match=r"recrawl\[s3\]"):
        storage_at("s3://bucket/prefix", S3Options())


@pytest.mark.parametrize(
    "text", ["bucket/prefix", "s3:///x", "s3://key:secret@bucket/", "http://a/b?c", "file:///srv", "s3://a b/"]
)
def test_what_is_no_location_is_refused_without_repeating_more_than_it(text):
    with pytest.raises(ConfigError, match="no location"):
        folder_url(text)


# -- odd and hostile servers ------------------------------------------------------------------------

SIZE = 10 * BLOCK


class OddServer(BaseHTTPRequestHandler):
    """A server that answers ranges of a file of zeros, in a way that a test chooses."""

    how = ""
    asked = 0
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 10:00:00 GMT")
        self.end_headers()

    def do_GET(self):
        type(self).asked += 1
        start, end = (int(text) for text in self.headers["Range"].removeprefix("bytes=").split("-"))
        length = end + 1 - start
        how = type(self).how
        if how.isdigit():
            self.send_response(int(how))
            self.send_header("Content-Length", "0")
            if how == "302":
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            return
        self.send_response(200 if how == "whole" else 206)
        said = {"longer": 2 * length, "whole": SIZE, "other-length": length - 5}.get(how, length)
        if how not in {"endless", "no-length"}:
            self.send_header("Content-Length", str(said))
        last = end + length if how == "longer" else end
        self.send_header("Content-Range", f"bytes {start}-{last}/{SIZE - (how == 'other-size')}")
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 10:00:00 GMT")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            self.send(how, length, said)

    def send(self, how, length, said):
        if how == "cut":
            self.wfile.write(bytes(length // 2))
        elif how == "slow":
            while True:
                self.wfile.write(b"\0")
                time.sleep(0.1)
        elif how == "silent":
            time.sleep(30)
        elif how == "endless":
            while True:
                self.wfile.write(bytes(1 << 20))
        else:
            self.wfile.write(bytes(said))

    def log_message(self, *_args):
        pass


@contextmanager
def odd_server(how: str) -> Iterator[str]:
    handler = type("Handler", (OddServer,), {"how": how, "asked": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


ODD = ["cut", "503", "404", "403", "302", "whole", "longer", "other-length", "other-size", "slow", "silent", "endless"]


@pytest.mark.parametrize("kind", ["s3", "http"])
@pytest.mark.parametrize("how", ["", *ODD])
def test_an_odd_server_costs_bounded_time_and_memory_and_gives_no_wrong_bytes(kind, how, monkeypatch):
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(key, "us-east-1")
    with odd_server(how) as address:
        options = S3Options(address, "us-east-1", timeout=2.0, retries=1)
        storage = S3Storage("s3://bucket/", options) if kind == "s3" else HttpStorage(f"{address}/warc/", "secret", 2.0)
        if not how:
            assert storage.read("a.warc.gz", BLOCK, 2 * BLOCK, SIZE) == bytes(BLOCK)
            return
        tracemalloc.start()
        try:
            with pytest.raises(StorageError) as caught:
                storage.read("a.warc.gz", BLOCK, 2 * BLOCK, SIZE)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 20 * BLOCK
        assert "secret" not in str(caught.value)


def test_damage_in_the_storage_is_no_missing_capture(tmp_path, s3_bucket, s3_server):
    """A storage that is away raises: an archive must not seem empty because the network is."""
    path, offsets = a_warc(tmp_path / "warc", [b"one"])
    row = UploadedFile(path.name, f"s3://{s3_bucket}/", path.stat().st_size, bytes(32), 1.0)
    path.unlink()
    options = StorageOptions(s3=S3Options("http://127.0.0.1:9", timeout=2.0, retries=0))
    archived = ArchivedBytes(ArchiveFolder(tmp_path / "warc", options, {row.name: row}.get), lambda _file: False)
    assert archived.has(path.name)
    with pytest.raises(StorageError, match="cannot be reached"):
        archived.read(path.name, offsets[0])


def test_a_local_file_that_is_removed_after_its_upload_goes_on_to_be_read(tmp_path, s3_bucket):
    path, offsets = a_warc(tmp_path / "warc", [b"one", b"two"])
    where = uploaded(S3Storage(f"s3://{s3_bucket}/", S3Options()), path)
    archived = ArchivedBytes(ArchiveFolder(tmp_path / "warc", StorageOptions(), where), lambda _file: False)
    assert archived.read(path.name, offsets[0]).raw_body == b"one"
    path.unlink()
    assert archived.read(path.name, offsets[1]).raw_body == b"two"


# -- the cache ---------------------------------------------------------------------------------------


def test_the_cache_is_bounded_and_drops_what_was_used_longest_ago(tmp_path):
    cache = BlockCache(tmp_path / "cache", 10 * BLOCK)
    for number in range(25):
        cache.put("file", number, bytes([number]) * BLOCK)
        for kept in (0, 1):
            if cache.get("file", kept, BLOCK) is not None:
                path = cache._path("file", kept)
                os.utime(path, ns=(2**62, 2**62))  # used last, however coarse the clock of the file system is
    held = sum(path.stat().st_size for path in (tmp_path / "cache").iterdir())
    assert held <= 10 * BLOCK
    assert cache.get("file", 0, BLOCK) == bytes(BLOCK)
    assert sum(cache.get("file", number, BLOCK) is not None for number in range(25)) == held // BLOCK
    again = BlockCache(tmp_path / "cache", 3 * BLOCK)  # another process, with less room
    again.put("other", 0, b"x" * BLOCK)
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 3 * BLOCK


def test_a_block_that_is_not_whole_is_read_again(tmp_path):
    cache = BlockCache(tmp_path / "cache", 10 * BLOCK)
    cache.put("file", 0, b"cut")
    assert cache.get("file", 0, BLOCK) is None
    assert cache.get("file", 0, 3) == b"cut"
    none = BlockCache(tmp_path / "none", 0)
    none.put("file", 0, b"x")
    assert none.get("file", 0, 1) is None
    assert not (tmp_path / "none").exists()


class Pieces:
    """A storage that says which ranges were asked for."""

    location = "test://"

    def __init__(self, data: bytes) -> None:
        self.data, self.asked = data, []

    def about(self, name):
        raise NotImplementedError

    def read(self, name, start, end, size):
        self.asked.append((start, end))
        return self.data[start:end]


def test_a_file_in_order_is_read_in_large_ranges_and_one_record_in_a_small_one(tmp_path):
    data = os.urandom(40 * BLOCK + 123)
    storage = Pieces(data)
    file = RangeFile(storage, "a", len(data), BlockCache(tmp_path, 0))
    got = b"".join(iter(lambda: file.read(100_000), b""))
    assert got == data
    assert len(storage.asked) < 6
    storage.asked.clear()
    file = RangeFile(storage, "a", len(data), BlockCache(tmp_path, 0))
    file.seek(-50, os.SEEK_END)
    assert file.read() == data[-50:]
    assert file.pread(10, 7) == data[7:17]
    assert file.pread(10, len(data)) == b""
    assert [end - start for start, end in storage.asked] == [123, BLOCK]


def test_the_server_of_another_worker_is_asked_with_the_token_only(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard: list[bytes] = []

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/9\r\nContent-Length: 3\r\n\r\nabc")

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv(TOKEN, "the-token")
        storage = storage_at(f"http://127.0.0.1:{server.getsockname()[1]}/warc", S3Options())
        assert storage.read("a b.warc.gz", 0, 3, 9) == b"abc"
        thread.join()
    assert b"GET /warc/a%20b.warc.gz HTTP/1.1" in heard[0]
    assert b"Authorization: Bearer the-token" in heard[0]
