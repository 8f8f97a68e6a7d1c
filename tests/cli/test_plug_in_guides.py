"""The examples of the how-to pages, installed as packages would be: they work, and pass their own conformance tests."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from recrawl import plugins
from recrawl.app.workspace.settings import FetchSettings, Settings
from recrawl.app.workspace.workspace import open_workspace
from recrawl.app.workspace.workspace_wiring import crawl_settings_of
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import live_crawl
from recrawl.detect.detector import DETECTORS
from recrawl.errors import ConfigError, StoreError
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture, Verdict, Visits
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.store.open import open_store
from recrawl.testing.fetcher_conformance import loopback_server
from recrawl.time import DAY, VirtualClock
from recrawl.web.dashboard.capture_views import CaptureRequest
from recrawl.web.dashboard.child_processes import CaptureProcesses

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
GUIDES = {
    "policy": "add-a-policy.md",
    "strategy": "add-a-strategy.md",
    "estimator": "add-an-estimator.md",
    "detector": "add-a-detector.md",
    "fetcher": "add-a-fetcher.md",
    "access method": "add-an-access-method.md",
    "store": "add-a-store.md",
}
START = 1.7e9


def blocks(guide, language):
    text = (HOW_TO / guide).read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def install(folder, name, code, group, entry):
    """Write a module and the metadata of its package, as pip does."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """``installed(kind)`` installs the example of a guide, and returns the names by which it can be called."""
    new = []

    def install_guide(kind):
        [toml] = blocks(GUIDES[kind], "toml")
        header, entry = toml.strip().splitlines()
        short, target = re.fullmatch(r'([\w-]+) = "([\w.:]+)"', entry).groups()
        module = target.partition(":")[0]
        group = re.search(r'"(.*)"', header)[1]
        assert group == plugins.GROUPS[kind]
        folder = tmp_path / "site-packages"
        install(folder, module, blocks(GUIDES[kind], "python")[0], group, f"{short} = {target}")
        new.append(module)
        monkeypatch.syspath_prepend(str(folder))
        return short, target

    yield install_guide
    for module in new:
        sys.modules.pop(module, None)


@pytest.fixture
def visited(workspace):
    """A workspace with 20 pages, each seen every second day; half of them change every time."""
    with open_store(workspace / "recrawl.db") as store:
        page = store.discover([f"http://h{n % 3}.example/{n}" for n in range(20)], START)
        for turn in range(16):
            verdict = np.where(np.arange(20) % 2, Verdict.CHANGED, Verdict.UNCHANGED) if turn else Verdict.UNKNOWN
            store.record(Visits.of(page, np.full(20, START + 2 * turn * DAY), verdict=verdict))
    return workspace


@pytest.mark.parametrize("kind", GUIDES)
def test_the_example_is_found_by_entry_point_and_by_reference(installed, kind):
    short, target = installed(kind)
    one = plugins.find(kind, short, {})
    assert plugins.find(kind, target, {}) is one
    assert short in [entry.name for entry in plugins.installed(kind)]


@pytest.mark.parametrize("kind", GUIDES)
def test_the_example_passes_the_conformance_suite_of_its_guide(installed, kind, request):
    installed(kind)
    module = ModuleType("test_of_the_guide")
    [code] = [block for block in blocks(GUIDES[kind], "python") if "Conformance" in block]
    exec(compile(code, GUIDES[kind], "exec"), module.__dict__)
    [suite] = [value for name, value in vars(module).items() if name.startswith("Test")]
    tests = [name for name in dir(suite) if name.startswith("test_")]
    assert len(tests) >= 5
    for name in tests:
        getattr(suite(), name)()


def test_a_policy_of_another_package_is_compared_and_planned_with(run, visited, installed):
    short, target = installed("policy")
    compared = run(
        "compare", "-w", visited, "--repeats", 1, "--jobs", 1, "--policy", short, "--policy", target, "--json"
    )
    assert compared.returncode == 0, compared.stderr
    assert {short, target} < {row["policy"] for row in json.loads(compared.stdout)["policies"]}
    planned = run("plan", "-w", visited, "--set", f"schedule.policy={target}")
    assert planned.returncode == 0, planned.stderr


def test_a_strategy_of_another_package_plans_a_capture(run, visited, installed):
    short, target = installed("strategy")
    for name in (short, target):
        planned = run("capture", "plan", "http://h0.example/", "-w", visited, "--strategy", name, "--json")
        assert planned.returncode == 0, planned.stderr
        facts = json.loads(planned.stdout)
        assert facts["strategy"] == name
        assert facts["requests"] == 2 * facts["pages"]


def test_an_order_can_be_read_where_its_strategy_is_no_longer_installed():
    gone = CaptureOrder(site="http://x.example/", strategy="no_such_package:Gone", revisit=True)
    assert CaptureOrder.from_json(gone.as_json()).revisits
    with pytest.raises(ConfigError, match="no_such_package"):
        gone.new_strategy(1.0)


def test_the_dashboard_imports_no_module_that_a_visitor_names(workspace):
    processes = CaptureProcesses(open_workspace(workspace, {}), lambda: START)
    with pytest.raises(ConfigError, match="no capture strategy"):
        processes.begin(CaptureRequest("http://x.example/", "os:abort", ""))


def test_an_estimator_of_another_package_estimates_rates(run, visited, installed):
    short, target = installed("estimator")
    for name in (short, target):
        estimated = run("rates", "-w", visited, "--estimator", name)
        assert estimated.returncode == 0, estimated.stderr
        assert f"Estimated by {short}" in estimated.stdout
    compared = run("rates", "compare", "-w", visited, "--estimator", target, "--json")
    assert compared.returncode == 0, compared.stderr
    assert short in [row["name"] for row in json.loads(compared.stdout)["estimators"]]


def verdicts(run, workspace, warc, detector):
    """What an import finds, with a detector."""
    imported = run("import", warc, "-w", workspace, "--set", f"detect.detector={detector}")
    assert imported.returncode == 0, imported.stderr
    with open_store(workspace / "recrawl.db") as store:
        return store.visits().verdict.tolist()


@pytest.mark.parametrize(
    ("detector", "expected"),
    [
        ("title-only", [Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED]),
        ("title_only:TitleOnly", [Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED]),
        ("parts", [Verdict.UNKNOWN, Verdict.CHANGED, Verdict.CHANGED]),
    ],
)
def test_a_detector_of_another_package_classifies_captures(run, workspace, installed, detector, expected):
    installed("detector")
    bodies = [
        f"<title>{title}</title><p>{text}" for title, text in (("A", "It rains."), ("A", "Snow."), ("B", "Snow."))
    ]
    with WarcWriter(workspace.parent / "warcs", VirtualClock(START), WarcInfo(host="crawler")) as writer:
        for day, body in enumerate(bodies):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
            request = b"GET / HTTP/1.1\r\n\r\n"
            writer.write(Capture("http://x.example/", START + day * DAY, 200, head, body.encode(), request))
    assert verdicts(run, workspace, workspace.parent / "warcs", detector) == expected


def test_a_detector_that_cannot_confirm_has_no_page_fetched_twice():
    assert ClassifierRules().confirms()
    assert not ClassifierRules(confirm_changes=False).confirms()
    assert not ClassifierRules(detector=DETECTORS["bytes"]).confirms()


def test_a_fetcher_of_another_package_fetches_pages_with_what_belongs_to_them(tmp_path, installed):
    """A visit yields two captures: the page, and its icon, which is archived beside it."""
    short, _ = installed("fetcher")
    settings = crawl_settings_of(Settings(fetch=FetchSettings(contact="me@example.org", fetcher=short)))
    clock = VirtualClock(START)

    async def crawl():
        async with loopback_server() as server:
            with open_store(str(tmp_path / "store.db"), create=True, durable=False) as store:
                page = store.discover([server.url()], START)
                worker = live_crawl(
                    "one",
                    FixedInterval(DAY),
                    clock=clock,
                    store=store,
                    folder=tmp_path,
                    scope=HostScope(frozenset({f"127.0.0.1:{server.port}"})),
                    settings=replace(settings, durable=False, reach=None, turns=None),
                )
                async with worker as driver:
                    await driver.run(START + 1.5 * DAY)
                return server, store.visits(pages=page), store.captures(page)

    server, visits, captures = asyncio.run(crawl())
    paths = [request.split(b" ")[1].decode() for request in server.requests]
    assert paths == ["/robots.txt", "/", "/favicon.ico", "/robots.txt", "/"]  # the second time it is not modified
    assert visits.verdict.tolist() == [Verdict.UNKNOWN, Verdict.UNCHANGED]
    assert len(captures) == 2
    archived = b"".join(gzip.decompress(file.read_bytes()) for file in (tmp_path / "warc").iterdir())
    assert archived.count(b"WARC-Type: response") == 4  # the page, its icon, the rules and the rules a day later
    assert f"WARC-Target-URI: {server.url('/favicon.ico')}".encode() in archived


def test_an_access_method_of_another_package_is_added_by_either_name(run, workspace, installed):
    for name in installed("access method"):
        added = run("add", "-w", workspace, "--access", name, "http://x.example/api", "--option", "max_pages=3")
        assert added.returncode == 0, added.stderr
        with open_store(workspace / "recrawl.db") as store:
            assert [method for method, _ in store.sources().values()] == [name]


def test_a_store_of_another_package_is_opened_by_its_scheme(tmp_path, run, installed):
    installed("store")
    made = run("init", "mine", "--store", f"fast://{tmp_path}/other.db")
    assert made.returncode == 0, made.stderr
    assert run("add", "-w", tmp_path / "mine", "http://x.example/").returncode == 0
    with open_store(tmp_path / "other.db") as store:
        assert store.find("http://x.example/") is not None
    with pytest.raises(StoreError, match="no store of kind 'slow'"):
        open_store("slow:///x.db")


def test_every_seam_has_a_guide():
    assert GUIDES.keys() == plugins.GROUPS.keys()


# -- names and errors --------------------------------------------------------------------------------


def test_an_unknown_name_lists_what_there_is_and_says_what_to_write():
    with pytest.raises(ConfigError, match="no policy 'nutsch'") as error:
        plugins.find("policy", "nutsch", {"nutch": 1, "uniform": 2})
    assert "Did you mean 'nutch'?" in error.value.remedy
    assert "nutch, uniform" in error.value.remedy
    assert "package.module:Name" in error.value.remedy


@pytest.mark.parametrize("reference", ["no_such_package.of_anybody:X", "json:no_such_name", "broken_plug_in:X"])
def test_what_cannot_be_imported_is_named_with_the_reason(tmp_path, monkeypatch, reference):
    (tmp_path / "broken_plug_in.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=reference) as error:
        plugins.find("policy", reference, {})
    assert error.value.remedy


def test_a_broken_package_harms_only_itself(tmp_path, monkeypatch, run, visited):
    install(tmp_path / "site-packages", "broken_policy", "1 / 0\n", "recrawl.policies", "broken = broken_policy:X")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    assert run("plan", "-w", visited, "--set", "schedule.policy=nutch").returncode == 0
    failed = run("plan", "-w", visited, "--set", "schedule.policy=broken")
    assert failed.returncode == 4
    assert "broken_policy" in failed.stderr
    assert "Update or uninstall" in failed.stderr


def test_two_packages_with_one_name_are_refused(tmp_path, monkeypatch):
    for package in ("one_policy", "another_policy"):
        install(tmp_path / "site-packages", package, "X = 1\n", "recrawl.policies", f"same = {package}:X")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    with pytest.raises(ConfigError, match="More than one package"):
        plugins.find("policy", "same", {})


@pytest.mark.parametrize(("make", "said"), [(dict, "lacks add, due"), (3, "cannot be called"), (lambda: 1 / 0, "made")])
def test_what_is_no_policy_is_refused(make, said):
    from recrawl.schedule.policy import Policy

    with pytest.raises(ConfigError, match=said):
        plugins.made("policy", "a:b", Policy, make)


def test_an_unknown_policy_in_the_settings_lists_all(run, visited):
    failed = run("plan", "-w", visited, "--set", "schedule.policy=nutsch")
    assert failed.returncode == 4
    assert "nutch" in failed.stderr
    assert "package.module:Name" in failed.stderr
