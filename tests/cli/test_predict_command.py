"""``recrawl predict`` on an archive whose lists change often and whose items hardly ever do."""

import contextlib
import csv
import io
import json
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl.app.predict.model_training import drifts_of, retrained
from recrawl.app.predict.model_use import LiveModel, ModelWatch, live_model
from recrawl.app.predict.stored_models import load_model
from recrawl.app.workspace.workspace import open_workspace
from recrawl.app.workspace.workspace_wiring import WorkspaceFits, policy_of
from recrawl.cli.main import main
from recrawl.crawl.worker.fit_process import FitRequest, read_state, write_state
from recrawl.crawl.worker.inline_fit import ScheduleFit
from recrawl.errors import ExitCode
from recrawl.model import Verdict, Visits
from recrawl.predict.prior_model import PriorModel
from recrawl.predict.prior_scores import ModelFit
from recrawl.schedule.frontier.revisit_scheduler import RevisitScheduler
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.time import DAY

START = 1_700_000_000.0
PAGES, LOOKS = 72, 6
PATIENCE = 200.0


def record(url, time, body):
    """A WARC record of an answer."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    date = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, url + date)}>\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(answer)}\r\n\r\n"
    )
    return head.encode() + answer + b"\r\n\r\n"


def archive():
    """Captures of all pages, a week or so apart; lists have many links, and more each time they change."""
    rng = np.random.default_rng(1)
    for number in range(PAGES):
        is_list = number % 3 == 0
        url = f"http://{'ab'[number % 2]}.example/{'list' if is_list else 'item'}/{number}.html"
        version, time, text = 0, START + rng.uniform(0, DAY), "word " * int(rng.integers(40, 80))
        for _ in range(LOOKS):
            links = "".join(f'<a href="/item/{n}x{number}">{n}</a>' for n in range((20 if is_list else 1) + version))
            yield record(url, time, f"<html><title>{number}</title><p>{text} {version}</p>{links}</html>".encode())
            version += rng.random() < (0.8 if is_list else 0.05)
            time += rng.uniform(5, 9) * DAY


def recrawl(*arguments):
    """What the command says; in this process, where the libraries are loaded already."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setattr(sys, "argv", ["recrawl", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            main()
    assert not done.value.code
    return said.getvalue()


@pytest.fixture(scope="module")
def trained(new_workspace, tmp_path_factory):
    """A workspace with a model, to be copied; and what training said."""
    folder = tmp_path_factory.mktemp("predict")
    place = shutil.copytree(new_workspace, folder / "ws")
    (folder / "site.warc").write_bytes(b"".join(archive()))
    recrawl("import", "-w", place, folder / "site.warc")
    return place, recrawl("predict", "train", "-w", place, "--json")


@pytest.fixture
def ws(trained, tmp_path):
    return shutil.copytree(trained[0], tmp_path / "ws")


def test_training_says_what_it_learned_and_leaves_a_card(trained):
    facts = json.loads(trained[1])
    folder = trained[0] / "models" / "default"
    assert (facts["pages"], facts["looked_into"], facts["observations"]) == (PAGES, PAGES, PAGES * (LOOKS - 1))
    assert facts["events"] == ["changes", "new-internal-links", "new-external-links", "new-links"]
    by_pages = facts["scores"][0]
    assert by_pages["split"] == "pages"
    assert by_pages["first"]["model"] < by_pages["first"]["all pages"] - 0.05
    card = (folder / "card.md").read_text()
    assert f"{PAGES} pages of 2 sites" in card
    assert "`internal_links`" in card
    assert sorted(file.name for file in folder.iterdir()) == [
        "card.md", "classes.npz", "model.json", "model.npz", "priors.npz"
    ]  # fmt: skip


def test_it_can_learn_from_some_of_the_pages_and_still_say_what_it_expects_of_all(run, ws):
    said = run("predict", "train", "-w", ws, "--pages", 60, "--name", "some")
    assert f"Learned from 60 pages, chosen at random among {PAGES}, of 2 sites" in said.stdout
    assert "--pages 0 uses all pages" in said.stdout
    kept = load_model(ws, "some")
    assert (kept.note.pages, kept.note.out_of, len(kept.known.page)) == (60, PAGES, PAGES)


def test_scores_are_tables_and_files(run, ws, tmp_path):
    assert run("predict", "score", "-w", ws, "-n", 3).stdout.count("/list/") == 3
    assert run("predict", "score", "-w", ws, "--output", "all.csv").returncode == ExitCode.OK
    assert run("predict", "score", "-w", ws, "--output", "all.parquet", "--event", "new_links").returncode == 0
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(rows) >= PAGES
    assert all(float(row["low"]) < float(row["per_day"]) < float(row["high"]) for row in rows)
    seen = [row for row in rows if row["known_by"] == "its first copy"]
    assert len(seen) == PAGES
    links = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert "/list/" in links[0]["url"]
    only = run("predict", "score", "-w", ws, "--host", "a.example", "--json")
    assert {row["url"][:16] for row in json.loads(only.stdout)} == {"http://a.example"}


def test_a_page_is_explained_whether_it_is_known_or_not(run, ws):
    known = run("predict", "explain", "-w", ws, "http://a.example/list/0.html")
    assert "from its URL and its first copy, on a site the model knows" in known.stdout
    assert "× " in known.stdout
    strange = run("predict", "explain", "-w", ws, "http://c.example/list/1.html")
    assert "from its URL alone, on a site the model has not seen" in strange.stdout
    facts = json.loads(run("predict", "explain", "-w", ws, "http://a.example/list/0.html", "--json").stdout)
    other = json.loads(run("predict", "explain", "-w", ws, "http://b.example/item/1.html", "--json").stdout)
    assert facts["median"] > 3 * other["median"]
    assert "mean" not in facts  # words, table and file tell the middle, beside the interval
    listed = json.loads(run("predict", "score", "-w", ws, "--host", "a.example", "--json").stdout)
    [score] = [row for row in listed if row["url"] == "http://a.example/list/0.html"]
    assert [score[name] for name in ("per_day", "low", "high")] == pytest.approx(
        [facts[name] for name in ("median", "low", "high")]
    )
    telling = {row["feature"] for row in facts["features"][:4]}
    assert telling & {"segment1", "internal_links", "content_size"}


def test_estimates_plans_and_status_use_it(run, ws):
    assert "with the trained model of the workspace" in run("rates", "-w", ws).stdout
    assert "Too few new pages since training" in run("status", "-w", ws).stdout
    assert "with the trained model" not in run("rates", "-w", ws, "--at", "2023-11-20").stdout
    assert "with the trained model" not in run("rates", "-w", ws, "--set", "predict.model=").stdout


def test_plans_for_new_links_go_by_their_own_rates(run, ws):
    links = ("-w", ws, "--set", "schedule.objective=links", "--set", "schedule.budget=20/day")
    said = run("plan", *links).stdout
    assert "no unseen links" in said
    assert "wait on average" in said
    assert "which wait" in run("plan", "capacity", *links).stdout
    now, within, outward = (
        json.loads(run("plan", *links, "--json", "--set", f"schedule.links={kind}").stdout)["budgets"]["now"]
        for kind in ("all", "internal", "external")
    )
    # Lists get new links to their own host, and no page gets any to another.
    assert within["happening"] > 10 * outward["happening"]
    assert now["happening"] == pytest.approx(within["happening"] + outward["happening"])
    assert 0 < within["delay"] < outward["delay"]
    changes = json.loads(run("plan", "-w", ws, "--json").stdout)["budgets"]["now"]
    assert changes["happening"] != pytest.approx(now["happening"], rel=0.01)


def test_what_cannot_be_is_said_in_a_sentence(run, ws, workspace_without_pages):
    empty = run("predict", "train", "-w", workspace_without_pages)
    assert empty.returncode == ExitCode.ERROR
    assert "a model needs 40" in empty.stderr
    untrained = run("predict", "score", "-w", workspace_without_pages).stderr
    assert f"recrawl predict train -w {workspace_without_pages}" in untrained
    assert "does not predict 'rain'" in run("predict", "score", "-w", ws, "--event", "rain").stderr
    assert "cannot be the name" in run("predict", "train", "-w", ws, "--name", "../x").stderr
    assert "is not a URL" in run("predict", "explain", "-w", ws, "nothing").stderr
    model = ws / "models" / "default" / "model.npz"
    with np.load(model) as file:
        arrays = {name: np.array("another") if name.endswith("/schema") else file[name] for name in file.files}
    np.savez_compressed(model, **arrays)
    for verb in (("rates",), ("predict", "score")):
        assert "other features" in run(*verb, "-w", ws).stderr
    note = ws / "models" / "default" / "model.json"
    note.write_text(note.read_text().replace('"format": 2', '"format": 99'))
    assert "has format 99" in run("rates", "-w", ws).stderr
    note.write_text("{}")
    assert "does not describe a model" in run("rates", "-w", ws).stderr


@pytest.fixture
def workspace_without_pages(new_workspace, tmp_path):
    return shutil.copytree(new_workspace, tmp_path / "empty")


def test_a_model_from_elsewhere_knows_no_page_by_its_id(run, ws, workspace_without_pages):
    shutil.copytree(ws / "models", workspace_without_pages / "models")
    with open_workspace(workspace_without_pages, {}).open_store() as store:
        assert len(load_model(workspace_without_pages, "default", store.urls).known.page) == 0
        store.discover([f"http://c.example/{number}" for number in range(2000)], START)
        assert len(load_model(workspace_without_pages, "default", store.urls).known.page) == 0
    with open_workspace(ws, {}).open_store() as store:
        assert len(load_model(ws, "default", store.urls).known.page) == PAGES
    assert run("predict", "score", "-w", workspace_without_pages, "-n", 3).stdout.count("its URL") == 3
    priors = ws / "models" / "default" / "priors.npz"
    whole = priors.read_bytes()
    bent = whole[:200] + bytes(byte ^ 0x55 for byte in whole[200:230]) + whole[230:]
    for damaged in (b"PK", b"", whole[: len(whole) // 2], bent):
        priors.write_bytes(damaged)
        assert "priors.npz of the model is damaged" in run("rates", "-w", ws).stderr


def test_a_damaged_model_is_told(run, ws):
    (ws / "models" / "default" / "model.npz").write_bytes(b"PK")
    said = run("plan", "-w", ws)
    assert said.returncode == ExitCode.ERROR
    assert "no model of recrawl, or it is damaged" in said.stderr


def come(store, after, changing, links=None):
    """Sixty new items, each looked at three times from a moment on; so many of them change at every look.

    Each look after the first counts so many new links within the site, if it counts any.
    """
    page = store.discover([f"http://a.example/item/new{number}.html" for number in range(60)], after)
    times = after + np.array([1.0, 8.0, 15.0]) * DAY
    verdict = np.full((60, 3), Verdict.UNCHANGED)
    verdict[:changing] = Verdict.CHANGED
    verdict[:, 0] = Verdict.UNKNOWN
    counted = np.full((60, 3), -1 if links is None else links)
    found = {"new_internal": counted.ravel(), "new_external": np.minimum(counted, 0).ravel()}
    store.record(Visits.of(np.repeat(page, 3), np.tile(times, 60), verdict=verdict.ravel(), status=200, **found))


def test_a_model_that_fits_stays(run, ws):
    place = open_workspace(ws, {})
    with place.open_store() as store:
        come(store, load_model(ws, "default").note.until, changing=5)
        assert retrained(place, store) is None
    assert "It still fits" in run("status", "-w", ws).stdout


def test_a_model_that_fits_no_longer_is_trained_anew_beside_the_crawl(run, ws):
    place = open_workspace(ws, {})
    said = []
    with place.open_store() as store:
        before = load_model(ws, "default").note
        come(store, before.until, changing=60)
        assert "Train it again" in run("status", "-w", ws).stdout
        live = LiveModel(None, store)
        ids = store.pages().id
        assert len(np.unique(live(ids))) == 1
        with ModelWatch(place, live, said.append) as watch:
            watch.check()
            watch.check()
            watch._work.exception(PATIENCE)
            watch.follow_store()
        watch.follow_store()
        assert len(np.unique(live(ids))) > 3
        assert np.log(live(load_model(ws, "default").known.page)).mean() == pytest.approx(np.log(1 / (30 * DAY)))
    assert said == ["The model no longer fitted newer pages and was trained again."]
    assert load_model(ws, "default").note.until > before.until
    assert "Too few new pages since training" in run("status", "-w", ws).stdout


def test_a_model_whose_links_fit_no_longer_is_replaced_in_a_run_that_wants_links(run, ws):
    place = open_workspace(ws, {"schedule.objective": "links"})
    said = []
    with place.open_store() as store:
        old = load_model(ws, "default")
        come(store, old.note.until, changing=5, links=40)
        live = live_model(place, store)
        policy = policy_of(place.configuration.settings.schedule, store.urls, None, live, live.links)
        policy.add(store.pages())
        policy.fit(1.0, old.note.until + 16 * DAY)
        fresh = store.find("http://a.example/item/new7.html").id
        before = float(policy.links(np.array([fresh])).mean()[0])
        drifts = drifts_of(place, store, old)
        assert {event: one.fit for event, one in drifts.items()} == {
            "changes": ModelFit.GOOD,
            "new-internal-links": ModelFit.LOST,
            "new-external-links": ModelFit.GOOD,
        }
        told = run("status", "-w", ws).stdout
        assert "new internal links; 4,800 came. Train it again" in told
        with ModelWatch(place, live, said.append) as watch:
            watch.check()
            watch._work.exception(PATIENCE)
            watch.follow_store()
        policy.fit(1.0, old.note.until + 16 * DAY)
        after = float(policy.links(np.array([fresh])).mean()[0])
        assert before * DAY < 1.0 < after * DAY < 12.0  # truly 40 in seven days
        assert np.unique(live.links["external"](store.pages().id).mean()).size > 1
    assert said == ["The model no longer fitted newer pages and was trained again."]


def test_a_model_that_says_nothing_of_links_leaves_what_was_believed_of_them(ws):
    place = open_workspace(ws, {})
    with place.open_store() as store:
        live, kept = live_model(place, store), load_model(ws, "default")
        ids = store.pages().id
        before = live.links["internal"](ids)
        live.take_over(replace(kept, model=PriorModel({"changes": kept.model.events["changes"]})))
        assert np.array_equal(live.links["internal"](ids).a, before.a)
        assert len(LiveModel(None, store).links) == 0


@pytest.mark.parametrize("objective", ["archive", "links"])
def test_what_a_fit_process_hands_over_asks_the_model_as_the_run_does(ws, tmp_path, objective):
    flags = {"schedule.objective": objective, "fetch.contact": "me@example.org"}
    with open_workspace(ws, flags).open_store() as store, WorkspaceFits(ws, flags)() as parts:
        now = load_model(ws, "default").note.until + DAY
        fit = ScheduleFit(parts.store, parts.scheduler, DAY)
        wanted = fit.catch_up(now)
        fit.fit(wanted, now)
        parts.prepare(FitRequest(now, parts.scheduler.terms, PolitenessRules(), frozenset()))
        live = RevisitScheduler(FixedInterval(DAY), budget=1.0)
        live.take_over(read_state(write_state(parts.scheduler, parts.store, tmp_path / "state"), store), wanted)
        np.testing.assert_array_equal(live.due(wanted.id, now), parts.scheduler.due(wanted.id, now))
        new = store.pages(store.discover(["http://a.example/item/other.html"], now))
        for one in (live, parts.scheduler):
            one.add(new)
            one.tell(Visits.of(new.id, [now + 1.0]))
        np.testing.assert_allclose(live.due(new.id, now), parts.scheduler.due(new.id, now))
        assert not (tmp_path / "state").exists()
