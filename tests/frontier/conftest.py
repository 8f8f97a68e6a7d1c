"""A real server process, and a client generated from the proto file."""

import importlib
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_tools import protoc

import recrawl.web.urlfrontier

FOLDER = Path(recrawl.web.urlfrontier.__file__).parent


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """The modules that protoc generates, as any client has them."""
    folder = tmp_path_factory.mktemp("stubs")
    done = protoc.main(
        ["", f"-I{FOLDER}", f"--python_out={folder}", f"--grpc_python_out={folder}", str(FOLDER / "urlfrontier.proto")]
    )
    assert done == 0
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("urlfrontier_pb2"), importlib.import_module("urlfrontier_pb2_grpc")
    finally:
        sys.path.remove(str(folder))


def run(*words, check=True):
    return subprocess.run(
        [sys.executable, "-m", "recrawl", *map(str, words)], check=check, capture_output=True, text=True, timeout=240
    )


SETTINGS = ("schedule.budget=2000/s", "schedule.discovery_share=1", "politeness.min_delay=0s", "politeness.factor=1")


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """An empty workspace."""
    folder = tmp_path_factory.mktemp("template") / "archive"
    flags = [word for one in ("fetch.contact=me@example.org", *SETTINGS) for word in ("--set", one)]
    run("init", folder, *flags)
    return folder


@pytest.fixture
def workspace(template, tmp_path):
    import shutil

    return Path(shutil.copytree(template, tmp_path / "archive"))


class Server:
    """``recrawl frontier`` in a process of its own."""

    def __init__(self, folder, *words, host="127.0.0.1"):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "recrawl", "frontier", "-w", str(folder), "--listen", f"{host}:0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self.port = None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if found := re.search(r"is at .*:(\d+)$", line):
                self.port = int(found[1])
            if line.startswith("Stop with"):
                break
        assert self.port is not None, self.lines

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        rest = self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(timeout=120), rest


class Client:
    """What tests say to a server, in few words."""

    def __init__(self, generated, channel):
        self.pb, grpc_module = generated
        self.channel = channel
        self.stub = grpc_module.URLFrontierStub(channel)

    def info(self, url, crawl="", **metadata):
        made = self.pb.URLInfo(url=url, crawlID=crawl)
        for name, value in metadata.items():
            made.metadata[name].values.extend([value] if isinstance(value, str) else value)
        return made

    def found(self, *urls, crawl="", **metadata):
        for url in urls:
            info = self.info(url, crawl, **metadata)
            yield self.pb.URLItem(discovered=self.pb.DiscoveredURLItem(info=info), ID=url)

    def known(self, url, date=9_999_999_999, crawl="", number="", **metadata):
        known = self.pb.KnownURLItem(info=self.info(url, crawl, **metadata), refetchable_from_date=date)
        return self.pb.URLItem(known=known, ID=number)

    def put(self, items):
        """The status by id."""
        return {
            ack.ID: self.pb.AckMessage.Status.Name(ack.status) for ack in self.stub.PutURLs(iter(items), timeout=120)
        }

    def get(self, crawl=None, **params):
        if crawl is not None:
            params["crawlID"] = crawl
        return list(self.stub.GetURLs(self.pb.GetParams(**params), timeout=120))

    def urls(self, crawl=None, **params):
        return sorted(one.url for one in self.get(crawl, **params))

    def status(self, url, crawl=""):
        return self.stub.GetURLStatus(self.pb.URLStatusRequest(url=url, crawlID=crawl), timeout=120)

    def stats(self, key="", crawl=""):
        return self.stub.GetStats(self.pb.QueueWithinCrawlParams(key=key, crawlID=crawl), timeout=120)


@pytest.fixture(scope="session")
def client(template, generated, tmp_path_factory):
    """A server for all tests that need none of their own: they use hosts of their own."""
    import shutil

    folder = Path(shutil.copytree(template, tmp_path_factory.mktemp("shared") / "archive"))
    server = Server(folder)
    with grpc.insecure_channel(server.address) as channel:
        yield Client(generated, channel)
    code, rest = server.stop()
    assert code == 0, rest


_numbers = iter(range(10_000))


@pytest.fixture
def host():
    """A host that no other test uses."""
    return f"h{next(_numbers)}.example"


@pytest.fixture
def serve(workspace, generated):
    """Start servers of the workspace; each block yields a server and a client."""
    running = []

    @contextmanager
    def start(*words, credentials=None):
        server = Server(workspace, *words)
        running.append(server)
        channel = (
            grpc.secure_channel(server.address, credentials) if credentials else grpc.insecure_channel(server.address)
        )
        with channel:
            yield server, Client(generated, channel)
        if server.process.poll() is None:
            code, rest = server.stop()
            assert code == 0, rest

    yield start
    for server in running:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        if not server.process.stdout.closed:
            server.process.stdout.close()
