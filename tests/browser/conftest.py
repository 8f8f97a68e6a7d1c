"""A real Chromium before a workspace that a real crawl of a test web filled.

Playwright's plain interface keeps an event loop alive in the thread it was started in, and other tests run loops of
their own in the main thread. So the browser lives in a thread of its own, and all tests of this folder run there;
fixtures run in the main thread, as everywhere.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import uvicorn

from recrawl.app.workspace.workspace import Workspace, make_workspace, open_workspace
from recrawl.app.workspace.workspace_wiring import crawl_settings_of, host_limits_of, policy_of, politeness_of
from recrawl.cli.main import main
from recrawl.crawl.clock import RealClock
from recrawl.simulate.sites import SiteGrowth, lognormal_rates, synthetic_web, tree_site
from recrawl.time import DAY, HOUR, MINUTE, VirtualClock
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import make_app, wired
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial
from recrawl_testweb.virtual_web_server import VirtualWebServer

HERE = Path(__file__).parent
PATIENCE = 120_000.0
"""Milliseconds for anything to appear: a busy machine takes its time."""
LOOK_EVERY = 50.0
"""Milliseconds."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NAMED_BY = "RECRAWL_CHROMIUM"
KEPT_IN = "RECRAWL_ARTEFACTS"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

_STAGE = ThreadPoolExecutor(1, thread_name_prefix="browser")
"""The one thread that ever talks to the browser."""


def on_stage(call: Callable, *arguments, **named):
    """What ``call`` returns, called in the thread of the browser."""
    return _STAGE.submit(call, *arguments, **named).result()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    on_stage(pyfuncitem.obj, **wanted)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Playwright, called in another thread than its own, fails and leaves its loop there as the one that runs.

    A fixture that does so by mistake fails its own test; no later test of this worker may fail with it.
    """
    try:
        return (yield)
    finally:
        asyncio._set_running_loop(None)


def pytest_collection_modifyitems(items):
    """To obtain a browser and to fill a workspace may take long, and is nobody's test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(300, func_only=True))


# -- the browser -------------------------------------------------------------------------------


def _environment(name: str) -> str | None:
    return os.environ.get(name)  # noqa: TID251 - how a run is told where things are


def find_chromium() -> str | None:
    """A Chromium of this machine: the one that is named, one in PATH, or one that Playwright once downloaded."""
    if named := _environment(NAMED_BY):
        if shutil.which(named) is None:
            pytest.fail(f"{NAMED_BY} names {named}, which cannot be started. Name the program file of a Chromium.")
        return named
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return shutil.which(playwright.chromium.executable_path)


def obtain_chromium() -> str:
    """Install Debian's package if we may, else let Playwright download one; returns what went wrong, if anything."""
    download = [sys.executable, "-m", "playwright", "install"]
    commands = [[*download, "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        get = "apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium"
        commands = [["sh", "-c", get], [*download, "--with-deps", "chromium"]]
    wrong = []
    for command in commands:
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            wrong.append(f"{command[-1]}: not done in 15 minutes")
            continue
        if done.returncode == 0 and on_stage(find_chromium):
            return ""
        wrong.append(f"{command[-1]}: {done.stderr.strip()[-300:] or 'gave none'}")
    return "; ".join(wrong)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program file. It is obtained if there is none; where that fails, CI fails too, and people go on without."""
    found = on_stage(find_chromium)
    wrong = "" if found else obtain_chromium()
    found = found or on_stage(find_chromium)
    if found:
        return found
    sentence = f"There is no Chromium for the browser tests, and none could be had ({wrong}). Name one in {NAMED_BY}."
    if _environment("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


@pytest.fixture(scope="session")
def in_browser_thread() -> Callable:
    """``in_browser_thread(call, …)``: how a fixture uses a page, since fixtures run in the main thread."""
    return on_stage


@pytest.fixture(scope="session")
def browser(chromium):
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    def start():
        playwright = sync_playwright().start()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        # Software rendering: a machine without a screen draws WebGL all the same. Pages themselves are painted without
        # the emulated graphics processor, which Debian's package would ask for: it takes twice the processor time.
        arguments += ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        arguments += ["--disable-gpu-rasterization", "--disable-gpu-compositing"]
        return playwright, playwright.chromium.launch(executable_path=chromium, args=arguments)

    playwright, launched = on_stage(start)
    yield launched
    on_stage(launched.close)
    on_stage(playwright.stop)


@dataclass
class Witness:
    """What went on in a page that should not have."""

    complaints: list[str] = field(default_factory=list)
    """Console errors, uncaught exceptions, answers that are errors, dialogs."""
    asked: list[str] = field(default_factory=list)
    """Every URL asked for, but those that carry their content with them."""
    excused: list[str] = field(default_factory=list)
    """Words of complaints that a test expects; they may come late."""

    def left(self) -> list[str]:
        """Complaints that nobody expected."""
        return [one for one in self.complaints if not any(word in one for word in self.excused)]

    def watch(self, page) -> None:
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self._note(request.url))
        page.on(
            "response", lambda answer: answer.status >= 500 and self.complaints.append(f"{answer.status} {answer.url}")
        )

    def _hear(self, said) -> None:
        # Browsers ask every server for an icon, sooner or later; an archive need not have one.
        if said.type == "error" and not said.location["url"].endswith("/favicon.ico"):
            self.complaints.append(f"console: {said.text} ({said.location['url']})")

    def _refuse(self, dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, url: str) -> None:
        if urlsplit(url).scheme not in {"data", "blob", "about"}:
            self.asked.append(url)

    def origins(self) -> set[str]:
        return {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, self.asked)}


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def open_page(browser, witness):
    """``open_page(phone=…, dark=…)``: a new window. In the end nobody may have complained in any of them."""
    contexts = []

    def open_new(*, phone: bool = False, dark: bool = False, **options):
        context = browser.new_context(
            viewport=PHONE if phone else DESK,
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
            **options,
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        witness.watch(page)
        return page

    yield open_new
    for context in contexts:
        on_stage(context.close)
    assert witness.left() == []


@pytest.fixture
def page(open_page):
    """A window on a desk, by day."""
    return on_stage(open_page)


@pytest.fixture(scope="session")
def until() -> Callable[..., None]:
    """``until(page, expression)``: look again and again until a JavaScript expression is true.

    Playwright's own way to wait for one evaluates text in the page, which the dashboard allows nobody.
    """

    def wait(page, expression: str) -> None:
        for _ in range(int(PATIENCE / LOOK_EVERY)):
            if page.evaluate(expression):
                return
            page.wait_for_timeout(LOOK_EVERY)
        pytest.fail(f"never true: {expression}")

    return wait


@pytest.fixture(scope="session")
def keep(tmp_path_factory) -> Callable[..., Path]:
    """``keep(page, name)``: a screenshot among the artefacts of this run (RECRAWL_ARTEFACTS names their folder)."""
    named = _environment(KEPT_IN)
    folder = Path(named) if named else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)

    def keep_shot(page, name: str, **options) -> Path:
        file = folder / f"{name}.png"
        page.screenshot(path=file, animations="disabled", **options)
        assert file.stat().st_size > 5_000
        return file

    return keep_shot


# -- the workspace -----------------------------------------------------------------------------

SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.0/8 ::1",
    "politeness.factor": 0.0,
    "politeness.ip_delay": 0.0,
    "schedule.budget": 60.0,
}
SITE_PAGES = 25
MARKER = "__acted"
"""Set in a window by archived content that got to act."""
ATTACK = f"<img src=x onerror=window.{MARKER}=1><script>window.{MARKER}=1;alert(1)</script>"
QUOTED = f"\"'><svg onload=window.{MARKER}=1>{{{{7*7}}}}</script><script>window.{MARKER}=1</script>"


class Ticking(VirtualClock):
    """Each look at this clock takes a minute: what a site does follows from the requests, not from the machine."""

    def now(self) -> float:
        self.advance_to(super().now() + MINUTE)
        return super().now()


class Hostile(BaseHTTPRequestHandler):
    """A site that wants to act wherever its pages are shown: by titles, addresses, headers and links."""

    def do_GET(self):
        found = self.path != "/robots.txt"
        evil = quote(f"/a'{ATTACK}?q=\"'{ATTACK}#{ATTACK}", safe="/'?=#()")
        links = f'<a href="/quote\'onload=\'window.{MARKER}=1\'.html">{ATTACK}</a><a href="{evil}">x</a>'
        body = f"<title>{QUOTED}</title><h1>{QUOTED}</h1>{links}<script>window.{MARKER}=1</script>{ATTACK}".encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", f'text/html; charset=utf-8; x="{ATTACK}"')
        self.send_header("Content-Length", str(len(body)))
        for name in ("ETag", "X-Title", "Content-Location", "Content-Language"):
            self.send_header(name, f'"{ATTACK}"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):  # noqa: A002 - its name in the library
        pass


@pytest.fixture(scope="session")
def hostile_site():
    """Where the hostile site begins."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://hostile.localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def living_site():
    """Where a site begins that changes a little from request to request."""
    now, rng = RealClock().now(), np.random.default_rng(5)
    rate = lognormal_rates(SITE_PAGES, median=1 / (6 * HOUR), sigma=2.0, rng=rng)
    web = tree_site(
        "site", rate, start=now - 3 * DAY, end=now + 3 * DAY, rng=rng, outdegree=4, growth=SiteGrowth(vanishing=0.2)
    )
    with VirtualWebServer(
        replace(web, hosts=("site.localhost",)), Ticking(now), fault_profile=FaultProfile.none()
    ) as living:
        yield living.seeds()[0]


def run_verb(*arguments: object) -> None:
    """Run a verb in this process, which saves the seconds that importing takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["recrawl", *map(str, arguments)])
        for name in [name for name in os.environ if name.startswith("RECRAWL_")]:  # noqa: TID251 - cleaned
            patch.delenv(name)
        with pytest.raises(SystemExit) as done:
            main()
    assert not done.value.code


@pytest.fixture(scope="session")
def recrawl() -> Callable[..., None]:
    """``recrawl("verb", …)``: run a verb."""
    return run_verb


def crawled_workspace(folder: Path) -> Workspace:
    """Some days of a crawl of a test web."""
    place = make_workspace(folder, SETTINGS)
    said, now = place.configuration.settings, RealClock().now()
    web = synthetic_web(pages=30, start=now - 5 * DAY, days=4.0, seed=3, hot=0.6)
    settings = TrialSettings(crawl_settings_of(said), fault_profile=FaultProfile.mild(), seed=3)
    with place.open_store() as store:
        policy = policy_of(
            said.schedule, store.urls, host_limits_of(store, lambda: politeness_of(said.politeness)), None
        )
        asyncio.run(run_trial(web, policy, store=store, folder=place.folder, settings=settings))
    return place


@pytest.fixture(scope="session")
def crawled(tmp_path_factory) -> Workspace:
    """The crawl alone, as it is made first of all."""
    return crawled_workspace(tmp_path_factory.mktemp("crawled") / "town-archive")


@pytest.fixture(scope="session")
def made_workspace(crawled, tmp_path_factory, living_site, hostile_site) -> Workspace:
    """The same with two captures of another site, and one of a hostile site."""
    folder = shutil.copytree(crawled.folder, tmp_path_factory.mktemp("browser") / "town-archive")
    place = open_workspace(folder, {})
    for site, strategy in ((living_site, "bfs-lifo"), (living_site, "sharc-selective-online"), (hostile_site, "bfs")):
        run_verb("capture", site, "-w", place.folder, "--strategy", strategy, "--delay", "5ms")
    return place


@pytest.fixture(scope="session")
def report(made_workspace, tmp_path_factory) -> Path:
    """The report on it, made as users make it."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    run_verb("report", "-w", made_workspace.folder, "-o", file)
    return file


@dataclass(frozen=True)
class Served:
    """A dashboard that runs, and the archived pages beside it. Addresses end with a slash."""

    place: Workspace
    dashboard: str
    archive: str
    replay: str
    token: str
    """What orders need; :attr:`entrance` shows it."""

    @property
    def entrance(self) -> str:
        """The address that was printed: whoever opens it may give orders."""
        return f"{self.dashboard}?token={self.token}"

    def at(self, path: str) -> str:
        return self.dashboard + path.lstrip("/")


@contextmanager
def dashboard_of(place: Workspace, *options: str) -> Iterator[Served]:
    """``recrawl serve`` as a process, from when it takes requests until it is told to end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
    command = [sys.executable, "-u", "-m", "recrawl", "serve", "-w", str(place.folder), "--port", "0", *options]
    with subprocess.Popen(command, env=inherited, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = {}
            for line in iter(process.stdout.readline, ""):
                if "Ctrl-C" in line:
                    break
                words = line.split()
                said[words[0]] = words[-1]
            assert process.poll() is None, "recrawl serve ended by itself"
            address, _, token = said["The"].partition("?token=")
            archive = said["Archived"].partition("?")[0]
            yield Served(place, address, archive, said.get("pywb", ""), token)
        finally:
            process.send_signal(signal.SIGINT)
            said_last = process.stdout.read()
    assert process.returncode == 0
    assert "has stopped" in said_last


@pytest.fixture(scope="session")
def dashboard() -> Callable[..., AbstractContextManager[Served]]:
    """``with dashboard(workspace, *options) as running``: one more."""
    return dashboard_of


@pytest.fixture(scope="session")
def served(made_workspace):
    """The dashboard for tests that only read."""
    with dashboard_of(made_workspace) as running:
        yield running


WRITE_TOKEN = "a-token-for-orders-only"


@pytest.fixture(scope="session")
def write_token() -> str:
    """What orders to a clocked dashboard need, and what pages show their buttons for."""
    return WRITE_TOKEN


@contextmanager
def _clocked_dashboard(place: Workspace, clock: VirtualClock) -> Iterator[str]:
    wires = wired(place, AccessGuard(write_token=WRITE_TOKEN), clock.now)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(make_app(wires.site), lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    wires.close()


@pytest.fixture
def clocked_dashboard() -> Callable[[Workspace, VirtualClock], AbstractContextManager[str]]:
    """Serves the dashboard of a workspace in this process, by a clock to be put forward; gives its address."""
    return _clocked_dashboard


@pytest.fixture(scope="session")
def served_copy(made_workspace, tmp_path_factory):
    """A dashboard of a workspace of its own, for tests that change something."""
    folder = shutil.copytree(made_workspace.folder, tmp_path_factory.mktemp("copy") / "orders")
    with dashboard_of(open_workspace(folder, {})) as running:
        yield running
