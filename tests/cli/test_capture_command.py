"""``recrawl capture`` as users call it, on a test web: captured, listed, shown, packed, and refused with reasons."""

import json
import os
import signal
import threading
import time
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from recrawl.cli.collect.capture_command import print_stated
from recrawl.crawl.clock import RealClock
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import DEFAULT_STRATEGY, PLANNED_STRATEGY
from recrawl.errors import ExitCode
from recrawl.model import Outcome, Verdict, Visits
from recrawl.simulate.sites import PageMixture, tree_site
from recrawl.store.open import open_store
from recrawl.store.store_values import FoundPages, SiteProgress, SiteStep
from recrawl.time import HOUR
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_web_server import VirtualWebServer

CONTACT = {"RECRAWL_FETCH_CONTACT": "me@example.org"}
QUICK = ("-w", "ws", "--delay", "5ms", "--set", "fetch.allow_networks=127.0.0.0/8 ::1", "--strategy", "bfs-lifo")


@pytest.fixture(scope="module")
def living():
    """A site of twelve pages that hardly change, at a name that every resolver takes for this machine."""
    clock, rng = RealClock(), np.random.default_rng(2)
    now = clock.now()
    rate = np.full(12, 1e-9)
    web = tree_site(
        "site", rate, start=now - HOUR, end=now + HOUR, rng=rng, outdegree=4, mixture=PageMixture(private=0.2)
    )
    with VirtualWebServer(
        replace(web, hosts=("site.localhost",)), clock, fault_profile=FaultProfile(crawl_delay=0.0)
    ) as served:
        yield served


@pytest.fixture
def home(living):
    return living.seeds()[0]


def test_a_site_is_captured_listed_shown_and_packed(run, workspace, home, tmp_path):
    done = run("capture", home, *QUICK, env=CONTACT)
    assert done.returncode == 0, done.stderr
    assert "12 pages found" in done.stdout
    assert "pages unchanged from visit to revisit, 0 changed" in done.stdout
    assert "robots.txt forbids" in done.stdout
    assert run("capture", "show", 1, "-w", "ws").stdout == done.stdout
    attempts = [line.split() for line in (workspace / "crawl.log").read_text(encoding="utf-8").splitlines()]
    assert [one[3] for one in attempts if one[4] == "P"] == [f"{home}robots.txt"]
    log = [one for one in attempts if one[4] not in {"P", "M"}]  # robots.txt and sitemaps are no pages
    # Now and then, by page and time, a server that said 304 is asked at once whether that is true.
    checks = sum(one[1] == "304" and one[3] == after[3] for one, after in pairwise(log))
    assert len(log) - checks == 24 - done.stdout.count("private")
    said = json.loads(run("capture", "show", 1, "--json", "-w", "ws").stdout)
    assert said["site"] == home
    assert said["terms"]["strategy"] == "bfs-lifo"
    coherence = said["quality"]["coherence"]
    assert coherence["coherent"] == said["quality"]["pages"] == 12 - said["refused"]["count"]
    assert said["quality"]["validTogether"]["allCoherentPages"]
    [listed] = json.loads(run("capture", "list", "--json", "-w", "ws").stdout)
    assert listed["statement"] == said
    table = run("capture", "list", "-w", "ws").stdout
    assert home in table
    assert "bfs-lifo" in table
    assert run("export", "ws.wacz", "-w", "ws").returncode == 0
    with zipfile.ZipFile(tmp_path / "ws.wacz") as package:
        assert json.loads(package.read("captures/capture-1.json")) == said
        resources = json.loads(package.read("datapackage.json"))["resources"]
    assert "captures/capture-1.json" in [resource["path"] for resource in resources]


def test_what_visits_and_sitemaps_teach_is_told_to_the_strategy(run, workspace, home):
    first = run("capture", home, *QUICK, "--strategy", "sharc-offline", "--from-sitemap", "--json", env=CONTACT)
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert said["quality"]["coherence"]["unknown"] == said["quality"]["pages"] > 8
    # The sitemap says of every page that it never changes; one that is not listed there is as its neighbours are.
    assert said["quality"]["blur"]["predicted"]["average"] < 1e-6
    second = run("capture", home, *QUICK, "--strategy", "sharc-revisits", "--json", env=CONTACT)
    assert second.returncode == 0, second.stderr
    quality = json.loads(second.stdout)["quality"]
    assert quality["pagesWithRate"] == quality["pages"]
    assert quality["coherence"]["coherent"] == quality["pages"]


def test_the_default_strategy_finds_all_pages_and_sees_them_again(run, workspace, home):
    done = run("capture", home, *QUICK[:-2], "--json", env=CONTACT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["terms"]["strategy"] == DEFAULT_STRATEGY
    assert said["quality"]["coherence"]["coherent"] == said["quality"]["pages"] == 12 - said["refused"]["count"]
    plan = json.loads(run("capture", "plan", home, *QUICK[:-2], "--json").stdout)
    assert (plan["strategy"], plan["hosts"], plan["pages"]) == (PLANNED_STRATEGY, 1, said["quality"]["pages"])
    again = run("capture", home, *QUICK[:-2], "--json", env=CONTACT)
    assert again.returncode == 0, again.stderr
    planned = json.loads(again.stdout)
    assert planned["terms"]["strategy"] == PLANNED_STRATEGY
    assert planned["quality"]["pages"] == said["quality"]["pages"]


def test_the_worst_case_of_pages_found_late_is_bounded(run, workspace, home):
    """SHARC Theorem 4.5: none misplaced is the best order, all misplaced the worst."""
    assert run("capture", home, *QUICK, "--no-revisit", env=CONTACT).returncode == 0
    once = ("--strategy", "sharc-offline", "--delay", "1s", "-w", "ws", "--json")
    plans = [json.loads(run("capture", "plan", home, *once, "--misplaced", n).stdout) for n in (0, 4, 8)]
    assert plans[0]["worstBlur"] == pytest.approx(plans[0]["expectedBlur"])
    assert plans[0]["worstBlur"] <= plans[1]["worstBlur"] <= plans[2]["worstBlur"] <= 2 * plans[0]["worstBlur"]
    wrong = run("capture", "plan", home, "-w", "ws", "--misplaced", 4)
    assert (wrong.returncode, "--no-revisit" in wrong.stderr) == (ExitCode.BAD_CONFIG, True)


@pytest.mark.parametrize("times", [("yesterday", "2030-01-01"), ("2030-01-02", "2030-01-01")])
def test_an_observation_interval_is_two_times_in_order(run, workspace, home, times):
    wrong = run("capture", home, *QUICK, "--observe", *times, env=CONTACT)
    assert (wrong.returncode, "--observe" in wrong.stderr) == (ExitCode.BAD_CONFIG, True)


def test_the_optimum_prints_what_no_plan_exceeds(run, workspace, home):
    wanted = (*QUICK, "--strategy", "sharc-optimal", "--from-sitemap")
    done = run("capture", home, *wanted, env=CONTACT)
    assert done.returncode == 0, done.stderr
    said = json.loads(run("capture", "show", 1, "--json", "-w", "ws").stdout)["plan"]
    assert 0.0 < said["expectedCoherence"] <= said["bound"] <= said["pages"]
    assert f"proven bound {said['bound']:.6g}, gap 0.000%." in done.stdout
    assert run("capture", "show", 1, "-w", "ws").stdout == done.stdout


def test_a_capture_of_a_strategy_that_went_another_way_is_shown_and_said_to_be(tmp_path, capsys):
    """Steps that breadth-first would not have made: the page found last comes first."""
    with open_store(tmp_path / "store.db", create=True) as store:
        pages = store.discover(["http://a.example/", "http://a.example/b"], 0.0)
        order = CaptureOrder(site="http://a.example/", strategy="bfs-lifo").as_json()
        none = FoundPages(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
        known = FoundPages(pages, np.full(2, -1), np.full(2, 1e-6), np.ones(2))
        number = store.begin_site_capture("http://a.example/", order, delay=1.0, now=0.0, known=known)
        for step, (page, revisit) in enumerate([(1, False), (0, False), (0, True), (1, True)]):
            visit = Visits.of(pages[[page]], [float(step)], verdict=Verdict.UNCHANGED)
            made = SiteStep(step, page, revisit, float(step), Outcome.FETCHED, Verdict.UNCHANGED)
            store.record(visit, site=SiteProgress(number, made, none, known=2))
        store.finish_site_capture(number, "{}", 9.0)
        print_stated(store, tmp_path, number, json_output=False)
    printed = capsys.readouterr()
    assert "2 pages unchanged" in printed.out
    assert "another version of recrawl" in printed.err


def test_one_page_is_one_page(run, workspace, home):
    done = run("capture", home, *QUICK, "--scope", "page", env=CONTACT)
    assert done.returncode == 0, done.stderr
    assert ": 1 page found." in done.stdout


def test_revisits_can_be_asked_for_and_left_out(run, workspace, home):
    def observations(*arguments):
        done = run("capture", home, *QUICK, "--max-pages", 4, "--json", "--restart", *arguments, env=CONTACT)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["quality"]["coherence"]["coherent"]

    assert observations("--strategy", "bfs", "--revisit") == 4
    assert observations("--strategy", "bfs-lifo", "--no-revisit") is None  # not known


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 4, "no site to capture"),
        (("ftp://example.org/",), 1, "not an http or https URL"),
        (("http://site.localhost/", "--strategy", "best"), 4, "There are: bfs"),
        (("http://site.localhost/", "--strategy", "sharc-optimum"), 4, "Did you mean 'sharc-optimal'"),
        (("http://site.localhost/", "--rates", "oracle"), 2, "sitemap-corrected"),
        (("http://site.localhost/", "--delay", "soon"), 4, "not a duration"),
        (("http://site.localhost/", "--include", "("), 4, "not a regular expression"),
        (("--resume",), 1, "no unfinished capture.\nSee all with: recrawl capture list -w ws\n"),
        (("show", "7"), 1, "no capture 7"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_remedy(run, workspace, arguments, code, words):
    done = run("capture", *arguments, "-w", "ws", env=CONTACT)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_only_near_names_are_suggested(run, workspace):
    done = run("capture", "http://site.localhost/", "--strategy", "nosuch", "-w", "ws", env=CONTACT)
    assert "Did you mean" not in done.stderr
    assert all(name in done.stderr.replace("\n", " ") for name in ("bfs-lifo", "sharc-optimal"))


def test_options_that_make_no_difference_are_said_to_make_none(run, workspace, home):
    unread = ("--expected-pages", 12, "--threshold", 0.5)
    done = run("capture", home, *QUICK, *unread, "--scope", "page", env=CONTACT)
    assert done.returncode == 0, done.stderr
    assert "--expected-pages has no effect: bfs-lifo" in done.stderr
    assert "--threshold has no effect" in done.stderr
    wanted = ("--strategy", "sharc-intervals-online", "--scope", "page", "--restart", "--rates", "equal", "--json")
    read = run("capture", home, *QUICK, *unread, *wanted, env=CONTACT)
    assert read.returncode == 0, read.stderr
    assert "no effect" not in read.stderr
    terms = json.loads(read.stdout)["terms"]
    assert (terms["expected"], terms["threshold"], terms["rates"]) == (12, 0.5, "equal")


def test_the_first_interrupt_is_graceful_and_the_same_command_goes_on(run, workspace, living, home):
    """The command runs in this process: the interrupt comes as soon as the server has answered some requests."""
    enough = living.answered + 5

    def interrupt():
        while living.answered < enough:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    slowly = ("--delay", "50ms", "--json")
    threading.Thread(target=interrupt, daemon=True).start()
    stopped = run("capture", home, *QUICK, *slowly, env=CONTACT)
    assert stopped.returncode == 11
    assert "--resume" in stopped.stderr
    assert "unfinished" in run("capture", "list", "-w", "ws").stdout
    other = run("capture", home, *QUICK, "--delay", "70ms", env=CONTACT)
    assert other.returncode == 4
    assert "not finished" in other.stderr
    done = run("capture", home, *QUICK, *slowly, env=CONTACT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["observations"] == 12 + said["quality"]["pages"]
    assert len(json.loads(run("capture", "list", "--json", "-w", "ws").stdout)) == 1


def test_nobody_is_asked_without_a_contact(run, workspace, living, home):
    before = living.answered
    done = run("capture", home, *QUICK)
    assert done.returncode == 4
    assert "fetch.contact" in done.stderr
    assert living.answered == before


def test_private_addresses_are_not_asked_unless_allowed(run, workspace, living, home):
    before = living.answered
    done = run("capture", home, *QUICK, "--set", "fetch.allow_networks=", env=CONTACT)
    assert done.returncode == 9
    assert "not public" in done.stderr
    assert living.answered == before


def test_a_site_that_is_not_there_is_a_failure(run, workspace, home):
    done = run("capture", f"{home}nowhere/", *QUICK, env=CONTACT)
    assert done.returncode == 9
    assert "Not found" in done.stdout


def test_of_pages_that_nobody_saw_again_nothing_is_known(run, workspace, home):
    done = run("capture", home, *QUICK, "--strategy", "sharc-offline", "--from-sitemap", "--json", env=CONTACT)
    coherence = json.loads(done.stdout)["quality"]["coherence"]
    assert coherence["unknown"] > 8
    assert [coherence[name] for name in ("coherent", "changed", "missing", "coherentWeight")] == [None] * 4
    (row,) = [line for line in run("capture", "list", "-w", "ws").stdout.splitlines() if "sharc-offline" in line]
    assert row.split()[-4:] == [str(coherence["unknown"]), "–", "–", "–"]
    assert "Coherence: not known" in run("capture", "show", "1", "-w", "ws").stdout
