"""One estimator for all commands: the same page has the same rate and interval wherever it is shown.

And what it says is bounded by what observations can tell: of a page that changed at every one only a lower bound is
known, and the mean of a Gamma belief, which commands showed before, is then anything (6.7e10 changes a day).
"""

import json
import re
from contextlib import closing

import numpy as np
import pytest

from recrawl.app.assess.assessment import AssessmentQuestion, answer
from recrawl.app.rates.belief_table import learn
from recrawl.app.rates.rates_table import RatesQuestion, rows_for
from recrawl.app.site_capture import BelievedRates
from recrawl.app.workspace.workspace import open_workspace
from recrawl.crawl.clock import RealClock
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.model import Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import DAY, to_timestamp14
from recrawl.web.dashboard import plan_survey
from recrawl.web.dashboard.plan_survey import PageBeliefs, survey_of
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.dashboard.workspace_dashboard import WorkspaceDashboard

START = 1.75e9
WEEKS = 10
ALWAYS, SOMETIMES, NEVER = 20, 30, 9
ONCE = "http://one.example/once"


@pytest.fixture
def archive(run, tmp_path):
    """Ten weekly observations of 59 pages: some change three times a day, some at times, some never; one seen once."""
    folder = tmp_path / "ws"
    assert run("init", folder).returncode == 0
    rng = np.random.default_rng(5)
    urls = [f"http://one.example/part{row % 3}/{row}" for row in range(ALWAYS + SOMETIMES + NEVER)]
    chance = np.repeat([1.0, 0.3, 0.0], [ALWAYS, SOMETIMES, NEVER])
    with open_store(folder / "recrawl.db") as store:
        pages = store.discover([*urls, ONCE], START)
        for week in range(WEEKS):
            changed = rng.random(len(urls)) < chance
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            if not week:
                verdict[:] = Verdict.UNKNOWN
            store.record(Visits.of(pages[:-1], START + 7 * week * DAY + np.arange(len(urls)), verdict=verdict))
        store.record(Visits.of(pages[-1:], START + DAY, verdict=Verdict.UNKNOWN))
    return folder


def told(rows):
    return {row["url"]: tuple(row[name] for name in ("changes_per_day", "low", "high")) for row in rows}


def close(one, other, rel=1e-9):
    return one == other if None in one + other else one == pytest.approx(other, rel=rel)


def test_every_command_says_the_same_of_a_page(run, archive):
    where, many = ("-w", archive, "--json"), ("--limit", "100")
    rates = told(json.loads(run("rates", *where, *many).stdout))
    assess = told(json.loads(run("assess", *where, *many).stdout)["worstPages"])
    plan = told(json.loads(run("plan", *where, *many).stdout)["next"])
    assert len(rates) == ALWAYS + SOMETIMES + NEVER + 1
    assert set(rates) == set(assess) == set(plan)
    for url, known in rates.items():
        assert close(known, assess[url]), url
        assert close(known, plan[url]), url
    changed = [
        {row["url"]: row["p_changed"] for row in rows}
        for rows in (
            json.loads(run("rates", *where, *many).stdout),
            json.loads(run("plan", *where, *many).stdout)["next"],
        )
    ]
    assert [url for url, likely in changed[0].items() if likely is None] == [ONCE]
    assert all(close((changed[0][url],), (changed[1][url],), rel=1e-4) for url in rates)  # asked seconds apart
    with open_store(archive / "recrawl.db") as store:  # a capture, and the sections of a report
        now = START + 100 * DAY
        believed = BelievedRates(store, now).table
        captured = dict(zip(store.urls(believed.histories.page), believed.rate * DAY, strict=True))
        report = rows_for(store, RatesQuestion(ESTIMATORS[DEFAULT], now))
        shown = answer(store, AssessmentQuestion()).quality
        assert np.array_equal(shown.observations.page, report.training.histories.page)
        np.testing.assert_allclose(shown.rate[report.known()], report.rate[report.known()], rtol=1e-9)
    assert all(close((captured[url],), known[:1]) for url, known in rates.items() if url != ONCE)


def test_the_server_says_the_same_of_a_page(run, archive):
    """The survey of the dashboard, the belief drawn on the page of a page, and the rates of time travel."""
    rows = json.loads(run("rates", "-w", archive, "--json", "--limit", "100").stdout)
    rates, likely = told(rows), {row["url"]: row["p_changed"] for row in rows}
    place, clock = open_workspace(archive, {}), RealClock()
    beliefs = PageBeliefs(place, clock.now)
    with closing(StorePool(place.open_store)) as stores, stores.one() as store:
        answers = WorkspaceDashboard(place, stores, clock.now, beliefs)
        survey = survey_of(place, store, clock.now())
        urls = store.urls(survey.page)
        for row, url in enumerate(urls):
            every = [column[row] for column in (survey.every, survey.longest, survey.shortest)]
            known = tuple(None if np.isnan(one) else float(DAY / one) for one in every)
            assert close(known, rates[url]), url
            assert (np.isnan(survey.p_changed[row]) and likely[url] is None) or survey.p_changed[row] == pytest.approx(
                likely[url], rel=1e-4
            )
            travel = beliefs.rates(store, store.visits(pages=survey.page[row : row + 1]))
            assert close((None if np.isnan(travel[0]) else float(travel[0] * DAY),), rates[url][:1])
            drawn = answers.belief(int(survey.page[row]))
            if url == ONCE:
                assert drawn["time"] == []
                continue
            assert len(drawn["time"]) == WEEKS - 1
            last = tuple(float(DAY / drawn[name][-1]) for name in ("every", "longest", "shortest"))
            assert close(last, rates[url]), url
        [coming] = [row for row in survey.facts["next"] if row["url"] == urls[0]] or [None]
        assert coming is None or close(
            tuple(coming[name] for name in ("changes_per_day", "low", "high")), rates[urls[0]]
        )
        known = [one for one in likely.values() if one is not None]
        fresh = 1.0 - float(np.mean(known))
        assert survey.facts["fresh"] == pytest.approx(fresh, rel=1e-4)
        assert survey.facts["known"] == len(known) == len(urls) - 1
        answers.close()
    assert json.loads(run("status", "-w", archive, "--json").stdout)["fresh"] == pytest.approx(fresh, rel=1e-4)
    assert "of 59 pages observed at least twice" in run("status", "-w", archive).stdout


def test_the_belief_drawn_over_time_is_the_one_of_rates_without_being_told(archive):
    """Computed from the prior and the clock of the page, the last belief is what is known of it."""
    with open_store(archive / "recrawl.db") as store:
        known = learn(store)
        rows = np.flatnonzero(known.histories.counts())
        again = ESTIMATORS[DEFAULT].follow(known.belief, rows, known.training.evidence.histories.take(rows))
    for q in (0.05, 0.5, 0.95):
        np.testing.assert_allclose(again.quantile(q), known.belief.take(rows).quantile(q), rtol=1e-6)


def test_pages_that_did_not_teach_are_believed_by_the_prior_of_their_host(archive, monkeypatch):
    """In a large workspace a sample teaches; the rates of other pages are nearly those of ``recrawl rates``."""
    monkeypatch.setattr(plan_survey, "SAMPLE", 50)
    beliefs = PageBeliefs(open_workspace(archive, {}), lambda: 1.8e9)
    with open_store(archive / "recrawl.db") as store:
        known = learn(store)
        rate = beliefs.rates(store, store.visits())
        taught = np.isin(known.histories.page, beliefs.kept.get().value.known.histories.page)
    assert 0 < (~taught).sum() < len(taught)
    assert np.array_equal(np.isnan(rate), known.histories.counts() == 0)
    off = np.abs(np.log(rate / known.rate))[known.histories.counts() > 0]
    assert np.max(off) < np.log(2.0)


def test_one_capture_says_nothing_about_rates(run, archive):
    where = ("-w", archive, "--json", "--limit", "100")
    rates = json.loads(run("rates", *where).stdout)
    assert [row["url"] for row in rates if row["changes_per_day"] is None] == [ONCE]
    assert rates[-1]["url"] == ONCE  # whatever is not known comes last
    assert rates[-1]["in_words"] == "not known"
    assert rates[-1]["low"] is rates[-1]["high"] is rates[-1]["p_changed"] is None
    assess = json.loads(run("assess", *where).stdout)
    [once] = [row for row in assess["worstPages"] if row["url"] == ONCE]
    assert once["changes_per_day"] is once["blur"] is once["chance_unchanged"] is None
    assert assess["shown"]["expectedUnchangedOf"] == ALWAYS + SOMETIMES + NEVER
    [planned] = [row for row in json.loads(run("plan", *where).stdout)["next"] if row["url"] == ONCE]
    assert planned["changes_per_day"] is None
    assert planned["in_words"] == "not known"
    assert "(1 not known)" in run("assess", "-w", archive).stdout


def test_a_plan_counts_the_changes_that_rates_tell(run, archive):
    """The mean of what the policy believes is all tail where pages changed at every observation."""
    rates = told(json.loads(run("rates", "-w", archive, "--json", "--limit", "100").stdout))
    known = sum(rate for rate, _, _ in rates.values() if rate is not None)
    for kept in json.loads(run("plan", "-w", archive, "--json").stdout)["budgets"].values():
        assert kept["happening"] * DAY == pytest.approx(known, rel=1e-6)
        assert 0 < kept["found"] <= kept["happening"]


def test_what_is_not_known_is_called_so_and_no_number_is_made_up(run, tmp_path):
    """Ten pages that were seen once, on two hosts: nothing is known of changes, whatever a prior may say."""
    folder = tmp_path / "once"
    run("init", folder)
    with open_store(folder / "recrawl.db") as store:
        pages = store.discover([f"http://{host}.example/{number}" for host in "ab" for number in range(5)], START)
        store.record(Visits.of(pages, START + np.arange(len(pages)), verdict=Verdict.UNKNOWN))
    for by in ("page", "section", "host", "site"):
        rows = json.loads(run("rates", "-w", folder, "--by", by, "--json").stdout)
        assert rows
        for row in rows:
            assert {row[name] for name in ("changes_per_day", "low", "high", "changes_every", "p_changed")} == {None}
            assert row["in_words"] == "not known"
    plan = json.loads(run("plan", "-w", folder, "--json").stdout)
    for kept in plan["budgets"].values():
        assert {kept[name] for name in ("freshness", "found", "happening", "recall", "delay")} == {None}
    assert {row[name] for row in plan["next"] for name in ("changes_per_day", "low", "high", "p_changed")} == {None}
    assert json.loads(run("status", "-w", folder, "--json").stdout)["fresh"] is None
    assess = json.loads(run("assess", "-w", folder, "--json").stdout)
    assert {row[name] for row in assess["worstPages"] for name in ("changes_per_day", "blur", "chance_unchanged")} == {
        None
    }
    place = open_workspace(folder, {})
    with place.open_store() as store:
        survey = survey_of(place, store, START + DAY)
        assert np.isnan(survey.every).all()
        assert np.isnan(survey.p_changed).all()
        assert survey.facts["fresh"] is None
        assert [row[2:4] for row in survey.facts["budget_rows"]] == [["not known", "not known"]] * 3
    for command in (("rates",), ("plan",), ("status",), ("assess",)):
        said = run(*command, "-w", folder).stdout
        assert "not known" in said, command
        assert not re.search(r"\b(nan|inf)\b", said), command


def test_weekly_crawls_of_pages_that_change_daily_tell_no_more_than_a_few_changes_a_week(run, archive):
    found = told(json.loads(run("rates", "-w", archive, "--json", "--limit", "100").stdout))
    for row in range(ALWAYS):
        rate, low, high = found[f"http://one.example/part{row % 3}/{row}"]
        assert 0.5 / 7 < low <= rate <= 4.6 / 7 < 3.0 < high  # what they really do is not ruled out
    blur = [
        row["blur"] for row in json.loads(run("assess", "-w", archive, "--json", "--limit", "100").stdout)["worstPages"]
    ]
    assert max(one for one in blur if one is not None) < 10


def test_an_index_in_which_some_pages_always_changed_is_expected_to_be_as_coherent_as_it_is(run, tmp_path):
    """Three crawls of 140 pages, of which 15 changed every time: a Gamma expected far fewer to be coherent."""
    lines = [" CDX N b a m s k r M S V g"]
    for page in range(140):
        for crawl, day in enumerate((0.0, 7.0, 8.0)):
            digest = f"V{crawl}" if page < 15 else "SAME"
            when = to_timestamp14(START + day * DAY + 30.0 * page)
            lines.append(f"org,site)/{page} {when} http://site.org/{page} text/html 200 {digest} - - 100 0 a.warc.gz")
    file = tmp_path / "made.cdx"
    file.write_text("\n".join([*lines, ""]))
    said = json.loads(run("assess", file, "--json", "--limit", "200").stdout)
    worst = said["worstPages"]
    assert max(row["changes_per_day"] for row in worst) < 10
    assert max(row["blur"] for row in worst) < 50
    for crawl in said["crawls"]:
        if crawl["expected_coherent"] is not None:
            assert crawl["expected_coherent"] == pytest.approx(crawl["coherent"], rel=0.05)
