"""The verbs on a workspace whose store is a real PostgreSQL."""

import json

import yaml


def test_a_session_on_postgresql(run, new_database, tmp_path):
    location = new_database()
    assert run("init", "ws", "--store", location).returncode == 0
    assert not (tmp_path / "ws" / "recrawl.db").exists()
    written = yaml.safe_load((tmp_path / "ws" / "recrawl.yaml").read_text(encoding="utf-8"))
    assert written["store"]["location"] == location
    assert run("add", "-w", "ws", "http://a.org/", "http://b.org/").stdout == "Added 2 pages; 0 known already.\n"
    pages = json.loads(run("list", "-w", "ws", "--json").stdout)
    assert [page["url"] for page in pages] == ["http://a.org/", "http://b.org/"]
    assert json.loads(run("status", "-w", "ws", "--json").stdout)["due"] == 2
    assert json.loads(run("rates", "-w", "ws", "--json").stdout) == []


def test_init_makes_the_tables_that_a_workspace_lacks(run, new_database, tmp_path):
    assert run("init", "ws").returncode == 0
    (tmp_path / "ws" / "recrawl.yaml").write_text(yaml.safe_dump({"store": {"location": new_database()}}))
    assert "Create one with: recrawl init ws" in run("status", "-w", "ws").stderr
    assert run("init", "ws").stdout.startswith("Created a store for the workspace in ws.")
    assert run("status", "-w", "ws").returncode == 0
    assert "already" in run("init", "ws").stderr
