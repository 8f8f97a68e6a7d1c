"""``recrawl rates`` with all its options, on a workspace whose laws of change are known."""

import base64
import csv
import hashlib
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl.app.rates.belief_table import section_labels
from recrawl.app.rates.rates_table import (
    ChangeAspect,
    RatesGrouping,
    RatesOrder,
    RatesQuestion,
    _drawn_sums,
    _first,
    grouped,
    in_words,
    rows_for,
)
from recrawl.errors import ExitCode
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.model import ChangeKind, GammaBelief, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.time import DAY, HOUR
from recrawl.urls import section

START = 1_700_000_000.0
END = START + 120 * DAY
NEWS, DOCS, LOGGED = 30, 30, 20


def looked_at(rng, page, rate, kinds):
    """Looks every two days or so at pages that change by chance; half of the changes bring new links."""
    pages, times, verdicts, found = [], [], [], []
    for one, per_day in zip(page.tolist(), rate.tolist(), strict=True):
        at = START + np.cumsum(rng.uniform(0.5, 3.5, 55)) * DAY
        at = at[at < END]
        changed = rng.random(len(at)) < -np.expm1(-per_day * np.diff(at, prepend=at[0]) / DAY)
        verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
        verdict[0] = Verdict.UNKNOWN
        pages.append(np.full(len(at), one))
        times.append(at)
        verdicts.append(verdict)
        found.append(np.where(changed, rng.choice(kinds, len(at)), 0))
    return Visits.of(
        np.concatenate(pages),
        np.concatenate(times),
        verdict=np.concatenate(verdicts),
        kinds=np.concatenate(found),
        status=200,
        new_internal=0,  # the links were read, so that a change without new links is known to have none
    )


def logged(rng, page, per_day):
    """Logs of changes: an opening, and a visit at each change."""
    pages, times, verdicts = [], [], []
    for one in page.tolist():
        at = START + np.concatenate([[0.0], np.cumsum(rng.exponential(1 / per_day, 40))]) * DAY
        at = at[at < END]
        pages += [one] * len(at)
        times += at.tolist()
        verdicts += [Verdict.UNKNOWN] + [Verdict.CHANGED] * (len(at) - 1)
    kinds = np.where(np.array(verdicts) == Verdict.CHANGED, ChangeKind.CONTENT | ChangeKind.EXACT, 0)
    return Visits.of(pages, times, verdict=verdicts, kinds=kinds)


@pytest.fixture(scope="module")
def known(new_workspace, tmp_path_factory):
    """Two hosts that were looked at and one whose changes were logged."""
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("rates") / "ws")
    rng = np.random.default_rng(1)
    urls = [f"http://news.org/{'front' if n % 2 else 'back'}/{n}" for n in range(NEWS)]
    urls += [f"http://docs.org/{n}.html" for n in range(DOCS)]
    urls += [f"http://log.org/{n}" for n in range(LOGGED)]
    with open_store(folder / "recrawl.db") as store:
        page = store.discover(urls, START)
        kinds = [ChangeKind.CONTENT, ChangeKind.CONTENT | ChangeKind.NEW_LINKS]
        parts = [
            looked_at(rng, page[:NEWS], rng.lognormal(np.log(0.5), 0.5, NEWS), kinds),
            looked_at(rng, page[NEWS : NEWS + DOCS], rng.lognormal(np.log(0.05), 0.5, DOCS), kinds),
            logged(rng, page[NEWS + DOCS :], 0.1),
        ]
        store.record(Visits.concatenate(parts))
    return folder


@pytest.fixture
def rates(run, known):
    """``rates("--by", "host")`` gives the rows as JSON."""

    def asked(*arguments):
        result = run("rates", *arguments, "-w", known, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return asked


AT_END = ("--at", "2024-03-13T22:13:20Z")
assert START + 120 * DAY == 1_710_368_000.0


# -- the table -----------------------------------------------------------------------------------------


def test_rows_say_rate_evidence_and_method(rates):
    rows = rates(*AT_END, "--limit", "100")
    assert len(rows) == NEWS + DOCS + LOGGED
    for row in rows:
        assert row["low"] <= row["changes_per_day"] <= row["high"]
        assert row["in_words"].startswith("about every ")
        assert np.isclose(row["changes_every"] * row["changes_per_day"], DAY)
        assert 0.0 <= row["p_changed"] <= 1.0
        assert row["last_change"] is None or row["last_change"] <= row["last_observed"] <= END
        assert (row["method"], row["kind"]) == (DEFAULT, "any")
        assert row["exact"] == row["url"].startswith("http://log.org/")
    by_host = {host: [r["changes_per_day"] for r in rows if host in r["url"]] for host in ("news", "docs", "log")}
    assert np.median(by_host["news"]) > 3 * np.median(by_host["docs"])
    # A log of one change in ten days must not look like a page that had changed at every look.
    assert 0.06 < np.median(by_host["log"]) < 0.16


def test_the_printed_table_speaks_in_words(run, known):
    text = run("rates", "-w", known, "-n", "3", *AT_END).stdout
    assert text.count("about every ") == 3
    assert f"3 of {NEWS + DOCS + LOGGED} shown" in text
    assert "Estimated by operational from all kinds of changes, as of 2024-03-13 22:13." in text
    assert "logged" in run("rates", "-w", known, "--host", "log.org").stdout


def test_a_site_is_one_page_that_changes_with_any_of_its_pages(rates):
    sites = {row["site"]: row for row in rates(*AT_END, "--by", "site", "--estimator", "mle")}
    hosts = {row["host"]: row for row in rates(*AT_END, "--by", "host", "--estimator", "mle")}
    assert sites.keys() == hosts.keys()
    for name, site in sites.items():
        assert site["changes"] <= hosts[name]["changes"]
        assert site["observations"] <= hosts[name]["observations"]
        assert site["pages"] == hosts[name]["pages"]


def test_the_chance_of_a_change_grows_with_the_time_since_the_last_look(rates):
    early, late = (rates("--at", at, "--limit", "100", "--sort", "name") for at in ("2024-03-14", "2024-06-14"))
    assert [row["url"] for row in early] == [row["url"] for row in late]
    grown = np.array(
        [[b["p_changed"] - a["p_changed"], a["changes_per_day"]] for a, b in zip(early, late, strict=True)]
    )
    assert (grown[:, 0] > 0).all()
    posterior = rates("--at", "2024-06-14", "--limit", "100", "--sort", "name", "--estimator", "mle")
    for row in posterior:
        waited = (1_718_323_200.0 - row["last_observed"]) / DAY
        assert np.isclose(row["p_changed"], 1 - np.exp(-row["changes_per_day"] * waited))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_answers(rates, name):
    rows = rates(*AT_END, "--estimator", name, "--limit", "100")
    assert {row["method"] for row in rows} == {name}
    assert len(rows) == NEWS + DOCS + LOGGED
    assert all(row["low"] <= row["high"] for row in rows if row["high"] is not None)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in ("operational", "posterior", "gamma")])
def test_of_a_log_every_point_estimator_says_changes_over_time(rates, name):
    for row in rates(*AT_END, "--estimator", name, "--host", "log.org"):
        assert np.isclose(row["changes_per_day"], row["changes"] / row["observed"] * DAY)
        assert row["low"] < row["changes_per_day"] < row["high"]


def test_point_estimators_come_with_likelihood_intervals(rates):
    rows = rates(*AT_END, "--estimator", "mle", "--limit", "100", "--sort", "uncertainty")
    widths = [row["high"] / row["low"] if row["high"] and row["low"] else np.inf for row in rows]
    assert widths == sorted(widths, reverse=True)
    inner = [row for row in rows if 0 < row["changes"] < row["observations"] - 1]
    assert len(inner) > 40
    assert all(row["low"] < row["changes_per_day"] < row["high"] for row in inner)


def test_kinds_count_apart(rates):
    any_kind, links = (
        {row["url"]: row for row in rates(*AT_END, "--host", "news.org", "--kind", kind)}
        for kind in ("any", "new_links")
    )
    assert sum(row["changes"] for row in links.values()) < sum(row["changes"] for row in any_kind.values())
    assert all(links[url]["changes"] <= any_kind[url]["changes"] for url in links)
    assert {row["kind"] for row in links.values()} == {"new_links"}


def test_digests_tell_nothing_about_links_but_that_nothing_changed(run, tmp_path):
    """An index of captures: one page has another digest each day, one every third day, one never."""
    lines = [
        f"org,example)/{every} 202001{day:02d}000000 http://example.org/{every} text/html 200 "
        f"{base64.b32encode(hashlib.sha1(b'%d %d' % (every, day // every)).digest()).decode()} - - 100 {day} f.warc.gz"
        for every in (1, 3, 99)
        for day in range(1, 28)
    ]
    (tmp_path / "index.cdx").write_text("\n".join([" CDX N b a m s k r M S V g", *sorted(lines)]) + "\n")
    run("init", tmp_path / "w")
    run("import", "-w", tmp_path / "w", tmp_path / "index.cdx")
    for kind in ("new-links", "links", "text"):
        found = json.loads(run("rates", "-w", tmp_path / "w", "--kind", kind, "--json").stdout)
        rate = {row["url"].rpartition("/")[2]: row for row in found}
        assert [rate[page]["changes_per_day"] for page in ("1", "3")] == [None, None]
        assert [rate[page]["p_changed"] for page in ("1", "3")] == [None, None]
        assert (rate["99"]["changes"], rate["99"]["observations"]) == (0, 27)
        assert rate["99"]["changes_per_day"] > 0
        table = run("rates", "-w", tmp_path / "w", "--kind", kind).stdout
        assert table.count("not known") == 4  # rate and P(changed) of two pages
        assert "nan" not in table


@pytest.mark.parametrize(("mime", "known"), [("text/html", True), ("text/csv", False), ("font/woff2", False)])
def test_data_without_links_has_no_rate_of_new_links(run, tmp_path, mime, known):
    lines = [
        f"org,example)/x 202001{day:02d}000000 http://example.org/x {mime} 200 {'A' * 32} - - 100 {day} f.warc.gz"
        for day in range(1, 9)
    ]
    (tmp_path / "index.cdx").write_text("\n".join([" CDX N b a m s k r M S V g", *lines]) + "\n")
    run("init", tmp_path / "w", "--set", "archive.resources=pages")
    run("import", "-w", tmp_path / "w", tmp_path / "index.cdx")
    [row] = json.loads(run("rates", "-w", tmp_path / "w", "--kind", "new-links", "--json").stdout)
    assert (row["changes_per_day"] is not None, row["in_words"] != "not known") == (known, known)
    [row] = json.loads(run("rates", "-w", tmp_path / "w", "--json").stdout)
    assert row["changes_per_day"] is not None


def test_a_kind_may_be_spelled_either_way(rates):
    hyphen, underscore = (rates(*AT_END, "--kind", kind) for kind in ("new-links", "new_links"))
    assert hyphen == underscore


def test_hosts_and_sections_change_when_any_page_does(rates):
    hosts = {row["host"]: row for row in rates(*AT_END, "--by", "host")}
    assert {host: row["pages"] for host, row in hosts.items()} == {
        "news.org": NEWS,
        "docs.org": DOCS,
        "log.org": LOGGED,
    }
    pages = rates(*AT_END, "--limit", "100")
    for host, row in hosts.items():
        own = [page for page in pages if host in page["url"]]
        found, observations, days = sum(page["changes"] for page in own), row["observations"], row["observed"] / DAY
        assert (row["changes"], observations) == (found, sum(page["observations"] for page in own))
        # Looks hide some changes, so there are more than were found; they were every two days, so not many times more.
        assert found / days < row["changes_per_day"] < 2.5 * found / days
        assert row["low"] < row["changes_per_day"] < row["high"] < 2 * row["low"]
    of_host = [row["p_changed"] for row in pages if "docs.org" in row["url"]]
    assert np.isclose(hosts["docs.org"]["p_changed"], np.mean(of_host))
    assert hosts["log.org"]["exact"]
    sections = rates(*AT_END, "--by", "section", "--sort", "name")
    assert [row["section"] for row in sections] == [
        "http://docs.org/",
        "http://log.org/",
        "http://news.org/back/",
        "http://news.org/front/",
    ]


def test_a_group_is_the_sum_of_its_pages_and_a_group_of_one_is_that_page(known):
    with open_store(known / "recrawl.db") as store:
        question = RatesQuestion(
            ESTIMATORS[DEFAULT], END, ChangeAspect.ANY, RatesGrouping.PAGE, None, RatesOrder.RATE, None, None, 1, None
        )
        pages = rows_for(store, question)
    alone = grouped(pages, np.arange(len(pages)), ["x"] * len(pages))
    everything = np.arange(len(pages))
    np.testing.assert_allclose(alone.rate, pages.rate)
    np.testing.assert_allclose(alone.bounds(everything), pages.bounds(everything))
    whole = grouped(pages, np.zeros(len(pages), np.int64), ["all"])
    assert 0.95 * pages.rate.sum() < whole.rate[0] < 1.5 * pages.rate.sum()
    low, high = (one[0] for one in whole.bounds(np.array([0])))
    lows, highs = (one.sum() for one in pages.bounds(everything))
    assert lows < low < whole.rate[0] < high < highs, "independent pages are surer together than each alone"


@pytest.mark.parametrize("size", [2, 9, 100])
def test_intervals_of_groups_hold_the_truth_as_often_as_they_say(size):
    """Rates drawn from a prior, and beliefs that are right about them: some know next to nothing of their page."""
    rng, groups = np.random.default_rng(size), 200
    true = rng.gamma(0.3, 1.0, groups * size)
    seen = rng.choice([0.1, 1.0, 30.0], groups * size)
    belief = GammaBelief(0.3 + rng.poisson(true * seen), 1.0 + seen)
    label, weight = np.repeat(np.arange(groups), size), np.ones(groups * size)
    low, middle, high = np.quantile(_drawn_sums(belief, label, weight, groups), [0.05, 0.5, 0.95], axis=0)
    sums = np.bincount(label, true)
    assert 0.84 < np.mean((low <= sums) & (sums <= high)) < 0.96
    assert 0.4 < np.mean(sums < middle) < 0.6


@pytest.mark.parametrize("name", ["naive", "mle", "moment", "gamma"])
def test_every_estimator_knows_groups(rates, name):
    for row in rates(*AT_END, "--by", "host", "--estimator", name):
        assert row["low"] <= row["changes_per_day"] <= row["high"] < 2 * row["low"]
    [quiet] = rates("--kind", "existence", "--by", "host", "--estimator", "naive", "--host", "docs.org")
    assert (quiet["changes"], quiet["changes_per_day"], quiet["low"]) == (0, 0.0, 0.0)
    assert quiet["in_words"].startswith("no change observed; less often than every ")


def test_at_knows_nothing_of_what_came_later(rates):
    early = rates("--at", "2023-12-14", "--limit", "100")
    late = rates(*AT_END, "--limit", "100")
    cut = 1_702_512_000.0
    assert all(row["last_observed"] <= cut for row in early)
    assert sum(row["observations"] for row in early) < sum(row["observations"] for row in late)
    assert rates("--at", "2020-01-01") == []


def test_a_window_leaves_out_what_is_old(rates):
    rows = rates(*AT_END, "--window", "30d", "--limit", "100", "--host", "docs.org")
    assert all(row["observed"] <= 30 * DAY for row in rows)
    assert max(row["observations"] for row in rows) < 30


@pytest.mark.slow
def test_every_order(rates):
    def column(sort, name):
        return [row[name] for row in rates(*AT_END, "--sort", sort, "--limit", "100")]

    assert column("rate", "changes_per_day") == sorted(column("rate", "changes_per_day"), reverse=True)
    assert column("-rate", "changes_per_day") == sorted(column("rate", "changes_per_day"))
    assert column("changed", "p_changed") == sorted(column("changed", "p_changed"), reverse=True)
    assert column("observations", "observations") == sorted(column("observations", "observations"), reverse=True)
    assert column("name", "url") == sorted(column("name", "url"))
    recent = [when or 0 for when in column("recent", "last_change")]
    assert recent == sorted(recent, reverse=True)
    doubt = [high / low for high, low in zip(column("uncertainty", "high"), column("uncertainty", "low"), strict=True)]
    assert doubt == sorted(doubt, reverse=True)


def test_filters(rates):
    assert {row["url"].split("/")[2] for row in rates("--host", "docs.org")} == {"docs.org"}
    assert all("/front/" in row["url"] for row in rates("--match", "/front/"))
    assert [row["url"] for row in rates("--match", "http://docs.org/?.html", "--sort", "name")] == [
        f"http://docs.org/{n}.html" for n in range(10)
    ]
    some = rates(*AT_END, "--min-observations", "55", "--limit", "100")
    assert 0 < len(some) < NEWS + DOCS
    assert min(row["observations"] for row in some) >= 55


def test_a_filter_changes_what_is_shown_and_not_what_is_believed(rates):
    whole = {row["url"]: row for row in rates(*AT_END, "--limit", "100")}
    for row in rates(*AT_END, "--host", "docs.org", "--limit", "5"):
        assert row == whole[row["url"]]


def test_the_limit_keeps_the_first(rates):
    assert rates(*AT_END, "--limit", "7") == rates(*AT_END, "--limit", "100")[:7]
    assert len(rates()) == 50


# -- files -----------------------------------------------------------------------------------------------


def test_json_csv_and_parquet_hold_the_same(run, rates, known, tmp_path):
    expected = rates(*AT_END, "--limit", "1000")
    for name in ("r.csv", "r.parquet"):
        result = run("rates", "-w", known, *AT_END, "--output", name)
        assert result.stdout == f"Wrote {NEWS + DOCS + LOGGED} rows to {name}.\n"
    assert pq.read_table(tmp_path / "r.parquet").to_pylist() == expected
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, wanted in zip(rows, expected, strict=True):
        assert row == {name: "" if value is None else str(value) for name, value in wanted.items()}


def test_a_file_that_cannot_be_is_told_before_any_work(run, known):
    wrong = run("rates", "-w", known, "-o", "rates.xlsx")
    assert wrong.returncode == ExitCode.BAD_CONFIG
    assert "Use the extension .csv or .parquet" in wrong.stderr
    assert "Use one of the extensions .png" in run("rates", "-w", known, "--plot", "rates.txt").stderr
    assert "Check the folder" in run("rates", "-w", known, "-o", "nowhere/rates.csv").stderr
    assert "Check the folder" in run("rates", "-w", known, "--plot", "nowhere/rates.png").stderr


def test_diagnoses_and_comparisons_can_be_written_row_by_row(run, rates, known, tmp_path):
    result = run("rates", "diagnose", "-w", known, *AT_END, "-o", "d.csv")
    assert "Page by page: d.csv" in result.stdout
    with (tmp_path / "d.csv").open(encoding="utf-8", newline="") as file:
        pages = list(csv.DictReader(file))
    assert len(pages) == rates("diagnose", *AT_END)["pages"]["tested"]
    assert all(float(page["median_interval"]) > 0 and 0 < float(page["p_bursts"]) <= 1 for page in pages)
    run("rates", "compare", "-w", known, *AT_END, "-o", "c.parquet")
    scores = pq.read_table(tmp_path / "c.parquet").to_pylist()
    expected = rates("compare", *AT_END)["estimators"]
    assert [(row["estimator"], row["log_loss"], row["brier_high"]) for row in scores] == [
        (score["name"], score["log_loss"][0], score["brier"][2]) for score in expected
    ]


@pytest.mark.parametrize("more", [(), ("diagnose",), ("--by", "host"), ("--output", "rates.csv")])
@pytest.mark.parametrize("name", ["p.png", "p.svg"])
def test_pictures(run, known, tmp_path, more, name):
    result = run("rates", *more, "-w", known, *AT_END, "--plot", name)
    assert result.returncode == 0, result.stderr
    assert f"Plot: {name}" in result.stdout
    assert (tmp_path / name).read_bytes().startswith({"p.png": b"\x89PNG", "p.svg": b"<?xml"}[name])


# -- is it Poisson? ----------------------------------------------------------------------------------------


def test_diagnose_says_what_is_so(run, rates, known):
    text = run("rates", "diagnose", "-w", known, *AT_END).stdout
    assert text.startswith("These pages change like a Poisson process")
    for words in ("pages tested", "dispersion", "distance to Poisson", "up to 7 d", "median interval × rate", "1/λ"):
        assert words in text
    found = rates("diagnose", *AT_END)
    assert found["pattern"] in {"poisson", "near-poisson"}
    assert found["pages"]["exact"] == LOGGED
    assert found["pages"]["tested"] == found["pages"]["eligible"]
    assert found["lognormal"]["page"]["count"] > 60
    assert found == rates("diagnose", *AT_END)


def test_diagnose_takes_the_filters(rates):
    found = rates("diagnose", *AT_END, "--host", "log.org")
    assert found["pages"]["exact"] == found["pages"]["tested"] == LOGGED
    fewer = rates("diagnose", *AT_END, "--match", "/front/", "--min-observations", "50")
    assert 0 < fewer["pages"]["tested"] <= NEWS // 2
    assert rates("diagnose", *AT_END, "--window", "3d")["pattern"] == "unknown"


# -- which estimator? --------------------------------------------------------------------------------------


def test_compare_scores_every_estimator_and_marks_the_best(run, rates, known):
    found = rates("compare", *AT_END)
    scores = found["estimators"]
    assert {score["name"] for score in scores} == set(ESTIMATORS)
    losses = [score["log_loss"][0] for score in scores]
    assert losses == sorted(losses)
    assert scores[0]["behind_best"] == [0.0, 0.0, 0.0]
    assert all(low <= mean <= high for mean, low, high in (score["log_loss"] for score in scores))
    by_name = {score["name"]: score for score in scores}
    assert by_name[DEFAULT]["ties_with_best"]
    assert not by_name["naive"]["ties_with_best"]
    assert found["pages"] <= NEWS + DOCS
    text = run("rates", "compare", "-w", known, *AT_END).stdout
    assert f"From {found['predictions']:,} predictions" in text
    assert " best " in text
    assert "as good" in text


def test_compare_refuses_where_there_is_too_little(run, known):
    result = run("rates", "compare", "-w", known, "--host", "log.org")
    assert result.returncode == ExitCode.ERROR
    assert "Only 0 observations can be predicted from earlier ones; a comparison needs 100." in result.stderr


# -- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--estimator", "mel"), "There are: operational, posterior, gamma, naive"),
        (("--at", "yesterday"), "Write it as 2026-11-15"),
        (("--window", "30"), "Write a number and a unit"),
    ],
)
def test_errors_say_what_to_do(run, known, arguments, words):
    result = run("rates", "-w", known, *arguments)
    assert result.returncode == ExitCode.BAD_CONFIG
    assert words in result.stderr


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("nwes.org", "Did you mean 'news.org'? There are: news.org, docs.org, log.org."),
        ("zzz", "There are: news.org, docs.org, log.org."),
    ],
)
def test_a_host_that_is_not_there_is_told_with_those_that_are(run, known, host, words):
    result = run("rates", "-w", known, "--host", host)
    assert result.returncode == ExitCode.ERROR
    assert result.stderr == f"recrawl: There is no host {host!r} in this workspace.\n{words}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--match", "zzz"), "No page that was observed by 2024-03-13 22:13 matches --match zzz."),
        (("--by", "host", "--window", "90s"), "No host that was observed by 2024-03-13 22:13 matches --window 90s."),
        (("--at", "2000-01-01"), "No page was observed by 2000-01-01 00:00. Visit some with: recrawl run -w "),
    ],
)
def test_a_table_without_rows_says_why(run, known, arguments, words):
    result = run("rates", "-w", known, *AT_END, *arguments)
    assert result.returncode == 0
    assert result.stdout.startswith(words)


@pytest.mark.parametrize(
    "more", [(), ("--by", "host"), ("--by", "section"), ("--sort", "uncertainty"), ("--match", "x")]
)
def test_an_empty_workspace_has_no_rates(run, workspace, more):
    assert json.loads(run("rates", "-w", "ws", "--json", *more).stdout) == []
    assert run("rates", "-w", "ws", *more).returncode == 0


def test_an_empty_workspace_cannot_be_diagnosed_but_says_so(run, workspace):
    result = run("rates", "diagnose", "-w", "ws", "--plot", "p.png")
    assert result.returncode == 0, result.stderr
    assert "not known yet" in result.stdout
    assert run("rates", "compare", "-w", "ws").returncode == ExitCode.ERROR


# -- parts -------------------------------------------------------------------------------------------------


def test_sections_are_those_of_the_vocabulary():
    urls = [
        "http://a.org/",
        "https://a.org/x/y/z?q=/1",
        "http://b.org:8080/x",
        "http://b.org/x/?y/z",
        "http://b.org/?a/b",
    ]
    label, names = section_labels(urls)
    assert [names[number] for number in label] == [section(url) for url in urls]


@pytest.mark.parametrize("limit", [1, 3, 5, 6, 10, None])
def test_the_first_rows_are_those_of_a_stable_sort(limit):
    key = np.array([3.0, 1.0, 2.0, 1.0, 1.0, 2.0])
    assert _first(key, limit).tolist() == np.argsort(key, kind="stable")[:limit].tolist()


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((12 * DAY, 9 * DAY, 17 * DAY), "about every 12 days, 9–17"),
        ((1.2 * DAY, 0.5 * DAY, 2 * DAY), "about every 29 hours, 12–48"),
        ((800 * DAY, 100 * DAY, 3_000 * DAY), "about every 2.2 years, 0.27–8.2"),
        ((30.0, 10.0, 90.0), "about every 30 seconds, 10–90"),
        ((2 * HOUR, 1.0, np.inf), "about every 2 hours, 1 second or more"),
        ((np.nan, np.nan, np.nan), "not known"),
        ((np.inf, 0.0, np.inf), "no change observed"),
    ],
)
def test_words(times, words):
    assert in_words(*times) == words
