"""Recorded histories: exact change times and deletions reach estimates, policy and back-test as what they are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from recrawl.app.compare.compare_runs import _budget, _past_of
from recrawl.app.plan import look_ahead
from recrawl.app.rates.belief_table import VisitSpan, learn, training_of
from recrawl.app.workspace.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.model import ChangeKind, Outcome, Pages, Verdict, Visits
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR, to_iso
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.import_sources import ImportSources

DATA = Path(__file__).resolve().parents[1] / "data"
BASE = "https://site.example/"
START = 1_500_000_000
DAYS = 800
LIVING, DELETED = 30, 12
SLOW = 40
"""Days between two changes of a page that is there; deleted pages changed every other day before they went."""
GONE_ON = 100


def commits(folder, by_day, *, more=False):
    """Commit contents of files (``None`` deletes one) by day, all in one process; ``more`` goes on from there."""
    lines = []
    for day, files in by_day.items():
        when = f"A <a@example.org> {START + round(day * DAY)} +0000"
        lines += ["commit refs/heads/main", f"committer {when}", "data 1", "x"]
        lines += ["from refs/heads/main^0"] if more and not lines[4:] else []
        for name, text in files.items():
            lines += [f"D {name}"] if text is None else [f"M 644 inline {name}", f"data {len(text)}", text]
        lines.append("")
    subprocess.run(
        ["git", "-C", folder, "fast-import", "--quiet", "--force"], input="\n".join(lines).encode(), check=True
    )
    subprocess.run(["git", "-C", folder, "symbolic-ref", "HEAD", "refs/heads/main"], check=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A site kept in git: pages that change now and then, and pages that changed every other day and are deleted."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(["git", "init", "-q", folder], check=True)
    everything = range(LIVING + DELETED)
    by_day = {0: {f"p{number}.md": "0" for number in everything}}
    for day in range(1, DAYS):
        changed = [number for number in range(LIVING) if (day + number * 7) % SLOW == 0]
        hot = range(LIVING, LIVING + DELETED) if (day < GONE_ON and day % 2) or day == GONE_ON else ()
        by_day[day] = {f"p{number}.md": str(day) for number in changed}
        by_day[day] |= {f"p{number}.md": None if day == GONE_ON else str(day) for number in hot}
    commits(folder, {day: files for day, files in by_day.items() if files})
    return folder


def imported(folder, source, base_url=""):
    """Import into a workspace, without the command line."""
    with open_store(folder / "recrawl.db") as store:
        importer = Importer(store, RealClock())
        brought = list(ImportSources(store, importer, RealClock(), folder / "warc", base_url=base_url).bring(source))
        importer.judge()
    return brought


@pytest.fixture(scope="module")
def site(new_workspace, tmp_path_factory, repository):
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("recorded") / "ws")
    imported(folder, repository, BASE)
    return folder


def gone_urls(folder):
    """The URLs of the pages that the store says are gone."""
    with open_store(folder / "recrawl.db") as store:
        page = store.pages().id
        gone = [number for number, last in zip(page.tolist(), store.validators(page), strict=True) if last.gone]
        return sorted(store.urls(np.array(gone, np.int64)))


def planned(run, folder, *more):
    at = to_iso(START + DAYS * DAY)
    done = run("plan", "-w", folder, "--json", "--limit", 1000, "--at", at, *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_recorded_site_has_a_plan_that_fits_its_history(run, site):
    """As many changes a day as there were; deleted pages come last, though they changed most in their time."""
    found = planned(run, site, "--set", "schedule.budget=2")
    truth = LIVING / SLOW
    assert truth / 2 < found["budgets"]["now"]["happening"] * DAY < 2 * truth
    gone = [int(row["url"].rsplit("p", 1)[1].strip("/")) >= LIVING for row in found["next"]]
    assert sum(gone) == DELETED
    assert not any(gone[: LIVING - 3]), "deleted pages are not what to fetch next"
    for row, deleted in zip(found["next"], gone, strict=True):
        if deleted:
            assert row["due"] - row["last_observed"] >= 179 * DAY
        else:
            assert 0.2 / SLOW < row["changes_per_day"] < 5 / SLOW


@pytest.mark.slow
def test_rates_of_the_past_count_the_silence_of_a_log(run, workspace, tmp_path):
    """Pages that changed daily for ten days and then no more: a year later they are slow, asked then or looked back at.

    Looked back at, a log ended with the last change of each page, and the page changed every day for ever.
    """
    source = tmp_path / "site"
    subprocess.run(["git", "init", "-q", source], check=True)
    names = [f"p{number}.md" for number in range(8)]
    commits(source, {day: dict.fromkeys(names, str(day)) for day in range(10)} | {370: {"other.md": "1"}})
    looking_back = shutil.copytree(workspace, tmp_path / "later")
    imported(workspace, source, BASE)
    commits(source, {740: dict.fromkeys([*names, "other.md"], "2")}, more=True)
    imported(looking_back, source, BASE)
    at = to_iso(START + 370 * DAY)
    found = {}
    for command in ("rates", "plan"):
        for folder in (workspace, looking_back):
            said = json.loads(run(command, "-w", folder, "--at", at, "--json").stdout)
            rows = said["next"] if command == "plan" else said
            found[command, folder] = {row["url"]: row["changes_per_day"] for row in rows if "/p" in row["url"]}
        then, now = found[command, workspace], found[command, looking_back]
        assert len(then) == len(names)
        assert now == pytest.approx(then, rel=0.05)
        assert max(then.values()) < 1 / 20


def test_pages_of_an_old_history_are_late_since_their_import(run, site):
    """As status counts: before it nobody could visit them."""
    said = run("plan", "-w", site, "--limit", 1).stdout
    assert re.search(r"pages are late as of [^:]+:[0-9]+: by up to [0-9.]+ (ms|s|min|h)\.", said), said


def test_pages_that_are_gone_are_called_so(run, site):
    """By rates and by plan, with the day of the deletion; nothing is said of what they may have changed since."""
    found = json.loads(run("rates", "-w", site, "--json", "--limit", 1000, "--sort", "changed").stdout)
    gone = [row for row in found if row["gone_since"] is not None]
    assert sorted(row["url"] for row in gone) == gone_urls(site)
    assert found[LIVING:] == gone, "they come last where the likeliest to have changed come first"
    went = to_iso(START + GONE_ON * DAY)[:10]
    assert {(row["in_words"], row["p_changed"]) for row in gone} == {(f"gone since {went}", None)}
    assert all(row["p_changed"] is not None and "every" in row["in_words"] for row in found[:LIVING])
    rows = [row for row in planned(run, site)["next"] if row["gone_since"] is not None]
    assert {(row["in_words"], row["p_changed"]) for row in rows} == {(f"gone since {went}", None)}
    assert len(rows) == DELETED


def test_an_import_sets_gone_and_a_later_one_takes_it_back(site, repository, tmp_path):
    assert len(gone_urls(site)) == DELETED
    folder, source = shutil.copytree(site, tmp_path / "ws"), shutil.copytree(repository, tmp_path / "again")
    commits(source, {DAYS: {f"p{LIVING}.md": "back"}}, more=True)
    imported(folder, source, BASE)
    urls = gone_urls(folder)
    assert len(urls) == DELETED - 1
    assert f"{BASE}p{LIVING}/" not in urls


def test_captures_that_end_in_a_404_set_gone(run, workspace, tmp_path):
    lines = (("20200101000000", 200, "A"), ("20200201000000", 404, "B"))
    text = "".join(
        f"org,example)/{page} {time} http://example.org/{page} text/html {status} {digest * 32} - - 100 0 x.warc.gz\n"
        for page, some in (("there", lines[:1]), ("gone", lines))
        for time, status, digest in some
    )
    (tmp_path / "a.cdx").write_text(" CDX N b a m s k r M S V g\n" + text)
    assert run("import", tmp_path / "a.cdx", "-w", workspace).returncode == 0
    assert gone_urls(workspace) == ["http://example.org/gone"]


def test_compare_takes_known_times_and_draws_none(run, site):
    """Other seeds would draw other times; and a page that was deleted is not there to be visited."""
    options = ("--json", "--jobs", 1, "--tick", "10d", "--policy", "uniform", "--set", "schedule.policy=uniform")
    found = [json.loads(run("compare", "-w", site, *options, "--seed", seed).stdout) for seed in (1, 2)]
    assert "All change times are known" in found[0]["note"]
    assert found[0]["known_times"] > 0
    facts = [{name: row[name] for name in ("recall", "freshness")} for one in found for row in one["policies"]]
    assert facts[0] == facts[1]
    # After the first quarter only living pages change, each every forty days; the deletions are no changes to catch.
    assert found[0]["changes"] == pytest.approx(0.75 * DAYS * LIVING / SLOW, rel=0.05)


def test_an_import_of_a_log_takes_no_more_than_it_tells(run, workspace, tmp_path):
    """The table counts events; that pages are as they were when the log ends is told apart."""
    source = tmp_path / "site"
    subprocess.run(["git", "init", "-q", source], check=True)
    commits(source, {0: {"quiet.md": "0", "p.md": "0", "gone.md": "0"}, 9: {"gone.md": None}, 50: {"p.md": "2"}})
    done = run("import", source, "-w", workspace, "--base-url", BASE)
    assert "5 records imported from 1 source. Visits: 7 new (2 of them at the end of a log" in done.stdout
    commits(source, {60: {"p.md": "3"}}, more=True)
    [row] = json.loads(run("import", source, "-w", workspace, "--base-url", BASE, "--json").stdout)["sources"]
    assert (row["accepted"], row["new"]) == (6, 1)


def test_pages_of_a_log_that_never_changed_were_not_visited(new_workspace, tmp_path):
    """The visits that open and end a log are nobody's: the budget of a comparison is that of the settings."""
    folder, source = shutil.copytree(new_workspace, tmp_path / "ws"), tmp_path / "site"
    subprocess.run(["git", "init", "-q", source], check=True)
    commits(source, {0: {"quiet.md": "0", "p.md": "0"}, 9: {"p.md": "1"}, 50: {"p.md": "2"}})
    imported(folder, source, BASE)
    with open_store(folder / "recrawl.db") as store:
        past = _past_of(store, training_of(store, VisitSpan()))
    assert sorted(past.exact.tolist()) == [False, True]
    settings = open_workspace(folder, {}).configuration.settings.schedule
    assert _budget(past, settings) == settings.budget / 2


def test_a_log_has_no_status(run, site):
    said = run("explain", f"{BASE}p1/", "-w", site).stdout
    rows = [line for line in said.splitlines() if "fetched " in line and line.lstrip(" →").startswith("20")]
    assert rows
    assert not [row for row in rows if " 0 " in row]


def test_times_stay_known_of_pages_that_were_visited_too(new_workspace, tmp_path):
    """One visit of our own does not turn a log into observations that happened to be made at every change."""
    folder = shutil.copytree(new_workspace, tmp_path / "ws")
    logged = START + DAY * 10 * np.arange(11)
    kinds = [0, *[ChangeKind.CONTENT | ChangeKind.EXACT] * 10, 0, ChangeKind.CONTENT]
    time = [*logged, START + 101 * DAY, START + 102 * DAY]
    verdict = [Verdict.UNKNOWN, *[Verdict.CHANGED] * 10, Verdict.UNCHANGED, Verdict.CHANGED]
    with open_store(folder / "recrawl.db") as store:
        page = store.discover([f"{BASE}mixed"], START)
        store.record(Visits.of(np.repeat(page, 13), time, verdict=verdict, kinds=kinds))
        known = learn(store, VisitSpan())
        assert known.training.evidence.histories.counts().tolist() == [22]
        assert 0.05 / DAY < known.rate[0] < 0.25 / DAY
        outlook = look_ahead(store, open_workspace(folder, {}).configuration.settings, START + 103 * DAY)
        assert 0.05 / DAY < outlook.belief.quantile(0.5)[0] < 0.25 / DAY


def test_a_page_that_is_gone_is_asked_for_less_and_less_often():
    """However hot it was; and as before as soon as it is back."""
    policy, start = ValuedPolicy(longest_interval=180 * DAY), 0.0
    ids = np.arange(2)
    policy.add(Pages(ids, np.zeros(2, np.int64), np.ones(2), np.ones(2), np.zeros(2)))
    times = start + HOUR * np.arange(200)
    verdict = np.where(np.arange(200) % 2 == 0, Verdict.UNCHANGED, Verdict.CHANGED)
    for page in ids:
        policy.tell(Visits.of(np.full(200, page), times, verdict=verdict, kinds=ChangeKind.TEXT))
    now = times[-1]
    intervals = []
    for number in range(12):
        now += HOUR if number == 0 else intervals[-1]
        verdict = Verdict.CHANGED if number == 0 else Verdict.UNCHANGED
        policy.tell(Visits.of([0], [now], outcome=Outcome.GONE, verdict=verdict, kinds=ChangeKind.EXISTENCE))
        policy.fit(1000.0 / DAY, now)
        [due] = policy.due(ids[:1], now)
        intervals.append(due - now)
    assert intervals[0] < 10 * HOUR, "it may be back soon"
    assert np.all(np.diff(intervals)[2:] >= 0)
    assert intervals[-1] > 100 * intervals[0]
    policy.tell(Visits.of([0], [now + HOUR], verdict=Verdict.CHANGED, kinds=ChangeKind.EXISTENCE))
    policy.fit(1000.0 / DAY, now + HOUR)
    assert policy.due(ids[:1], now + HOUR)[0] - now - HOUR < intervals[-1] / 10


# -- one belief of every page ------------------------------------------------------------------------

RATE = ("changes_per_day", "low", "high", "in_words")
POLICY = ("policy_per_day", "policy_low", "policy_high", "policy_in_words")


def shown_twice(run, folder, source):
    """What ``plan`` and ``rates`` show of every page, by URL, as of the same time."""
    brought = imported(folder, source)
    assert sum(one.accepted for one in brought)
    with open_store(folder / "recrawl.db") as store:
        now = float(store.observations().time.max()) + 1.0
    asked = ("-w", folder, "--at", to_iso(now), "--limit", 100_000, "--json")
    found = []
    for command, rows in (("plan", lambda said: said["next"]), ("rates", lambda said: said)):
        result = run(command, *asked, *(("--with-policy",) if command == "rates" else ()))
        assert result.returncode == 0, result.stderr
        found.append({row["url"]: row for row in rows(json.loads(result.stdout))})
    return found


def agree_on_every_page(run, folder, source):
    """Both rates of every page, with their intervals, are the same in both commands."""
    plan, rates = shown_twice(run, folder, source)
    assert rates
    assert plan.keys() == rates.keys()
    for url, row in rates.items():
        told, again = ([one[name] for name in (*RATE, *POLICY)] for one in (plan[url], row))
        assert told == again, url
        assert (row["policy_per_day"] is None) == (row["changes_per_day"] is None), url  # nothing is made up
        for middle, low, high in (RATE[:3], POLICY[:3]):
            assert row[middle] is None or row[low] <= row[middle] <= row[high], url


def test_estimates_of_the_policy_have_rates_in_common_with_those_of_rates(run, new_workspace, tmp_path):
    """Before, the two had no rate in common for 96 of these 120 pages: old pages were at the pace of a younger step."""
    _, rates = shown_twice(run, shutil.copytree(new_workspace, tmp_path / "archive"), DATA / "recorded")
    assert len(rates) == 120
    for row in rates.values():
        assert row["policy_low"] <= row["high"]
        assert row["low"] <= row["policy_high"]


def test_the_policy_estimates_rates_of_pages(run, new_workspace, tmp_path):
    folder = shutil.copytree(new_workspace, tmp_path / "archive")
    for option in (("--by", "host"), ("--kind", "links"), ("--window", "9d")):
        result = run("rates", "-w", folder, "--with-policy", *option)
        assert result.returncode != 0
        assert "--with-policy" in result.stderr


@pytest.mark.parametrize("name", ["recorded", "sites", "published", pytest.param("linked", marks=pytest.mark.slow)])
def test_rates_and_plan_agree_on_every_page(name, run, new_workspace, tmp_path):
    agree_on_every_page(run, shutil.copytree(new_workspace, tmp_path / "archive"), DATA / name)


@pytest.mark.big
@pytest.mark.slow
@pytest.mark.parametrize("name", ["scholarly", "terms", "data-sources"])
def test_rates_and_plan_agree_on_every_page_of_large_data_sets(name, run, new_workspace, tmp_path, data_folder):
    agree_on_every_page(run, shutil.copytree(new_workspace, tmp_path / "archive"), data_folder / name)
