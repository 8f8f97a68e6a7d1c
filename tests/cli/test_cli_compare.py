"""``recrawl compare`` and ``recrawl experiment policies``: policies side by side, on a past that is known."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from recrawl.app.compare.benchmark_runs import BenchmarkRun, TallyCache, run_all
from recrawl.errors import ExitCode
from recrawl.estimate.site_signals import exact_times_as_observations
from recrawl.model import ChangeKind, Histories, Verdict, Visits
from recrawl.simulate.benchmark_field import field_from_histories, visits_per_page
from recrawl.simulate.policy_benchmark import NAMES, BenchmarkRules, entry
from recrawl.simulate.sampling import PageTruth, RegularVisits, sample
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl_lab.experiments.report_folder import MARK

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
START, DAYS = 1_700_000_000.0, 120
HOT, COLD = 20, 60
FAST = ("--repeats", 2, "--jobs", 1, "--tick", "4d", "--policy", "uniform", "--policy", "proportional")


def past():
    """A few pages change every third day, many hardly ever; all were visited every second day."""
    rng = np.random.default_rng(2)
    rate = np.concatenate([np.full(HOT, 0.3), np.full(COLD, 0.002)]) / DAY
    changes = PoissonProcess().times(rate, START, START + DAYS * DAY, rng)
    truth = PageTruth(np.full(len(rate), START), np.full(len(rate), np.inf), changes, START, START + DAYS * DAY)
    return sample(truth, RegularVisits(2 * DAY), rng)


@pytest.fixture(scope="module")
def crawled(new_workspace, tmp_path_factory):
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("compare") / "ws")
    with open_store(folder / "recrawl.db") as store:
        urls = [f"http://h{n % 20}.org/{n}" for n in range(HOT + COLD)]
        page = store.discover(urls, START)
        visits = past()
        store.record(Visits.of(page[visits.page], visits.time, verdict=visits.verdict, kinds=visits.kinds))
    return folder


def test_the_answer_is_a_sentence_and_a_table(run, crawled):
    result = run("compare", "-w", crawled, "--set", "schedule.policy=uniform", "--budget", 8, *FAST)
    assert result.returncode == 0, result.stderr
    said = re.search(
        r"You use uniform. With the same budget \((\S+) visits a day\), proportional would have", result.stdout
    )
    assert said
    assert float(said[1]) == pytest.approx(8, rel=1e-3)
    assert re.search(r"found \d+% more changes \(95%: \d+% to \d+%\)", result.stdout)
    assert "uniform (yours)" in result.stdout
    assert "drawn at random 2 times" in result.stdout


def test_numbers_for_programs(run, crawled):
    result = run("compare", "-w", crawled, "--json", "--set", "schedule.policy=uniform", "--budget", 8, *FAST)
    facts = json.loads(result.stdout)
    assert facts["in_use"] == "uniform"
    assert facts["best"] == "proportional"
    assert facts["pages"] == HOT + COLD
    assert [row["policy"] for row in facts["policies"]] == ["proportional", "uniform"]
    for row in facts["policies"]:
        assert 0 < row["recall_low"] <= row["recall"] <= row["recall_high"] <= 1
        assert row["visits_a_day"] == pytest.approx(8)
    hot, even = facts["policies"]
    assert hot["recall"] > 1.5 * even["recall"]


def test_without_a_budget_as_many_visits_are_made_as_there_were(run, crawled):
    facts = json.loads(run("compare", "-w", crawled, "--json", *FAST).stdout)
    assert facts["in_use"] == "valued-archive"
    assert facts["visits_a_page_a_day"] == pytest.approx(0.5, rel=0.02)


def test_results_do_not_depend_on_the_number_of_processes(spawn, crawled):
    asked = ("--set", "schedule.policy=uniform", "--policy", "nutch", "--repeats", 2)
    answers = [spawn("compare", "-w", crawled, "--json", *asked, "--jobs", jobs) for jobs in (1, 2)]
    assert answers[0].returncode == 0, answers[0].stderr
    assert answers[0].stdout == answers[1].stdout


def test_several_budgets_make_a_table_and_a_picture(run, crawled):
    out = crawled.parent / "out"
    result = run("compare", "-w", crawled, "--output", out, "--set", "schedule.policy=uniform", *FAST)
    assert result.returncode == 0, result.stderr
    with (out / "compare.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "uniform"]
    visits = [float(row["visits_a_day"]) for row in rows]
    assert np.array(visits) / visits[2] == pytest.approx(np.array([0.25, 0.5, 1, 2, 4]))
    recall = [float(row["recall"]) for row in rows]
    assert recall == sorted(recall)
    assert (out / "compare.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "nutsch"), "Did you mean 'nutch'?"),
        (("--tick", "soon"), "soon"),
        (("--tick", "0s"), "above 0"),
        (("--budget", "0"), "above 0"),
    ],
)
def test_what_is_not_known_is_refused(run, crawled, arguments, said):
    result = run("compare", "-w", crawled, *arguments)
    assert result.returncode == ExitCode.BAD_CONFIG
    assert said in result.stderr


def test_an_oracle_is_marked_and_never_recommended(run, crawled):
    asked = ("--set", "schedule.policy=uniform", "--budget", 8, "--repeats", 1, "--jobs", 1, "--tick", "4d")
    result = run("compare", "-w", crawled, "--policy", "gold", *asked)
    assert "gold (knows the future)" in result.stdout
    assert "no other usable policy was compared" in result.stdout
    assert "drawn at random once." in result.stdout
    facts = json.loads(run("compare", "-w", crawled, "--json", "--policy", "gold", "--policy", "nutch", *asked).stdout)
    assert facts["policies"][0]["policy"] == "gold"
    assert [row["knows_the_future"] for row in facts["policies"]] == [True, False, False]
    assert facts["best"] != "gold"


def test_a_few_pages_are_enough(run, crawled):
    result = run("compare", "-w", crawled, "--pages", 10, *FAST)
    assert result.returncode == 0, result.stderr
    assert "nan" not in result.stdout


def test_a_workspace_without_a_past_cannot_be_compared(run, workspace):
    result = run("compare", "-w", workspace)
    assert result.returncode == ExitCode.ERROR
    assert "observed twice" in result.stderr


# -- the past as a field -------------------------------------------------------------------------


def of_histories(histories, exact=None, stays=None, seed=1):
    n = len(histories)
    return field_from_histories(
        "past",
        histories,
        np.random.default_rng(seed),
        exact=np.zeros(n, np.bool_) if exact is None else exact,
        stays=np.zeros(n, np.bool_) if stays is None else stays,
        host=np.zeros(n, np.int64),
        cluster=np.arange(n),
        importance=np.ones(n),
    )


def test_every_change_found_lies_in_its_gap():
    histories = Histories.from_visits(past())
    field = of_histories(histories)
    assert len(field) == len(histories)
    when = field.truth.changes
    order = np.argsort(histories.first_visit, kind="stable")
    mine = histories.take(np.arange(len(histories)))
    for row, page in enumerate(order.tolist()):
        gaps = slice(mine.offsets[page], mine.offsets[page + 1])
        ends = mine.observation_times()[gaps][mine.changed[gaps]]
        lengths = mine.gaps[gaps][mine.changed[gaps]]
        assert ((when.row(row) <= ends) & (when.row(row) > ends - lengths)).all()
        assert field.truth.died[row] == mine.last_visit[page]
    other = of_histories(histories, seed=2)
    assert not np.array_equal(when.times, other.truth.changes.times)


def test_logs_keep_their_times_and_their_pages_stay_to_the_end():
    kinds = [0, ChangeKind.EXACT | ChangeKind.CONTENT, 0, 0]
    verdict = [Verdict.UNKNOWN, Verdict.CHANGED, Verdict.UNKNOWN, Verdict.UNCHANGED]
    visits = Visits.of([1, 1, 2, 2], [0.0, 5.0, 0.0, 90.0], verdict=verdict, kinds=kinds)
    field = of_histories(Histories.from_visits(exact_times_as_observations(visits)), exact=np.array([True, False]))
    assert field.truth.changes.times.tolist() == [5.0]
    assert field.truth.died.tolist() == [90.0, 90.0]


def test_pages_seen_once_tell_nothing():
    visits = Visits.of([1, 2, 2], [0.0, 0.0, 5.0], verdict=[0, 0, 1])
    histories = Histories.from_visits(visits)
    assert len(of_histories(histories)) == 1
    none = np.array([False, False])
    assert visits_per_page(histories, exact=none, stays=none) == 0.2
    with pytest.raises(ValueError, match="seen twice"):
        of_histories(Histories.from_visits(visits.take(np.array([0, 1]))))


def test_pages_left_alone_are_there_to_the_end_and_ask_for_visits():
    visits = Visits.of([1, 2, 2, 3, 3], [0.0, 0.0, 5.0, 0.0, 10.0], verdict=[0, 0, 1, 0, 2])
    histories = Histories.from_visits(visits)
    stays = np.array([True, True, False])
    field = of_histories(histories, stays=stays)
    assert field.truth.died.tolist() == [10.0, 10.0, 10.0]
    assert visits_per_page(histories, exact=np.zeros(3, np.bool_), stays=stays) == 2 / 30
    with pytest.raises(ValueError, match="seen twice"):
        of_histories(Histories.from_visits(visits.take(np.array([0, 1]))), stays=np.array([True, True]))


def test_budget_and_field_see_pages_left_alone_go_at_the_same_time():
    """A log of changes that goes on for longer than the looks says nothing of whether other pages are still there."""
    kinds = [0, 0, 0, ChangeKind.EXACT | ChangeKind.CONTENT, 0]
    visits = Visits.of([1, 1, 2, 2, 3], [0.0, 10.0, 0.0, 90.0, 0.0], verdict=[0, 1, 0, 2, 0], kinds=kinds)
    histories = Histories.from_visits(visits)
    exact, stays = np.array([False, True, False]), np.array([True, False, True])
    died = of_histories(histories, exact=exact, stays=stays).truth.died
    assert died.tolist() == [10.0, 90.0, 10.0]
    assert visits_per_page(histories, exact=exact, stays=stays) == 1 / died[~exact].sum()


def test_visits_to_pages_nobody_wants_any_more_are_not_shared_among_the_others(run, crawled, tmp_path):
    folder = shutil.copytree(crawled, tmp_path / "ws")
    with open_store(folder / "recrawl.db") as store:
        page = store.discover([f"http://gone.org/{n}" for n in range(30)], START, importance=0.0)
        times = START + np.arange(DAYS) * DAY
        store.record(Visits.of(np.repeat(page, DAYS), np.tile(times, 30), verdict=np.full(30 * DAYS, 1)))
    facts = json.loads(run("compare", "-w", folder, "--json", *FAST).stdout)
    assert facts["pages"] == HOT + COLD
    assert facts["visits_a_page_a_day"] == pytest.approx(0.5, rel=0.02)


# -- the grand table -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return tmp_path_factory.mktemp("policies")


@pytest.mark.slow
def test_the_grand_table_of_a_small_data_set(run, table):
    policies = [
        part for name in ("uniform", "nutch", "valued-archive", "valued-changes") for part in ("--policy", name)
    ]
    budgets = ("--budget", 0.03, "--budget", 0.3)
    quickly = ("--pages", 60, "--tick", "28d", "--jobs", 1)
    (table / "policies.md").write_text(f"# Words\n\n{MARK}\n\nold", encoding="utf-8")
    result = run("experiment", "policies", "--data", RECORDED, "--output", table, *quickly, *policies, *budgets)
    assert result.returncode == 0, result.stderr
    with (table / "policies.csv").open(encoding="utf-8") as file:
        rows = {(row["policy"], float(row["budget"])): row for row in csv.DictReader(file)}
    assert len(rows) == 8
    for row in rows.values():
        for metric in ("freshness", "recall"):
            assert float(row[f"{metric}_low"]) <= float(row[metric]) <= float(row[f"{metric}_high"])
    for name in ("uniform", "nutch", "valued-archive"):
        assert float(rows[name, 0.3]["freshness"]) > float(rows[name, 0.03]["freshness"])
    visits = {float(row["visits"]) for (_, budget), row in rows.items() if budget == 0.03}
    assert len(visits) == 1
    text = (table / "policies.md").read_text(encoding="utf-8")
    head, _, tables = text.partition(f"{MARK}\n\n")
    assert head == "# Words\n\n"
    assert tables in result.stdout
    assert "| uniform | 1.000 | 1.000 |" in text
    assert "## In short" in text
    assert "| valued-changes | recall |" in text
    assert "nutch" in re.search(r"\| jekylldocs \|.*", text)[0]
    assert (table / "policies.png").stat().st_size > 10_000


def test_a_table_of_what_is_kept_has_dashes_for_the_rest(run, tmp_path):
    asked = ("experiment", "policies", "--data", RECORDED, "--output", tmp_path / "out", "--keep", tmp_path / "kept")
    quickly = ("--pages", 60, "--tick", "28d", "--jobs", 1, "--budget", 0.01, "--budget", 0.03)
    nothing = run(*asked, *quickly, "--kept-only")
    assert nothing.returncode == ExitCode.ERROR
    assert "Nothing was kept" in nothing.stderr
    run(*asked, *quickly, "--policy", "uniform")
    run(*asked, *quickly[:-2], "--policy", "valued-archive", "--policy", "nutch")
    result = run(*asked, *quickly, "--kept-only")
    assert result.returncode == 0, result.stderr
    assert re.search(r"\| valued-archive \| \d\.\d+ \| – \|", result.stdout)
    assert "| week | 1.000 | 1.000 |" in result.stdout
    assert "stormcrawler" not in result.stdout


def test_pages_of_which_nothing_is_scored_make_no_table(run, tmp_path):
    kept = tmp_path / "kept"
    asked = ("experiment", "policies", "--data", RECORDED, "--output", tmp_path / "out", "--keep", kept)
    quickly = ("--pages", 60, "--tick", "28d", "--jobs", 1, "--budget", 0.1, "--policy", "uniform")
    assert run(*asked, *quickly).returncode == 0
    (file,) = kept.iterdir()
    with np.load(file) as columns:
        np.savez(file, **{name: np.zeros_like(columns[name]) for name in columns.files})
    result = run(*asked, *quickly)
    assert result.returncode == ExitCode.ERROR
    assert "that is scored" in result.stderr


def test_collections_and_policies_must_exist(run, tmp_path):
    result = run("experiment", "policies", "--data", RECORDED, "--only", "nowhere", "--output", tmp_path / "out")
    assert result.returncode == ExitCode.ERROR
    assert "no collection 'nowhere'" in result.stderr
    result = run("experiment", "policies", "--data", RECORDED, "--policy", "uniforn", "--output", tmp_path / "out")
    assert "Did you mean 'uniform'?" in result.stderr
    result = run("experiment", "policies", "--data", RECORDED, "--policy", "foo", "--output", tmp_path / "out")
    assert result.returncode == ExitCode.BAD_CONFIG
    assert "Did you mean" not in result.stderr
    assert "There are: " in result.stderr
    result = run("experiment", "policies", "--data", RECORDED, "--tick", "0d", "--output", tmp_path / "out")
    assert result.returncode == ExitCode.BAD_CONFIG
    assert "above 0" in result.stderr


def test_the_grand_table_marks_oracles_and_counts_in_the_singular(run, tmp_path):
    quickly = ("--pages", 10, "--tick", "28d", "--jobs", 1, "--budget", 0.1, "--policy", "gold")
    result = run("experiment", "policies", "--data", RECORDED, "--output", tmp_path / "out", *quickly)
    assert result.returncode == 0, result.stderr
    assert "1 policy, 1 collection with" in result.stdout
    assert "| gold (knows the future) |" in result.stdout
    assert "**" not in result.stdout


def test_runs_that_were_kept_are_not_held_again(tmp_path):
    field = of_histories(Histories.from_visits(past()).take(np.arange(10, 30)))
    rules = BenchmarkRules(0.0, found_after=0.0, tick=2 * DAY)
    kept = TallyCache(tmp_path / "kept", "1-2")
    runs = [BenchmarkRun("a/past", name, 0.1) for name in ("uniform", "nutch")]
    first = run_all({"a/past": [field, field]}, runs[:1], entry, rules, seed=1, jobs=1, kept=kept)

    def refuse(name, where):
        assert name == "nutch"
        return entry(name, where)

    second = run_all({"a/past": [field, field]}, runs, refuse, rules, seed=1, jobs=1, kept=kept)
    assert list(second) == runs
    for name in ("fresh", "caught", "choices"):
        assert np.array_equal(getattr(first[runs[0]], name), getattr(second[runs[0]], name))
    assert len(list((tmp_path / "kept").iterdir())) == 2
    more = [*runs, BenchmarkRun("a/past", "aduana", 0.1)]
    some = run_all({"a/past": [field, field]}, more, entry, rules, seed=1, kept=kept, kept_only=True)
    assert list(some) == runs
    assert TallyCache(tmp_path / "kept", "2-2").load(runs[0]) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_can_compete(name):
    """At one budget for all: as many visits as any other, and scores that make sense."""
    histories = Histories.from_visits(past())
    field = of_histories(histories.take(np.arange(10, 30)))
    rules = BenchmarkRules(0.0, found_after=0.0, tick=6 * DAY)
    tallies = run_all(
        {"past": [field]}, [BenchmarkRun("past", n, 0.1) for n in (name, "uniform")], entry, rules, seed=1, jobs=1
    )
    mine, even = (tallies[BenchmarkRun("past", n, 0.1)] for n in (name, "uniform"))
    assert mine.visits.sum() == even.visits.sum() > 80
    assert 0 < mine.ratio("recall") <= 1
    assert 0 < mine.ratio("freshness") <= 1
