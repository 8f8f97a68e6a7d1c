"""The verbs on real workspaces."""

import json
import stat

import numpy as np
import pytest
import yaml

from recrawl.errors import ExitCode
from recrawl.formats.columnar.arrow_tables import read_histories, read_visits
from recrawl.model import Histories, Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import DAY

START = 1_700_000_000.0


def stored(workspace):
    return open_store(workspace / "recrawl.db")


def listed(run, *arguments):
    result = run("list", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def lived_in(workspace):
    """Three pages on two hosts: one changes daily, one never did in 20 days, one fails. One more was never visited."""
    urls = ["http://a.org/daily", "http://a.org/never", "http://b.org/broken", "http://b.org/unseen"]
    with stored(workspace) as store:
        page = store.discover(urls, START)
        times = START + DAY * np.arange(20)
        parts = [
            Visits.of(np.repeat(page[0], 20), times, verdict=[Verdict.UNKNOWN] + [Verdict.CHANGED] * 19, status=200),
            Visits.of(np.repeat(page[1], 20), times, verdict=[Verdict.UNKNOWN] + [Verdict.UNCHANGED] * 19, status=304),
            Visits.of(np.repeat(page[2], 3), times[:3], outcome=Outcome.SERVER_ERROR, status=503),
        ]
        store.record(Visits.concatenate(parts), due=np.full(43, START + 100 * DAY))
        store.record_links(page[:1], page[1:2], times[:1])
    return workspace


@pytest.mark.slow
def test_a_first_session_in_processes_of_its_own(spawn, tmp_path):
    assert spawn("init", "ws").returncode == 0
    assert spawn("add", "-w", "ws", "http://a.org/", "http://b.org/").stdout == "Added 2 pages; 0 known already.\n"
    pages = json.loads(spawn("list", "--json", env={"RECRAWL_WORKSPACE": str(tmp_path / "ws")}).stdout)
    assert [page["url"] for page in pages] == ["http://a.org/", "http://b.org/"]
    assert json.loads(spawn("status", "-w", "ws", "--json").stdout)["due"] == 2
    wrong = spawn("rates", "-w", "ws", env={"RECRAWL_FETCH_TIMOUT": "3s"})
    assert wrong.returncode == ExitCode.BAD_CONFIG
    assert "Did you mean 'RECRAWL_FETCH_TIMEOUT'?" in wrong.stderr


# -- init ------------------------------------------------------------------------------------------


def test_init_makes_all_parts_and_a_file_that_reads_back(run, tmp_path):
    result = run("init", "deep/ws")
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "deep" / "ws"
    assert sorted(path.name for path in folder.iterdir()) == ["recrawl.db", "recrawl.yaml", "reports", "warc"]
    assert set(yaml.safe_load((folder / "recrawl.yaml").read_text(encoding="utf-8")).values()) == {None}
    assert run("status", "-w", "deep/ws").returncode == 0


def test_init_in_the_current_folder_is_found_without_a_flag(run, tmp_path):
    made = run("init")
    assert made.returncode == 0
    assert made.stdout.startswith("Created a workspace in the current folder.\n")
    assert (tmp_path / "recrawl.yaml").exists()
    assert run("list").returncode == 0


def test_init_writes_what_it_is_told(run, tmp_path):
    assert run("init", "ws", "--store", "other.db", "--set", "fetch.timeout=20s").returncode == 0
    written = yaml.safe_load((tmp_path / "ws" / "recrawl.yaml").read_text(encoding="utf-8"))
    assert written["store"] == {"location": "other.db"}
    assert written["fetch"] == {"timeout": "20s"}
    assert (tmp_path / "ws" / "other.db").exists()


def test_init_leaves_a_workspace_alone(run, workspace):
    before = (workspace / "recrawl.yaml").read_bytes()
    result = run("init", "ws")
    assert result.returncode == ExitCode.ERROR
    assert "There is a workspace in ws already" in result.stderr
    assert (workspace / "recrawl.yaml").read_bytes() == before


def test_init_with_a_wrong_setting_makes_nothing(run, tmp_path):
    result = run("init", "ws", "--set", "fetch.timout=20s")
    assert result.returncode == ExitCode.BAD_CONFIG
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize("location", ["mysql://x/y", "missing/recrawl.db", "postgresql://127.0.0.1:1/none"])
def test_init_whose_store_cannot_be_made_leaves_nothing_in_the_way(run, tmp_path, location):
    assert run("init", "ws", "--store", location).returncode == ExitCode.ERROR
    assert not (tmp_path / "ws").exists()
    assert run("init", "ws").returncode == 0


def test_a_database_out_of_reach_is_told_in_two_lines(run):
    result = run("init", "ws", "--store", "postgresql://127.0.0.1:1/none")
    what, remedy = result.stderr.splitlines()
    assert what.startswith("recrawl: The database postgresql://127.0.0.1:1/none is out of reach: ")
    assert "?" not in what
    assert remedy.startswith("Check that the server runs")


def test_init_keeps_a_folder_that_was_there_when_the_store_cannot_be_made(run, tmp_path):
    (tmp_path / "ws").mkdir()
    assert run("init", "ws", "--store", "mysql://x/y").returncode == ExitCode.ERROR
    assert list((tmp_path / "ws").iterdir()) == []


def test_init_makes_the_store_that_a_workspace_lacks(run, workspace):
    before = (workspace / "recrawl.yaml").read_bytes()
    (workspace / "recrawl.db").unlink()
    missing = run("status", "-w", "ws")
    assert missing.returncode == ExitCode.ERROR
    assert missing.stderr.endswith("Create one with: recrawl init ws\n")
    assert run("init", "ws", "--set", "fetch.timeout=20s").returncode == ExitCode.ERROR  # would not be written
    assert run("init", "ws").stdout.startswith("Created a store for the workspace in ws.\n")
    assert run("status", "-w", "ws").returncode == 0
    assert (workspace / "recrawl.yaml").read_bytes() == before


def test_a_store_that_was_named_by_a_flag_and_is_missing_is_not_for_init_to_make(run, workspace):
    result = run("status", "-w", "ws", "--set", "store.location=other.db")
    assert "There is no store at ws/other.db." in result.stderr
    assert "recrawl init" not in result.stderr


def test_init_below_a_file_says_so(run, tmp_path):
    (tmp_path / "file").touch()
    result = run("init", "file/ws")
    assert result.returncode == ExitCode.ERROR
    assert "Traceback" not in result.stderr


# -- add -------------------------------------------------------------------------------------------


def test_add_urls_twice_adds_them_once(run, workspace):
    first = run("add", "-w", "ws", "http://www.a.org/", "http://a.org/?b=1&a=2", "http://a.org")
    assert first.stdout == "Added 2 pages; 0 known already.\n"
    second = run("add", "-w", "ws", "http://a.org/?a=2&b=1", "http://b.org/")
    assert second.stdout == "Added 1 page; 1 known already.\n"
    urls = [page["url"] for page in listed(run, "pages", "-w", "ws")]
    assert urls == ["http://www.a.org/", "http://a.org/?b=1&a=2", "http://b.org/"]


def test_add_reads_the_dialects_of_seed_files(run, workspace, tmp_path):
    (tmp_path / "seeds.txt").write_bytes(
        "\ufeff# ours\r\n\r\nhttp://a.org/ä\tscore=2\tnote=x y\r\n  http://b.org/  \n+http://(org,c,)/\n".encode()
    )
    result = run("add", "-w", "ws", "--file", "seeds.txt")
    assert result.returncode == 0, result.stderr
    assert "Added 2 pages" in result.stdout
    assert "Skipped 1 +SURT line" in result.stdout
    assert [page["url"] for page in listed(run, "-w", "ws")] == ["http://a.org/%C3%A4", "http://b.org/"]


def test_add_with_one_wrong_line_names_it_and_adds_nothing(run, workspace, tmp_path):
    (tmp_path / "seeds.txt").write_text("http://a.org/\n\nmailto:x@b.org\n", encoding="utf-8")
    result = run("add", "-w", "ws", "http://c.org/", "--file", "seeds.txt")
    assert result.returncode == ExitCode.ERROR
    assert "seeds.txt, line 3" in result.stderr
    assert listed(run, "-w", "ws") == []


def test_add_says_where_a_file_stops_being_utf8(run, workspace, tmp_path):
    (tmp_path / "seeds.txt").write_bytes(b"http://a.org/\n\xff\n")
    result = run("add", "-w", "ws", "--file", "seeds.txt")
    assert result.returncode == ExitCode.ERROR
    assert "seeds.txt at byte 14" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"), [((), ExitCode.BAD_CONFIG), (("--file", "missing.txt"), ExitCode.ERROR)]
)
def test_add_without_seeds_says_what_to_give(run, workspace, arguments, code):
    result = run("add", "-w", "ws", *arguments)
    assert result.returncode == code
    assert len(result.stderr.splitlines()) == 2


def test_a_dry_run_adds_nothing(run, workspace):
    run("add", "-w", "ws", "http://a.org/")
    result = run("add", "-w", "ws", "--dry-run", "http://a.org/", "http://b.org/")
    assert result.stdout == "Would add 1 page; 1 known already.\n"
    assert len(listed(run, "-w", "ws")) == 1


def test_importance_is_kept(run, workspace):
    run("add", "-w", "ws", "--importance", "2.5", "http://a.org/")
    assert [page["importance"] for page in listed(run, "-w", "ws")] == [2.5]


# -- list, status, rates, export ---------------------------------------------------------------------


def test_list_pages_tells_what_is_known_of_each(run, lived_in):
    daily, never, broken, unseen = listed(run, "pages", "-w", "ws")
    assert (daily["url"], daily["observations"], daily["changes"]) == ("http://a.org/daily", 20, 19)
    assert daily["last_change"] == daily["last_observed"] == START + 19 * DAY
    assert (never["observations"], never["changes"], never["last_change"]) == (20, 0, None)
    assert broken["changes"] == 0
    assert (unseen["observations"], unseen["last_observed"]) == (0, None)


def test_list_visits_latest_first_with_words(run, lived_in):
    visits = listed(run, "visits", "-w", "ws", "--host", "b.org")
    assert [visit["time"] for visit in visits] == [START + 2 * DAY, START + DAY, START]
    assert {(visit["outcome"], visit["verdict"], visit["status"]) for visit in visits} == {
        ("server error", "unknown", 503)
    }


def test_list_hosts_with_their_pages(run, lived_in):
    hosts = listed(run, "hosts", "-w", "ws")
    assert [(host["host"], host["pages"]) for host in hosts] == [("a.org", 2), ("b.org", 2)]
    assert hosts[0]["next_due"] == START + 100 * DAY
    assert [host["host"] for host in listed(run, "hosts", "-w", "ws", "--host", "b.org")] == ["b.org"]


def test_list_hosts_counts_no_resources(run, lived_in):
    """A style sheet of an imported archive has captures, but is no page."""
    with stored(lived_in) as store:
        sheet = store.discover(["http://a.org/style.css"], START, importance=0.0)
        store.set_resources(sheet, np.array([True]))
    assert [(host["host"], host["pages"]) for host in listed(run, "hosts", "-w", "ws")] == [("a.org", 2), ("b.org", 2)]
    assert [host["pages"] for host in listed(run, "hosts", "-w", "ws", "--host", "a.org")] == [2]


def test_a_worker_whose_clock_is_ahead_has_worked_for_no_negative_time(run, lived_in):
    ahead = 4_000_000_000.0
    with stored(lived_in) as store:
        store.set_control("worker ahead", json.dumps({"worker": "ahead", "at": ahead, "since": ahead}), START)
    assert "ahead for 0 s: 0 visits" in " ".join(run("status", "-w", "ws").stdout.split())


def test_the_limit_is_told(run, lived_in):
    result = run("list", "visits", "-w", "ws", "--limit", "5")
    assert "5 latest shown; --limit shows more" in result.stdout
    assert "shown" not in run("list", "visits", "-w", "ws", "--limit", "43").stdout
    assert "1 of " in run("list", "pages", "-w", "ws", "--limit", "1").stdout
    assert len(listed(run, "visits", "-w", "ws", "-n", "5")) == 5


def test_tables_print_what_json_says(run, lived_in):
    table = run("list", "pages", "-w", "ws").stdout
    for page in listed(run, "pages", "-w", "ws"):
        assert page["url"] in table


@pytest.mark.parametrize(
    ("what", "left_out"),
    [
        ("pages", "importance, discovered"),
        ("hosts", "delay, ready at, masked, lies"),
        ("visits", "size, seconds"),
        ("failing", "quarantined, since, last try"),
    ],
)
def test_a_narrow_terminal_does_without_some_columns(run, lived_in, what, left_out):
    shown = run("list", what, "-w", "ws", env={"COLUMNS": "40", "FORCE_COLOR": "1"}).stdout
    assert f"The terminal is too narrow for: {left_out}." in shown
    assert "too narrow" not in run("list", what, "-w", "ws", env={"COLUMNS": "40"}).stdout


def test_an_unknown_host_is_answered_with_the_nearest(run, lived_in):
    result = run("list", "-w", "ws", "--host", "a.ogr")
    assert result.returncode == ExitCode.ERROR
    assert "'a.org'" in result.stderr


def test_status_counts_and_estimates(run, lived_in):
    status = json.loads(run("status", "-w", "ws", "--json").stdout)
    expected = {"pages": 4, "hosts": 2, "visits": 43, "changed": 19, "failed": 3, "links": 1, "seen": 2}
    assert {name: status[name] for name in expected} == expected
    assert 0.0 < status["fresh"] < 1.0
    text = run("status", "-w", "ws").stdout
    assert "43: 19 found a change, 3 failed" in " ".join(text.split())


def test_status_of_an_empty_workspace(run, workspace):
    status = json.loads(run("status", "-w", "ws", "--json").stdout)
    assert (status["pages"], status["fresh"], status["next_due"]) == (0, None, None)
    assert run("status", "-w", "ws").returncode == 0


def test_rates_are_sorted_and_their_intervals_hold_the_mean(run, lived_in):
    rows = json.loads(run("rates", "-w", "ws", "--json").stdout)
    assert [row["url"] for row in rows][:1] == ["http://a.org/daily"]
    assert all(row["low"] < row["changes_per_day"] < row["high"] for row in rows)
    means = [row["changes_per_day"] for row in rows]
    assert means == sorted(means, reverse=True)
    by_url = {row["url"]: row for row in rows}
    # 19 changes in 19 gaps of a day: at least one change a day; none in 19 days: about one in 19 days at most.
    assert by_url["http://a.org/daily"]["changes_per_day"] > 1.0
    assert by_url["http://a.org/never"]["high"] < 0.3
    slowest = json.loads(run("rates", "-w", "ws", "--json", "--sort", "-rate", "--limit", "1").stdout)
    assert [row["url"] for row in slowest] == ["http://a.org/never"]


def test_rates_of_an_empty_workspace(run, workspace):
    assert json.loads(run("rates", "-w", "ws", "--json").stdout) == []


def test_export_writes_what_the_store_holds(run, lived_in, tmp_path):
    result = run("export", "visits.parquet", "-w", "ws")
    assert result.stdout == "Wrote 43 visits to visits.parquet.\n"
    assert run("export", "h.parquet", "--what", "histories", "--host", "a.org", "-w", "ws").returncode == 0
    with stored(lived_in) as store:
        for ours, theirs in zip(
            read_visits(tmp_path / "visits.parquet").columns().values(), store.visits().columns().values(), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        expected = Histories.from_visits(store.visits(host=int(store.hosts().id[0])))
    found = read_histories(tmp_path / "h.parquet")
    np.testing.assert_array_equal(found.page, expected.page)
    np.testing.assert_array_equal(found.gaps, expected.gaps)
    np.testing.assert_array_equal(found.changed, expected.changed)


# -- settings, end to end ----------------------------------------------------------------------------


def test_config_show_tells_value_and_origin(run, workspace):
    (workspace / "recrawl.yaml").write_text("fetch: {timeout: 50s, max_size: 7}\n", encoding="utf-8")
    env = {"RECRAWL_FETCH_TIMEOUT": "40s", "RECRAWL_FETCH_CONTACT": "me@example.org", "RECRAWL_WORKSPACE": "ws"}
    result = run("config", "show", "--json", "--set", "fetch.contact=you@example.org", env=env)
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["fetch.contact"] == {"value": "you@example.org", "origin": "flag"}
    assert shown["fetch.timeout"] == {"value": 40.0, "origin": "environment RECRAWL_FETCH_TIMEOUT"}
    assert shown["fetch.max_size"] == {"value": 7, "origin": "file recrawl.yaml"}
    assert shown["politeness.factor"] == {"value": 5.0, "origin": "default"}
    table = run("config", "show", "-w", "ws", env={"RECRAWL_FETCH_TIMEOUT": "40s"}).stdout
    assert ["fetch.timeout", "40s", "environment", "RECRAWL_FETCH_TIMEOUT"] in [
        line.split() for line in table.splitlines()
    ]


def test_config_show_hides_passwords(run, workspace):
    for arguments in ((), ("--json",)):
        result = run("config", "show", "-w", "ws", "--set", "store.location=postgresql://me:secret@x/y", *arguments)
        assert "postgresql://me:***@x/y" in result.stdout
        assert "secret" not in result.stdout


def test_a_misspelled_key_stops_every_verb(run, workspace):
    (workspace / "recrawl.yaml").write_text("fetch: {timout: 50s}\n", encoding="utf-8")
    for arguments in (("status",), ("list",), ("rates",), ("add", "http://a.org/"), ("config", "show")):
        result = run(*arguments, "-w", "ws")
        assert result.returncode == ExitCode.BAD_CONFIG
        assert "'fetch.timout'" in result.stderr
        assert "Did you mean 'fetch.timeout'?" in result.stderr


def test_the_flag_chooses_the_store(run, workspace, tmp_path):
    assert run("init", "other").returncode == 0
    location = tmp_path / "other" / "recrawl.db"
    assert run("add", "-w", "ws", "--set", f"store.location={location}", "http://a.org/").returncode == 0
    assert listed(run, "-w", "ws") == []
    assert len(listed(run, "-w", "other")) == 1


def test_a_missing_store_is_told(run, workspace):
    (workspace / "recrawl.db").unlink()
    result = run("status", "-w", "ws")
    assert result.returncode == ExitCode.ERROR
    assert "recrawl.db" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unreadable_settings_file_is_told(run, workspace):
    file = workspace / "recrawl.yaml"
    file.unlink()
    file.symlink_to(file)
    assert run("status", "-w", "ws").returncode == ExitCode.BAD_CONFIG
    assert stat.S_ISLNK(file.lstat().st_mode)
