"""The dashboard server of a workspace: every view as a page and as JSON, every action, and the assets."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from recrawl import __version__
from recrawl.app.status import masked_by_host
from recrawl.crawl.control.health import HealthMonitor
from recrawl.crawl.control.worker_registry import is_alive, registered_workers
from recrawl.detect.validator_trust import is_believed
from recrawl.errors import InputError, RecrawlError, StoreError
from recrawl.store.open import open_store
from recrawl.time import DAY, format_duration
from recrawl.web.dashboard import (
    capture_views,
    changes_view,
    child_processes,
    host_views,
    pages_view,
    settings_view,
    workspace_dashboard,
)
from recrawl.web.dashboard.access_control import (
    FORM_TOKEN,
    HEADER_TOKEN,
    HEALTH_PATHS,
    AccessGate,
    AccessGuard,
    cookies_of,
    headers_of,
)
from recrawl.web.dashboard.child_processes import CaptureProcesses, CompareProcess
from recrawl.web.dashboard.frontier_calls import FrontierCalls
from recrawl.web.dashboard.routes import (
    Action,
    CheckedParameters,
    JsonCall,
    RefusedError,
    View,
    document,
    fits,
    parse,
)
from recrawl.web.dashboard.settings_view import WorkspaceControls
from recrawl.web.dashboard.stale_cache import StaleCache, StorePool, WorkerPool
from recrawl.web.dashboard.workspace_dashboard import WorkspaceDashboard
from recrawl.web.html_templates import json_of, when

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute


_YEARS = 9_000 * 365 * DAY
_UNIT = 1000


def moment(seconds: float | None) -> str:
    """A time to the minute; total.

    >>> moment(0.0), moment(math.inf), moment(None)
    ('1970-01-01 00:00', 'never', '–')
    """
    if seconds is None or math.isnan(seconds):
        return "–"
    if not -_YEARS / 9 < seconds < _YEARS / 2:
        return "never" if seconds > 0 else "–"
    return when(seconds)


def from_now(seconds: float | None, now: float) -> str:
    """How far a time lies ahead or behind.

    >>> from_now(160.0, 100.0), from_now(0.0, 7200.0), from_now(math.inf, 0.0), from_now(100.2, 100.0)
    ('in 1 min', '2 h ago', 'never', 'now')
    """
    if seconds is None or not math.isfinite(seconds):
        return moment(seconds)
    if abs(seconds - now) < 1.0:
        return "now"
    return f"in {format_duration(seconds - now)}" if seconds > now else f"{format_duration(now - seconds)} ago"


def due_in(seconds: float | None, now: float) -> str:
    """When something is due, or for how long it has been.

    >>> due_in(160.0, 100.0), due_in(0.0, 7200.0), due_in(math.inf, 0.0)
    ('in 1 min', '2 h late', 'never')
    """
    if seconds is None or not math.isfinite(seconds) or seconds > now - 1.0:
        return from_now(seconds, now)
    return f"{format_duration(now - seconds)} late"


def size(count: float) -> str:
    """Bytes as people write them.

    >>> size(512), size(3_400_000)
    ('512 B', '3.4 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < _UNIT:
            return f"{count:.3g} {unit}"
        count /= _UNIT
    return f"{count:.3g} TB"


LARGEST_FORM = 64_000
"""Maximum size of the body of an action in bytes."""


@dataclass(frozen=True, slots=True)
class DashboardSite:
    """All that the server shows."""

    name: str
    """Of the workspace, for people."""
    views: Sequence[View]
    folder: str = "."
    """Where the workspace is, for commands that people paste."""
    actions: Sequence[Action] = ()
    calls: Sequence[JsonCall] = ()
    guard: AccessGuard = field(default_factory=AccessGuard)
    more: Sequence[BaseRoute] = ()
    """Routes of others, e.g. those of time travel. They come after our own."""
    clock: Callable[[], float] = lambda: math.nan
    """Now, seconds since the epoch."""
    health: Callable[[], tuple[int, Mapping[str, Any]]] = lambda: (200, {"status": "ok"})
    """Whether the workspace is well, its crawl included: a status of HTTP, and facts. Must not wait for anything."""
    readiness: Callable[[], tuple[int, Mapping[str, Any]]] = lambda: (200, {"status": "ok"})
    """The same of the server alone: whether it can do its work."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Places outside the dashboard that templates name: behind ``replay`` come 14 digits and a URL."""


def make_app(site: DashboardSite) -> Starlette:
    """The application, guarded. The document that describes it is at ``/openapi.json``."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Route

    from recrawl.web.html_templates import LinkedAssets, environment

    assets = LinkedAssets(prefix="/assets/")
    pages = PageResponses(site, environment(assets))
    described = json_of(document(site.views, site.actions, __version__, token=bool(site.guard.token), calls=site.calls))

    async def openapi(_request: Request) -> Response:
        return _json_response(described)

    def asset(request: Request) -> Response:
        from starlette.responses import Response

        found = assets.find(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        content, media_type = found
        return Response(content, media_type=media_type, headers={"cache-control": "max-age=31536000, immutable"})

    def check(ask: Callable[[], tuple[int, Mapping[str, Any]]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            headers = headers_of(request.scope)
            status, facts = ask()
            if not site.guard.may_look(headers, cookies_of(headers)):  # a check of a container shows no token
                facts = {"status": facts["status"]}
            return _json_response(json_of(facts), status)

        return answer

    routes: list[BaseRoute] = [
        Route("/openapi.json", openapi),
        Route("/assets/{name:path}", asset),
        Route(HEALTH_PATHS[0], check(site.health)),
        Route(HEALTH_PATHS[1], check(site.readiness)),
    ]
    for view in site.views:
        routes.append(Route(view.api, pages.twin(view), name=f"{view.api} as JSON"))
        if view.template:
            routes.append(Route(view.path, pages.page(view), name=view.path))
    routes += [Route(action.path, pages.done(action), methods=["POST"], name=action.path) for action in site.actions]
    routes += [Route(call.path, pages.called(call), methods=["POST"], name=call.path) for call in site.calls]
    return Starlette(
        routes=[*routes, *site.more],
        middleware=[Middleware(AccessGate, guard=site.guard)],
        exception_handlers={HTTPException: pages.failed},
    )


class PageResponses:
    """Makes answers of Starlette's kind of what views and actions say."""

    def __init__(self, site: DashboardSite, templates: Environment) -> None:
        self._site = site
        self._templates = templates
        templates.filters.update(moment=moment, from_now=from_now, due_in=due_in, size=size, pasted=shlex.quote)
        self._menu = [view for view in site.views if view.menu]

    def twin(self, view: View) -> Callable[[Request], Response]:
        """The endpoint of a view for programs."""

        def answer(request: Request) -> Response:
            try:
                told = view.answer(self._asked(view, request))
                return _json_response(told if isinstance(told, bytes) else json_of(told), media_type=view.media_type)
            except (RefusedError, RecrawlError) as error:
                return _json_refusal(_refusal(error))

        return answer

    def page(self, view: View) -> Callable[[Request], Response]:
        """The endpoint of a view for people."""

        def answer(request: Request) -> Response:
            try:
                asked = self._asked(view, request)
                return self._html(request, view.template, view, {"data": view.answer(asked), "asked": asked.values})
            except (RefusedError, RecrawlError) as error:
                return self._refuse(request, _refusal(error))

        return answer

    def done(self, action: Action) -> Callable[[Request], Any]:
        """The endpoint of an action: JSON for programs, a way back for people."""

        async def answer(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool
            from starlette.responses import RedirectResponse

            plain = "text/html" not in request.headers.get("accept", "")
            try:
                given = await _form(request)
                self._check(request, given.pop(FORM_TOKEN, ""))
                asked = CheckedParameters(parse(action.parameters, given), self._site.clock())
                done = await run_in_threadpool(action.do, asked)
            except (RefusedError, RecrawlError) as error:
                refusal = _refusal(error)
                return _json_refusal(refusal) if plain else self._refuse(request, refusal)
            if plain:
                return _json_response(json_of({"said": done.said, "back": done.back, **done.facts}))
            return RedirectResponse(done.back, status_code=303)

        return answer

    def called(self, call: JsonCall) -> Callable[[Request], Any]:
        """The endpoint of a call of programs."""

        async def answer(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            try:
                given = fits(call.request, await _json_object(request, call.largest))
                told = await run_in_threadpool(call.do, given, self._site.clock())
            except (RefusedError, RecrawlError) as error:
                return _json_refusal(_refusal(error))
            return _json_response(json_of(told))

        return answer

    async def failed(self, request: Request, error: Exception) -> Response:
        """What is said where there is nothing, or where a method means nothing."""
        from starlette.exceptions import HTTPException

        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        words = {404: "There is nothing at this address.", 405: "This address does not accept this kind of request."}
        refusal = RefusedError(words.get(status, "This cannot be done."), "See the start page.", status=status)
        plain = request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", "")
        response = _json_refusal(refusal) if plain else self._refuse(request, refusal)
        response.headers.update(headers)
        return response

    def _asked(self, view: View, request: Request) -> CheckedParameters:
        said = request.query_params.multi_items()
        given = dict(said)
        if len(given) < len(said):
            twice = next(name for name in given if sum(name == other for other, _ in said) > 1)
            raise RefusedError(f"{twice[:40]!r} is given more than once.", "Give it once.")
        given |= {name: str(value) for name, value in request.path_params.items()}
        base = f"{request.url.scheme}://{request.url.netloc}"
        return CheckedParameters(parse(view.parameters, given), self._site.clock(), base)

    def _check(self, request: Request, shown: str) -> None:
        headers = headers_of(request.scope)
        refusal = self._site.guard.why_not_act(headers, cookies_of(headers), shown or headers.get(HEADER_TOKEN, ""))
        if refusal is not None:
            raise RefusedError(refusal.why, refusal.remedy, status=refusal.status)

    def _html(
        self, request: Request, template: str, view: View | None, facts: Mapping[str, Any], status: int = 200
    ) -> Response:
        from starlette.responses import HTMLResponse

        session = request.scope.get("state", {}).get("session", "")
        headers = headers_of(request.scope)
        frame = {
            "may_act": self._site.guard.has_shown(headers, cookies_of(headers)),
            "workspace": self._site.name,
            "folder": shlex.quote(self._site.folder),
            "menu": self._menu,
            "view": view,
            "now": self._site.clock(),
            "csrf": self._site.guard.form_token(session),
            "links": {"replay": "", **self._site.links},
            "path": request.url.path,
            "address": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            "twin": _twin(request, view),
        }
        return HTMLResponse(self._templates.get_template(template).render(**frame, **facts), status_code=status)

    def _refuse(self, request: Request, refusal: RefusedError) -> Response:
        facts = {"why": refusal.why, "remedy": refusal.remedy, "status": refusal.status}
        return self._html(request, "dashboard/refused.html", None, facts, refusal.status)


def _twin(request: Request, view: View | None) -> str:
    """Where this page is JSON."""
    if view is None:
        return ""
    query = f"?{request.url.query}" if request.url.query else ""
    return view.api.format(**request.path_params) + query


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, or of a JSON object of texts and numbers."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await _body(request)
    if kind == "application/json":
        try:
            told = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RefusedError("The body is not JSON.", "Send an object.") from error
        if not isinstance(told, dict) or not all(isinstance(one, str | int | float) for one in told.values()):
            raise RefusedError("The body is not an object of strings and numbers.", "Send such an object.")
        return {str(name): _as_text(one) for name, one in told.items()}
    if kind not in {"application/x-www-form-urlencoded", ""}:
        raise RefusedError("The body is not a form.", "Send application/x-www-form-urlencoded, or JSON.", status=415)
    from urllib.parse import parse_qsl

    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200))
    except ValueError as error:
        raise RefusedError("The form has too many fields.") from error


async def _json_object(request: Request, largest: int) -> object:
    """The JSON that a request holds."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError("The body is not JSON.", "Send application/json.", status=415)
    try:
        told: object = json.loads(await _body(request, largest))
    except (ValueError, RecursionError) as error:
        raise RefusedError("The body is not JSON.", "Send an object.") from error
    return told


async def _body(request: Request, largest: int = LARGEST_FORM) -> bytes:
    """The body, up to a limit, whatever the request says of its length."""
    parts, size = [], 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size > largest:
            raise RefusedError("Send fewer.", status=413)
    return b"".join(parts)


def _as_text(value: str | float) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _refusal(error: RefusedError | RecrawlError) -> RefusedError:
    """Errors of others in our form: what a user got wrong, or a store that is away."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, StoreError):
        return RefusedError(error.what, error.remedy, status=503)
    status = 400 if isinstance(error, InputError) else 422
    return RefusedError(error.what, error.remedy, status=status)


def _json_response(text: bytes, status: int = 200, media_type: str = "application/json") -> Response:
    from starlette.responses import Response

    return Response(text, status_code=status, media_type=media_type)


def _json_refusal(refusal: RefusedError) -> Response:
    from starlette.responses import Response

    said = json_of({"error": refusal.why, "remedy": refusal.remedy})
    return Response(said, status_code=refusal.status, media_type="application/json")


if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.web.dashboard.access_control import AccessGuard
    from recrawl.web.dashboard.plan_survey import PageBeliefs
    from recrawl.web.dashboard.routes import Action, View

PATIENCE = 5.0
"""Seconds after which a question to the store is given up."""
GRACE = 5.0
"""Seconds for which, in the end, what is worked out behind the scenes is waited for."""
BEHIND_THE_SCENES = 3
"""Answers that are worked out at once."""
_OF_WORKERS = frozenset({"worker", "loop_lag_seconds"})
FRESH = {"work": 2.0, "hosts": 5.0, "counts": 15.0, "survey": 60.0}
"""Seconds for which cached results are fresh enough."""

FIRST_LOOKS = ("/", "/changes", "/hosts", "/pages", "/pages?sort=due", "/captures", "/policies", "/settings")
"""Pages that the server prefetches."""


@dataclass(frozen=True, slots=True)
class WiredDashboard:
    """A dashboard, and what to do when it is over."""

    site: DashboardSite
    stores: StorePool
    kept: tuple[StaleCache[Any], ...] = ()
    awaited: tuple[StaleCache[Any], ...] = ()
    """Those of them that would hold up the first views of pages while they are worked out in this process."""
    endings: tuple[Callable[[], object], ...] = ()
    beginnings: tuple[Callable[[], object], ...] = ()

    def begin(self, patience: float = PATIENCE) -> None:
        """Compute slow results in advance; wait a limited number of seconds for the required ones."""
        for begin in self.beginnings:
            begin()
        tasks = [one.begin() for one in (*self.awaited, *self.kept)]
        wait([task for task in tasks[: len(self.awaited)] if task is not None], timeout=patience)

    def close(self) -> None:
        """Let go of children and stores."""
        for end in self.endings:
            end()
        self.stores.close()


def wired(
    place: Workspace,
    guard: AccessGuard,
    clock: Callable[[], float],
    links: Mapping[str, str] | None = None,
    beliefs: PageBeliefs | None = None,
) -> WiredDashboard:
    """The dashboard of a workspace."""

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    stores = StorePool(open_one)
    lease_pool = WorkerPool(BEHIND_THE_SCENES)
    answers = WorkspaceDashboard(place, stores, clock, beliefs)
    keeping: list[StaleCache[Any]] = [answers.beliefs.kept]

    def kept(name: str, work: Callable[[], Any]) -> StaleCache[Any]:
        keeping.append(StaleCache(work, fresh=FRESH[name], clock=clock, lease_pool=lease_pool))
        return keeping[-1]

    def count_hosts() -> host_views.HostTable:
        with place.open_store() as store:
            known = store.hosts()
            return host_views.table_of(known, store.host_counts(clock()), is_believed, masked_by_host(store, known.id))

    survey = kept("survey", answers.survey).get
    known = workspace_dashboard.OverviewCaches(
        kept("counts", answers.counts).get, kept("work", answers.work).get, survey
    )
    views: list[View] = [
        *workspace_dashboard.views(known),
        *changes_view.changes_views(answers.changes, place.folder.resolve().name, answers.feed_id),
        *host_views.views(kept("hosts", count_hosts).get),
        *pages_view.list_views(stores, answers, survey),
        *pages_view.page_views(stores, answers, survey),
    ]
    captured = CaptureProcesses(place, clock)
    compared = CompareProcess(place, clock)
    told = WorkspaceControls(place, stores, clock)
    views += [
        *capture_views.captures_views(stores, captured, clock),
        *child_processes.policies_views(compared),
        *settings_view.settings_views(told),
    ]
    actions: list[Action] = [
        *capture_views.captures_actions(stores, captured),
        *child_processes.policies_actions(compared),
        *settings_view.settings_actions(told),
    ]
    frontier = FrontierCalls(place)
    name = place.folder.resolve().name or str(place.folder)
    folder = str(place.folder.resolve())
    health = _health(place, open_one, clock)

    def checked(*, of_crawl: bool) -> tuple[int, Mapping[str, Any]]:
        health.beat()  # it is called in the event loop, which therefore runs
        answer = health.readiness(of_crawl=of_crawl)
        return answer.status, {name: fact for name, fact in answer.facts.items() if name not in _OF_WORKERS}

    site = DashboardSite(
        name=name,
        folder=folder,
        views=views,
        actions=actions,
        calls=frontier.calls,
        guard=guard,
        clock=clock,
        health=partial(checked, of_crawl=True),
        readiness=partial(checked, of_crawl=False),
        links=links or {},
    )
    ends = (
        health.end,
        frontier.close,
        captured.close,
        compared.close,
        answers.close,
        lambda: lease_pool.end(GRACE),
        lambda: answers.beliefs.close(GRACE),
    )
    awaited = tuple(one for one in keeping if one.get != survey)  # a survey of many pages is made by a child
    return WiredDashboard(site, stores, tuple(keeping), awaited, ends, (health.begin,))


def _health(place: Workspace, open_one: Callable[[], Store], clock: Callable[[], float]) -> HealthMonitor:
    """Watches the store and the disk of a workspace, and when a visit was last acknowledged, by whatever worker."""

    def ask(store: Store) -> None:
        latest, now = store.latest_visits(1), clock()
        if len(latest):
            health.acknowledged(float(latest.time[0]))
        at_work = [one for one in registered_workers(store.controls()) if is_alive(one, now) and not one.paused]
        health.may_begin = any(one.left is None or one.left >= 1 for one in at_work)
        health.is_busy = any(one.underway for one in at_work)

    health = HealthMonitor("", place.folder, open_one, clock, ask=ask)
    health.reports_for_all = True
    health.ready()
    return health
