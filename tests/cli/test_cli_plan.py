"""``recrawl plan`` with all its options, on a small workspace whose pages change at known rates."""

import json
import math
import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest

from recrawl.crawl.control.worker_registry import RegisteredWorker, keep_costs, visit_costs
from recrawl.errors import ExitCode
from recrawl.model import Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import ClaimColumns
from recrawl.time import DAY, HOUR

START = 1_700_000_000.0
END = START + 60 * DAY
AT_END = ("--at", "2024-01-13T22:13:20Z")
HOT, COLD = 6, 20


@pytest.fixture(scope="module")
def known(new_workspace, tmp_path_factory):
    """A host that changes daily, one that hardly does, a page that fails, and one that nobody has seen."""
    folder = shutil.copytree(new_workspace, tmp_path_factory.mktemp("plan") / "ws")
    rng = np.random.default_rng(1)
    urls = [f"http://hot.org/{n}" for n in range(HOT)] + [f"http://cold.org/{n}" for n in range(COLD)]
    urls += ["http://cold.org/broken", "http://cold.org/unseen"]
    with open_store(folder / "recrawl.db") as store:
        page = store.discover(urls, START)
        parts = []
        for row, one in enumerate(page[: HOT + COLD].tolist()):
            at = START + np.arange(0.0, 60.0, 2.0) * DAY + row * HOUR
            per_day = 1.0 if row < HOT else 0.01
            changed = rng.random(len(at)) < -np.expm1(-per_day * 2.0)
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            verdict[0] = Verdict.UNKNOWN
            parts.append(Visits.of(np.full(len(at), one), at, verdict=verdict, cost=rng.lognormal(0, 0.5, len(at))))
        broken = Visits.of(
            np.full(3, page[-2]), END - np.array([3.0, 2.0, 1.0]) * HOUR, outcome=Outcome.SERVER_ERROR, cost=9.0
        )
        store.record(Visits.concatenate([*parts, broken]))
        hosts = store.hosts()
        store.set_host(hosts.id, delay=np.array([3.0, 60.0])[[hosts.name.index(n) for n in ("hot.org", "cold.org")]])
    return folder


@pytest.fixture
def plan(run, known):
    """``plan("--host", "hot.org")`` gives what is printed as JSON."""

    def asked(*arguments):
        result = run("plan", *arguments, "-w", known, "--json", *AT_END)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return asked


def refused(run, known, *arguments):
    result = run("plan", *arguments, "-w", known, *AT_END)
    assert result.returncode in {ExitCode.ERROR, ExitCode.BAD_CONFIG}
    return result.stderr


# -- what comes next ----------------------------------------------------------------------------------------


def test_pages_come_in_the_order_in_which_they_are_due_and_say_why(plan):
    found = plan("--limit", "100", "--set", "schedule.budget=12")
    rows = found["next"]
    assert found["now"] == END
    assert len(rows) == found["pages"] == HOT + COLD + 2
    due = [row["due"] for row in rows]
    assert due == sorted(due)
    by_url = {row["url"].removeprefix("http://"): row for row in rows}
    assert by_url["cold.org/unseen"]["why"] == "never seen"
    assert by_url["cold.org/unseen"]["p_changed"] is None
    assert by_url["cold.org/unseen"]["due"] == START
    assert by_url["cold.org/broken"]["why"] == "retry after a failure"
    assert by_url["cold.org/broken"]["due"] > END - HOUR
    hot, cold = ([row for row in rows if row["host"] == name] for name in ("hot.org", "cold.org"))
    intervals = [
        np.median([row["due"] - row["last_observed"] for row in part if row["last_observed"]]) for part in (hot, cold)
    ]
    assert intervals[0] < intervals[1]
    assert all(row["in_words"].startswith("about every ") for row in hot)
    for row in hot:
        assert row["why"] == "above threshold"
        assert (row["worth"] >= 1 - 1e-6) == (row["due"] <= END)
        assert row["value"] == pytest.approx(row["worth"] * found["price"])
        assert 0 < row["p_changed"] < 1
        assert row["late"] == max(END - row["due"], 0)
    assert found["late"] == sum(when < END for when in due)


def test_a_page_is_ever_likelier_to_have_changed_while_nobody_looks(run, workspace):
    """Though pages change less as they grow older, and the pace of now falls."""
    rng = np.random.default_rng(3)
    with open_store(workspace / "recrawl.db") as store:
        for born in [0.0] * 10 + [float(day) for day in range(10, 60)]:
            page = store.discover([f"http://a.org/{len(store.pages())}"], START + born * DAY)
            at = np.arange(born, 60.0) + 0.25
            changed = rng.random(len(at)) < np.where((at - born < 4) & (born > 0), 0.7, 0.01)
            verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
            store.record(Visits.of(np.repeat(page, len(at)), START + at * DAY, verdict=verdict))
    newest = []
    for days in (61, 63, 66, 80, 120):
        at = datetime.fromtimestamp(START + days * DAY, UTC).isoformat()
        rows = json.loads(run("plan", "-w", workspace, "--json", "--at", at, "--limit", "100").stdout)["next"]
        newest.append(next(row["p_changed"] for row in rows if row["url"].endswith("/58")))
    assert newest == sorted(newest)
    assert newest[0] < newest[-1] < 1
    assert "P(changed)" in run("plan", "-w", workspace).stdout


@pytest.mark.parametrize("policy", ["valued", "uniform"])
def test_a_page_that_a_proven_sitemap_announces_has_probably_changed(run, workspace, policy):
    with open_store(workspace / "recrawl.db") as store:
        pages = store.discover([f"http://a.org/{n}" for n in range(30)], START)
        day, page = np.tile(np.arange(40.0), 30), np.repeat(pages, 40)
        changed = (day + page) % 8 == 0
        verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
        store.record(Visits.of(page, START + day * DAY, verdict=verdict))
        said = START + np.append(day[changed] - 0.5, 39.5) * DAY
        told = np.append(page[changed], pages[7])
        store.add_claims(
            ClaimColumns(
                told, said, ["http://a.org/sitemap.xml"] * len(told), said, np.zeros(len(told), np.int64), said * 0 - 1
            )
        )
    chances = []
    for moment in (39.4, 39.6):
        at = datetime.fromtimestamp(START + moment * DAY, UTC).isoformat()
        asked = ("--at", at, "--limit", "100", "--set", f"schedule.policy={policy}")
        rows = json.loads(run("plan", "-w", workspace, "--json", *asked).stdout)["next"]
        chances.append({row["url"]: row["p_changed"] for row in rows})
    before, after = (one.pop("http://a.org/7") for one in chances)
    assert after > before + 0.3
    assert max(chances[1].values()) < after


def test_more_budget_buys_more_and_lowers_the_price(plan):
    found = plan("--set", "schedule.budget=12")
    less, now, more = (found["budgets"][name] for name in ("less", "now", "more"))
    assert less["freshness"] < now["freshness"] < more["freshness"]
    assert less["found"] < now["found"] < more["found"] < more["happening"]
    assert less["price"] > now["price"] > more["price"]
    assert now["price"] == pytest.approx(found["price"], rel=0.05)
    assert now["spending"] * DAY == pytest.approx(12, rel=1e-2)


def test_a_host_is_planned_alone_but_priced_with_all(plan):
    assert {row["host"] for row in plan("--host", "hot.org")["next"]} == {"hot.org"}
    assert plan("--host", "hot.org")["price"] == plan()["price"]


def test_what_was_not_known_yet_does_not_count(run, known):
    early = json.loads(run("plan", "-w", known, "--json", "--at", "2023-11-20").stdout)
    assert max(row["last_observed"] or 0 for row in early["next"]) <= early["now"] == 1_700_438_400.0


def test_requests_that_cannot_be_met_are_named_with_the_reason(run, known, plan):
    slow = ("--set", "politeness.min_delay=1h", "--set", "politeness.max_delay=20h", "--set", "schedule.budget=100")
    hosts = plan(*slow)["unmet"]
    assert "hot.org" in {one["what"] for one in hosts}
    assert all(one["asked"] > one["possible"] for one in hosts)
    assert "after each allows" in hosts[0]["reason"]
    starved = plan("--set", "schedule.budget=1", "--set", "schedule.max_interval=7d")["unmet"]
    assert starved[-1]["what"] == "the budget"
    assert starved[-1]["asked"] * DAY == pytest.approx(28 / 7)
    said = run("plan", "-w", known, *AT_END, *slow).stdout
    assert "Cannot be met: hot.org: its pages need" in said
    assert plan()["unmet"] == []


def test_a_host_that_asked_us_to_wait_is_named(run, known, tmp_path):
    folder = shutil.copytree(known, tmp_path / "waiting")
    with open_store(folder / "recrawl.db") as store:
        hosts = store.hosts()
        store.set_host(hosts.id, ready_at=np.where([name == "hot.org" for name in hosts.name], END + 30 * DAY, 0.0))
    found = json.loads(run("plan", "-w", folder, "--json", *AT_END).stdout)["unmet"]
    assert [(one["what"], one["pages"]) for one in found] == [("hot.org", HOT)]
    assert "no request is allowed before 2024-02-12 22:13; by then 6 pages will be due" in found[0]["reason"]
    earlier = json.loads(run("plan", "-w", folder, "--json", "--at", "2024-01-01").stdout)["unmet"]
    assert earlier == []


def test_a_slow_host_makes_the_budget_buy_less(run, known, plan):
    quick = ("--set", "schedule.budget=100")
    slow = (*quick, "--set", "politeness.min_delay=4h", "--set", "politeness.max_delay=20h")
    assert plan(*slow)["budgets"]["now"]["freshness"] < plan(*quick)["budgets"]["now"]["freshness"]
    said = run("plan", "capacity", "-w", known, *AT_END, "--freshness", "0.9", *slow).stdout
    assert "The pauses between requests allow only" in said


@pytest.mark.parametrize(
    ("objective", "unit"),
    [("archive", " h"), ("changes", " changes"), ("age", " d² of age"), ("links", " of links missed"),
     ("blur", " of changes missed")],
)  # fmt: skip
def test_the_price_has_a_unit(run, known, objective, unit):
    chosen = ("--set", f"schedule.objective={objective}", "--set", "schedule.budget=12")
    said = run("plan", "-w", known, *AT_END, "--limit", "1", *chosen).stdout
    priced = next(line for line in said.splitlines() if "as it is" in line)
    assert priced.rstrip().endswith(unit)


def test_the_printed_plan(run, known):
    said = run("plan", "-w", known, *AT_END, "--limit", "3", "--set", "schedule.budget=12").stdout
    assert "3 of 28 shown; --limit shows more." in said
    assert "pages are late as of 2024-01-13 22:13" in said
    assert "10% more" in said
    assert "Due times come from a fit as of 2024-01-13 22:13; recrawl explain shows" in said
    assert "never seen" in said


def test_a_policy_without_a_price(plan):
    found = plan("--set", "schedule.policy=uniform", "--set", "schedule.budget=14")
    assert found["price"] is None
    assert {row["why"] for row in found["next"]} <= {"its turn", "never seen", "retry after a failure"}
    assert found["budgets"]["more"]["freshness"] > found["budgets"]["less"]["freshness"]


# -- slots --------------------------------------------------------------------------------------------------


def test_slots_end_within_the_hour_and_what_does_not_fit_waits(plan):
    found = plan("slots", "48", "--set", "schedule.budget=1000", "--set", "politeness.min_delay=10m",
                 "--set", "politeness.max_delay=10m")  # fmt: skip
    slots = found["slots"]
    assert [slot["start"] for slot in slots] == [END + HOUR * n for n in range(48)]
    assert all(slot["high"] <= HOUR for slot in slots)
    assert all(slot["pages"] <= 12 for slot in slots)
    assert sum(slot["moved"] for slot in slots) > 0


def test_pages_come_again_within_many_slots(plan):
    def visits(*more):
        return sum(slot["pages"] for slot in plan("slots", "240", "--set", "schedule.budget=30", *more)["slots"])

    assert visits() == pytest.approx(10 * 30, rel=0.25)
    assert visits("--host", "hot.org") > 2 * HOT
    assert visits("--set", "schedule.policy=uniform") == pytest.approx(10 * 30, rel=0.25)


def test_slots_name_their_urls_and_write_them_for_other_crawlers(plan, run, known, tmp_path):
    found = plan("slots", "6", "--set", "schedule.budget=1000", "--seeds", tmp_path / "slots")
    assert [len(slot["urls"]) for slot in found["slots"]] == [slot["pages"] for slot in found["slots"]]
    assert len(found["unplaced_urls"]) == found["unplaced"]
    first = found["slots"][0]
    assert "http://cold.org/unseen" in first["urls"]
    files = sorted((tmp_path / "slots").iterdir())
    assert len(files) == 6
    assert files[0].name == "slot-20240113T221320Z.txt"
    assert [file.read_text().split() for file in files] == [slot["urls"] for slot in found["slots"]]
    said = run("plan", "slots", "2", "-w", known, *AT_END, "--seeds", tmp_path / "b", "--dialect", "browsertrix").stdout
    assert f"Wrote 2 seed files to {tmp_path / 'b'}." in said
    assert "scopeType: page" in min((tmp_path / "b").iterdir()).read_text()
    (tmp_path / "file").touch()
    assert "cannot be made" in refused(run, known, "slots", "2", "--seeds", tmp_path / "file" / "x")


def test_printed_slots(run, known):
    said = run("plan", "slots", "2", "-w", known, *AT_END).stdout
    assert "2024-01-13 22:13" in said
    assert "moved here" in said


# -- crawl time ---------------------------------------------------------------------------------------------


def test_crawl_time_of_all_pages_is_bounded_by_the_slow_host(plan):
    found = plan("crawl-time", "all")
    assert (found["urls"], found["hosts"], found["longest_host"]) == (HOT + COLD + 2, 2, "cold.org")
    assert found["low"] <= found["seconds"] <= found["high"]
    assert found["seconds"] >= max(found["longest_host_seconds"], found["work_seconds"]) * (1 - 1e-9)
    assert found["seconds"] == pytest.approx((COLD + 1) * 60 + (COLD + 2) * 1.13, rel=0.1)
    assert found["heuristic_printed"] < found["heuristic_corrected"]
    alone = plan("crawl-time", "all", "--host", "hot.org")
    assert alone["urls"] == HOT
    assert alone["seconds"] < found["seconds"]


def test_crawl_time_of_a_list(run, known, plan, tmp_path):
    seeds = tmp_path / "urls.txt"
    seeds.write_text("http://hot.org/a\nhttp://hot.org/b\nhttp://new.org/\n", encoding="utf-8")
    found = plan("crawl-time", seeds, "--concurrency", "1")
    assert (found["urls"], found["hosts"], found["concurrency"]) == (3, 2, 1)
    said = run("plan", "crawl-time", seeds, "-w", known, *AT_END).stdout
    assert "3 on 2 hosts, 1 of them new" in said
    said = run("plan", "crawl-time", "all", "-w", known, *AT_END, "--host", "hot.org", "--concurrency", "1").stdout
    assert "with 1 request at once" in said
    assert "about 1: beyond that the longest host is the bottleneck" in said
    assert "No URL of this list is on the host 'cold.org'" in refused(
        run, known, "crawl-time", seeds, "--host", "cold.org"
    )
    assert "There is no host 'hat.org'" in refused(run, known, "crawl-time", "all", "--host", "hat.org")
    seeds.write_text("# nothing\n", encoding="utf-8")
    assert "There is no URL to crawl" in refused(run, known, "crawl-time", seeds)
    assert "cannot be read" in refused(run, known, "crawl-time", tmp_path / "missing.txt")


# -- capacity -----------------------------------------------------------------------------------------------


def test_capacity_answers_both_ways(plan):
    budget = ("--set", "schedule.budget=12")
    found = plan("capacity", "--freshness", "0.9", *budget)
    reach = found["goal"]["reached"]
    assert reach["pages"] == pytest.approx(reach["visits"] / reach["spending"] * 28)
    again = plan("capacity", "--pages", str(round(reach["pages"])), *budget)
    assert again["kept"]["freshness"] == pytest.approx(0.9, abs=0.02)
    recall = plan("capacity", "--recall", "0.5", *budget)["goal"]
    assert (recall["measure"], recall["share"]) == ("recall", 0.5)


def test_capacity_counts_changes_as_the_plan_does(plan):
    budget = ("--set", "schedule.budget=12")
    next_ones, able = plan(*budget)["budgets"]["now"], plan("capacity", *budget)["kept"]
    for one in ("freshness", "found", "happening", "recall", "price"):
        assert able[one] == pytest.approx(next_ones[one]), one


def test_capacity_in_words(run, known):
    said = run("plan", "capacity", "-w", known, *AT_END, "--freshness", "0.9", "--set", "schedule.budget=12").stdout
    assert "90.0% of the pages current takes" in said
    assert re.search(r"downloads allow +[\d.]{1,3} million visits a day: 64 requests at once, [\d.]+ s a down", said)
    assert "processors allow          not known: too few visits were measured" in said
    assert "How many machines that takes is not known before visits were measured." in said
    few = run("plan", "capacity", "-w", known, *AT_END, "--pages", "1000000").stdout
    assert "One visit to each page in 180 d alone takes 5,555.6 visits a day: more than the budget." in few
    never = run("plan", "capacity", "-w", known, *AT_END, "--freshness", "1.0").stdout
    assert "cannot be reached: schedule.min_interval" in never


@pytest.fixture(scope="module")
def measured(known, tmp_path_factory):
    """The same workspace, where a worker ended that needed a second of the processor for each visit."""
    folder = shutil.copytree(known, tmp_path_factory.mktemp("measured") / "ws")
    with open_store(folder / "recrawl.db") as store:
        keep_costs(store, RegisteredWorker("w", END, END - DAY, visits=1_000, cpu=700.0, parse=300.0))
    return folder


def test_a_machine_does_what_its_processors_can_compute(run, measured, known, plan):
    found = json.loads(run("plan", "capacity", "-w", measured, *AT_END, "--json").stdout)
    assert (found["cpu_seconds_per_visit"], found["parse_seconds_per_visit"], found["visits_measured"]) == (
        1,
        0.3,
        1000,
    )
    assert found["machine_visits_per_day"] == pytest.approx(found["processors"] * DAY)
    assert found["machine_visits_per_day"] < found["download_visits_per_day"]
    unmeasured = plan("capacity")
    assert unmeasured["machine_visits_per_day"] is unmeasured["goal"]["machines"] is None
    assert unmeasured["download_visits_per_day"] == found["download_visits_per_day"]
    said = run("plan", "capacity", "-w", measured, *AT_END, "--set", "schedule.budget=10/s").stdout
    assert "1 s of them a visit (0.3 s to parse), measured on 1,000 visits; fewer than the budget" in " ".join(
        said.split()
    )


def test_costs_of_workers_that_ended_are_kept_for_a_while(workspace):
    with open_store(workspace / "recrawl.db") as store:
        for number in range(12):
            keep_costs(
                store, RegisteredWorker(f"w{number}", float(number), 0.0, visits=30, cpu=float(number), parse=0.0)
            )
            known = visit_costs(store.controls())
            assert (known is None) == (number < 7)  # the first one did nothing that took time
        assert known.visits == 8 * 30
        assert known.cpu == pytest.approx(sum(range(4, 12)) / 240)


def test_machines_are_counted_by_what_they_can_do_and_not_by_the_budget(run, measured):
    known = measured
    asked = ("capacity", "--freshness", "0.9", "--pages", "1000000")

    def plan(*arguments):
        return json.loads(run("plan", *arguments, "-w", measured, "--json", *AT_END).stdout)

    poor, rich = (plan(*asked, "--set", f"schedule.budget={budget}")["goal"] for budget in (12, 120))
    assert poor["machines"] == rich["machines"]
    assert poor["reached"]["needed"] == pytest.approx(10 * rich["reached"]["needed"])
    alone = plan(*asked, "--concurrency", "1")["goal"]["machines"]["needed"]
    said = run("plan", *asked, "-w", known, *AT_END, "--concurrency", "1").stdout
    assert f"1,000,000 pages need {math.ceil(alone)} machines like this one." in said
    slow = ("--set", "crawl.concurrency=1", "--set", "schedule.budget=1000000")
    busy = run("plan", "capacity", "-w", known, *AT_END, *slow).stdout
    assert "fewer than the budget, so only these are made" in busy


def test_pages_that_nobody_has_seen_can_be_planned_for(run, workspace):
    run("add", "-w", workspace, "http://a.org/", "http://b.org/")
    found = json.loads(run("plan", "-w", workspace, "--json").stdout)
    assert [row["why"] for row in found["next"]] == ["never seen"] * 2
    assert all(row["worth"] is None and row["p_changed"] is None for row in found["next"])
    assert json.loads(run("plan", "slots", "2", "-w", workspace, "--json").stdout)["slots"][0]["pages"] == 2
    assert json.loads(run("plan", "crawl-time", "all", "-w", workspace, "--json").stdout)["seconds"] > 0
    found = json.loads(run("plan", "capacity", "-w", workspace, "--json").stdout)
    assert found["kept"]["freshness"] is found["goal"]["reached"] is None  # as plan has it
    assert "no page was observed twice" in run("plan", "capacity", "-w", workspace, "--freshness", "0.9").stdout
    assert "never seen" in run("plan", "-w", workspace).stdout


# -- refused ------------------------------------------------------------------------------------------------


def test_questions_that_make_no_sense(run, known, workspace):
    assert "--freshness and --recall exclude each other" in refused(
        run, known, "capacity", "--freshness", "0.9", "--recall", "0.5"
    )
    assert "There is no host 'hat.org'" in refused(run, known, "--host", "hat.org")
    assert "There is no host 'hat.org'" in refused(run, known, "slots", "2", "--host", "hat.org")
    assert "has no effect" in refused(run, known, "capacity", "--set", "schedule.budget=0")
    assert "is not a time" in run("plan", "-w", known, "--at", "someday").stderr
    assert "There is no page to plan for" in run("plan", "-w", workspace).stderr
