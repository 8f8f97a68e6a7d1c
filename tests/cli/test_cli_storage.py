"""WARC files in object storage and at other workers, as users have them: uploaded, read, checked, never lost."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from recrawl.crawl.maintenance.archive_upload import ArchiveUploader
from recrawl.errors import StorageError
from recrawl.formats.warc.archive_folder import StorageOptions
from recrawl.formats.warc.archive_storage import PART, S3Options, S3Storage
from recrawl.model import Verdict
from recrawl.store.open import open_store

PAGES = 6


class Site(BaseHTTPRequestHandler):
    """Pages that link to each other."""

    def do_GET(self):
        found = self.path != "/robots.txt"
        links = "".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES))
        body = f"<html><title>{self.path}</title><p>page {self.path} with some text</p>{links}".encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def crawl(run, site):
    """Makes a workspace with these settings, and crawls the site."""

    def make(name: str, **archive: object) -> tuple[str, str]:
        said = {
            "fetch.contact": "me@example.org",
            "fetch.allow_networks": "127.0.0.1",
            "politeness.min_delay": "1ms",
            "politeness.ip_delay": "1ms",
            "politeness.factor": 0,
            "schedule.budget": "100/s",
            **{f"archive.{key}": value for key, value in archive.items()},
        }
        options = [part for key, value in said.items() for part in ("--set", f"{key}={value}")]
        assert run("init", name, *options).returncode == 0
        assert run("add", "-w", name, f"{site}/0").returncode == 0
        done = run("run", "-w", name, "--once", "--for", "20min")
        assert done.returncode == 0, done.stderr
        return name, done.stdout + done.stderr

    return make


def closed(folder: Path) -> list[Path]:
    return sorted((folder / "warc").glob("*.warc.gz*"))


def rows(workspace: Path) -> list:
    with open_store(workspace / "recrawl.db") as store:
        return store.uploaded_files()


def test_all_commands_work_when_the_local_files_are_gone(run, crawl, site, tmp_path, s3_bucket):
    name, _ = crawl("ws", storage=f"s3://{s3_bucket}/crawls/ws", keep_local="0s")
    workspace = tmp_path / name
    assert run("upload", "-w", name).returncode == 0  # what the run had no time for
    assert not closed(workspace)
    [row] = rows(workspace)
    assert row.location == f"s3://{s3_bucket}/crawls/ws/"
    checked = json.loads(run("verify", "-w", name, "--json").stdout)
    assert (checked["errors"], checked["warnings"]) == (0, 0)
    assert checked["captures"] == PAGES
    assert checked["bytes"] > 0
    sampled = json.loads(run("verify", "-w", name, "--sample", 3, "--json").stdout)
    assert (sampled["errors"], sampled["sample"]["wrong"]) == (0, 0)

    assert run("export", "all.wacz", "-w", name).returncode == 0
    with zipfile.ZipFile(tmp_path / "all.wacz") as package:
        assert f"archive/{row.name}" in package.namelist()
        assert package.getinfo(f"archive/{row.name}").file_size == row.size
    assert run("export", "all.cdxj", "-w", name).returncode == 0
    lines = (tmp_path / "all.cdxj").read_text().splitlines()
    assert sum(row.name in line for line in lines) == PAGES
    paths = run("export", "all.cdxj", "-w", name, "--path-index", "paths.txt")
    assert paths.returncode == 0
    assert (tmp_path / "paths.txt").read_text() == f"{row.name}\t{row.location}{row.name}\n"

    assert run("assess", "-w", name).returncode == 0
    assert run("report", "-w", name, "-o", "report.html").returncode == 0
    assert f"{site}/0" in run("explain", "-w", name, f"{site}/0").stdout
    assert run("list", "noise", "-w", name).returncode == 0
    assert json.loads(run("status", "-w", name, "--json").stdout)["not_uploaded"] == {"files": 0, "bytes": 0}

    backed_up = json.loads(run("backup", "backups", "-w", name, "--json").stdout)
    assert backed_up["missing"] == []
    assert backed_up["in_storage"] == [f"{row.location}{row.name}"]
    assert run("restore", "backups", "again").returncode == 0
    again = json.loads(run("verify", "-w", "again", "--json").stdout)
    assert (again["errors"], again["captures"]) == (0, PAGES)

    secrets = ("not-a-secret", "AWS_SECRET")
    for file in [*workspace.rglob("*"), tmp_path / "report.html"]:
        if file.is_file():
            assert not any(secret.encode() in file.read_bytes() for secret in secrets), file


def test_a_lost_object_is_an_error_and_a_storage_that_is_away_is_none(run, crawl, tmp_path, s3_bucket, s3_server):
    name, _ = crawl("ws", storage=f"s3://{s3_bucket}/", keep_local="0s")
    assert run("upload", "-w", name).returncode == 0
    away = run("verify", "-w", name, "--json", "--set", "archive.storage_endpoint=http://127.0.0.1:9")
    told = json.loads(away.stdout)
    assert told["errors"] == 0
    assert {one["kind"] for one in told["findings"]} >= {"storage_away"}
    [row] = rows(tmp_path / name)
    storage = S3Storage(row.location, S3Options())
    storage._obstore.delete(storage._reads, row.name)
    lost = run("verify", "-w", name, "--json")
    assert lost.returncode == 9
    assert "upload_missing" in {one["kind"] for one in json.loads(lost.stdout)["findings"]}


def test_a_crawl_goes_on_without_its_storage_and_says_what_is_not_uploaded(run, crawl, tmp_path, s3_bucket):
    name, said = crawl("ws", storage=f"s3://{s3_bucket}/", storage_endpoint="http://127.0.0.1:9", keep_local="0s")
    workspace = tmp_path / name
    [file] = closed(workspace)
    assert "1 WARC file not uploaded yet." in said
    status = json.loads(run("status", "-w", name, "--json").stdout)["not_uploaded"]
    assert status == {"files": 1, "bytes": file.stat().st_size}
    assert "not in object storage yet" in run("status", "-w", name).stdout
    checked = json.loads(run("verify", "-w", name, "--json").stdout)
    assert checked["errors"] == 0
    assert [one["examples"] for one in checked["findings"] if one["kind"] == "not_uploaded"] == [[file.name]]
    failed = run("upload", "-w", name)
    assert failed.returncode == 1
    assert "cannot be reached" in failed.stderr
    assert file.exists()
    done = run("upload", "-w", name, "--set", f"archive.storage_endpoint={os.environ['AWS_ENDPOINT_URL']}")  # noqa: TID251 - of the test
    assert "Uploaded 1 WARC file" in done.stdout
    assert "Removed 1 local file." in done.stdout
    assert not closed(workspace)


def test_uploads_need_a_storage(run, workspace):
    failed = run("upload", "-w", "ws")
    assert failed.returncode == 4
    assert "archive.storage is empty" in failed.stderr
    for key, value in (
        ("storage", "http://a/b"),
        ("storage", "bucket"),
        ("locations", "ftp://x/"),
        ("keep_local", "x"),
    ):
        assert run("status", "-w", "ws", "--set", f"archive.{key}={value}").returncode == 4


def test_files_stay_for_as_long_as_the_settings_say(tmp_path, s3_bucket):
    warc = tmp_path / "warc"
    warc.mkdir()
    now = [1000.0]
    (warc / "a.warc.gz").write_bytes(b"first")
    (warc / "b.warc.gz.open").write_bytes(b"still written")
    options = StorageOptions(f"s3://{s3_bucket}/", keep_local=60.0)
    uploader = ArchiveUploader(warc, options, lambda: now[0])
    with open_store(tmp_path / "a.db", create=True) as store:
        done = uploader.run(store)
        assert (done.files, done.removed) == (1, 0)
        now[0] = 1059.0
        assert uploader.run(store).removed == 0
        (warc / "a.warc.gz").write_bytes(b"other size")
        now[0] = 1060.0
        assert uploader.run(store).removed == 0, "this is not the file that was uploaded"
        (warc / "a.warc.gz").write_bytes(b"first")
        assert uploader.run(store).removed == 1
        assert [path.name for path in warc.glob("*.warc*")] == ["b.warc.gz.open"]


class Stalling:
    """Passes bytes on to a server, and stops for good after some of them."""

    def __init__(self, port: int, most: int) -> None:
        self._port, self._most, self.passed = port, most, 0
        self.stalled = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [client, server]
                threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self.passed += len(data) if counts else 0
                if self.passed > self._most:
                    self.stalled.set()
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._server.close()
        for one in self._sockets:
            one.close()


@pytest.mark.parametrize("after", [PART // 2, 2 * PART])
def test_a_kill_during_an_upload_loses_nothing_and_leaves_no_half_object(run, workspace, s3_bucket, s3_server, after):
    file = workspace / "warc" / "big.warc.gz"
    data = os.urandom(4 * PART)
    file.write_bytes(data)
    proxy = Stalling(int(s3_server.rpartition(":")[2]), after)
    storage = S3Storage(f"s3://{s3_bucket}/p/", S3Options())
    command = [sys.executable, "-m", "recrawl", "upload", "-w", str(workspace)]
    settings = {"archive.storage": f"s3://{s3_bucket}/p", "archive.keep_local": "0s"}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    try:
        process = subprocess.Popen(
            [*command, *options, "--set", f"archive.storage_endpoint=http://127.0.0.1:{proxy.port}"]
        )
        assert proxy.stalled.wait(120)
        process.send_signal(signal.SIGKILL)
        assert process.wait(120) == -signal.SIGKILL
    finally:
        proxy.close()
    assert storage.about(file.name) is None
    assert rows(workspace) == []
    assert file.read_bytes() == data
    done = run("upload", "-w", "ws", *options, "--json")
    assert json.loads(done.stdout) == {
        "files": 1, "bytes": len(data), "removed": 1, "location": f"s3://{s3_bucket}/p/"
    }  # fmt: skip
    assert not file.exists()
    [row] = rows(workspace)
    assert storage.sha256(file.name, len(data)) == row.sha256


def test_a_kill_between_upload_and_record_repeats_only_the_record(run, workspace, s3_bucket, s3_server):
    file = workspace / "warc" / "big.warc.gz"
    file.write_bytes(os.urandom(2 * PART))
    options = StorageOptions(f"s3://{s3_bucket}/p/")
    with open_store(workspace / "recrawl.db") as store:
        uploader = ArchiveUploader(workspace / "warc", options, lambda: 1.0)
        assert uploader._upload(file, lambda: False) is not None  # and the process ends here
        assert uploader.waiting(store) == [file]
    proxy = Stalling(int(s3_server.rpartition(":")[2]), 1 << 30)
    try:
        done = run(
            "upload", "-w", "ws", "--set", f"archive.storage=s3://{s3_bucket}/p",
            "--set", f"archive.storage_endpoint=http://127.0.0.1:{proxy.port}",
        )  # fmt: skip
    finally:
        proxy.close()
    assert "Uploaded 1 WARC file" in done.stdout
    assert proxy.passed < PART, "the file was sent again"
    assert [row.name for row in rows(workspace)] == [file.name]


@pytest.mark.slow
def test_two_workspaces_read_each_others_captures_over_http(run, crawl, site, tmp_path):
    """One store, two folders of archive files: each reads the other's by range, under the token."""
    name, _ = crawl("one")
    shared = (tmp_path / name / "recrawl.db").resolve()
    token = "a-long-token-for-this-test"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "recrawl", "serve", "-w", "one", "--port", "0", "--token", token],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        addresses: list[str] = []
        while not any("/archive/" in one for one in addresses):
            line = server.stdout.readline()
            assert line, server.stderr.read()
            addresses += re.findall(r"http://[^\s?]+", line)
        [archive] = [one for one in addresses if "/archive/" in one]
        files = archive.partition("/archive/")[0] + "/warc/"
        where = ["--set", f"archive.locations={files}"]
        assert run("init", "two", "--set", f"store.location={shared}").returncode == 0
        [file] = closed(tmp_path / "one")
        missing = json.loads(run("verify", "-w", "two", "--json").stdout)
        assert "file_missing" in {one["kind"] for one in missing["findings"]}
        peer = {"RECRAWL_PEER_TOKEN": token}
        checked = json.loads(run("verify", "-w", "two", *where, "--json", env=peer).stdout)
        assert (checked["errors"], checked["captures"]) == (0, PAGES)
        assert run("export", "two.wacz", "-w", "two", *where, env=peer).returncode == 0
        with zipfile.ZipFile(tmp_path / "two.wacz") as package:
            assert package.read(f"archive/{file.name}") == file.read_bytes()
        refused = run("export", "no.wacz", "-w", "two", *where, env={"RECRAWL_PEER_TOKEN": "wrong"})
        assert refused.returncode == 1
        assert "RECRAWL_PEER_TOKEN" in refused.stderr
        assert "wrong" not in refused.stderr
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)


def test_two_workspaces_read_each_others_captures_from_object_storage(run, crawl, site, tmp_path, s3_bucket):
    name, _ = crawl("one", storage=f"s3://{s3_bucket}/shared")
    assert run("upload", "-w", name).returncode == 0
    shared = (tmp_path / name / "recrawl.db").resolve()
    assert run("init", "two", "--set", f"store.location={shared}").returncode == 0
    checked = json.loads(run("verify", "-w", "two", "--json").stdout)
    assert (checked["errors"], checked["captures"]) == (0, PAGES)


def test_an_upload_in_a_thread_ends_with_its_crawl_however_slow_the_storage_is(tmp_path, s3_bucket, s3_server):
    from recrawl.crawl.maintenance import archive_upload

    warc = tmp_path / "warc"
    warc.mkdir()
    (warc / "a.warc.gz").write_bytes(os.urandom(3 * PART))
    proxy = Stalling(int(s3_server.rpartition(":")[2]), PART)
    options = StorageOptions(
        f"s3://{s3_bucket}/", s3=S3Options(f"http://127.0.0.1:{proxy.port}", timeout=0.5, retries=0)
    )
    open_store(tmp_path / "a.db", create=True).close()
    try:
        with archive_upload.uploads_meanwhile(
            ArchiveUploader(warc, options, lambda: 1.0),
            lambda: open_store(tmp_path / "a.db"),
            lambda _error: None,
        ) as thread:
            pass
        thread._thread.join(120)
        assert not thread._thread.is_alive()
        assert thread.waiting.files == 1
    finally:
        proxy.close()
    with pytest.raises(StorageError):
        S3Storage(f"s3://{s3_bucket}/", S3Options()).read("a.warc.gz", 0, 1, 3 * PART)


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "store-archives-in-object-storage.md"


def test_the_commands_of_the_guide_work(run, crawl, tmp_path, s3_bucket, s3_server):
    """Each is run as it is written, with another bucket, endpoint and server."""
    blocks = re.findall(r"^```\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    said = [shlex.split(line)[1:] for line in lines if line.startswith("recrawl ")]
    assert [words[0] for words in said] == ["init", "upload", "status", "verify", "export", "serve", "export"]
    init, upload, status, verify, export, serve, elsewhere = (
        [word.replace("my-bucket", s3_bucket).replace("https://s3.example.org", s3_server) for word in words]
        for words in said
    )
    assert run(*init).returncode == 0
    stored = [word for word in init if word.startswith("archive.")]
    crawl(
        "other-archive",
        **{key.removeprefix("archive."): value for key, _, value in (one.partition("=") for one in stored)},
    )
    shutil.copytree(tmp_path / "other-archive" / "warc", tmp_path / "my-archive" / "warc", dirs_exist_ok=True)
    shutil.copy(tmp_path / "other-archive" / "recrawl.db", tmp_path / "my-archive" / "recrawl.db")
    for words in (upload, status, verify, export):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "my-archive.wacz").stat().st_size > 0
    assert run(*serve[:3], "--help").returncode == 0
    assert {"--host", "--token"} <= set(serve)
    assert run(*elsewhere[:4]).returncode == 0
    assert elsewhere[4:] == ["--set", "archive.locations=http://unit-1:8001/warc"]


@pytest.mark.slow
def test_one_workspace_reads_the_captures_of_all_units(run, crawl, site, tmp_path, s3_bucket):
    """Two stores with files in object storage, and a workspace that holds what both know, as in the guide on units."""
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "run-several-units.md").read_text(encoding="utf-8")
    [commands] = [text for text in re.findall(r"```\n(.*?)```", guide, re.DOTALL) if "init all" in text]
    for name in ("unit-a", "unit-b"):
        crawl(name, storage=f"s3://{s3_bucket}/{name}", keep_local="0s")
        assert run("upload", "-w", name).returncode == 0
    for line in commands.replace("\\\n", "").replace("s3://my-bucket", f"s3://{s3_bucket}").splitlines():
        done = run(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)
    parts = []
    for name in ("unit-a", "unit-b"):
        with open_store(tmp_path / name / "recrawl.db") as store:
            parts.append(store.visits())
    with open_store(tmp_path / "all" / "recrawl.db") as store:
        visits, counts = store.visits(), store.counts(0.0)
        assert sorted(visits.time.tolist()) == sorted(float(int(time)) for part in parts for time in part.time.tolist())
        assert set(visits.verdict.tolist()) == {Verdict.UNKNOWN, Verdict.UNCHANGED}  # the second is that of other bytes
        assert (counts.pages, counts.captures) == (PAGES, len(visits))
    checked = json.loads(run("verify", "-w", "all", "--json").stdout)
    assert (checked["errors"], checked["warnings"], checked["captures"]) == (0, 0, len(visits))
    assert run("export", "all.wacz", "-w", "all").returncode == 0
    with zipfile.ZipFile(tmp_path / "all.wacz") as package:
        assert sum(name.startswith("archive/") for name in package.namelist()) == 2
    assessed = run("assess", "-w", "all")
    assert f"{len(visits)} captures of {PAGES} pages" in assessed.stdout
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "recrawl", "serve", "-w", "all", "--port", "0"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while "/archive/" not in (line := server.stdout.readline()):
            assert line, server.stderr.read()
        [archive] = re.findall(r"http://\S+?/archive/", line)
        for part in parts:
            moment = datetime.fromtimestamp(float(part.time[0]), UTC).strftime("%Y%m%d%H%M%S")
            with urlopen(f"{archive}{moment}id_/{site}/0", timeout=60) as answer:
                assert b"page /0 with some text" in answer.read()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)
