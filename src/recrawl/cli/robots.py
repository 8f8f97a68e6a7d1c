"""``recrawl robots``: the robots.txt rules in force for a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recrawl.fetch.robots import Rules
    from recrawl.store.base import Store

EXAMPLES = """
recrawl robots example.org                                the rules in force, and when they are read again
recrawl robots example.org --url https://example.org/a    whether a page may be visited, and by which line
recrawl robots example.org --refresh                      read them again before the next request
"""


@dataclass(frozen=True, slots=True)
class _Host:
    """One origin of a host and the rules that were read there."""

    origin: str
    rules: Rules
    status: int
    """Of the answer that they were read from."""

    def holds(self, url: str) -> bool:
        """Whether the rules are those for this URL."""
        return url == self.origin or url.startswith(f"{self.origin}/")


def robots(  # noqa: PLR0913 - its options
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host, as recrawl list hosts names it.")],
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Say whether this page may be visited.")] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Have robots.txt read again before the next request to the host.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Show the robots.txt rules in force for a host, or have them read again.

    The rules are those for the name in fetch.user_agent. Runs share them through the store. They read them again after
    a day, soon after a 401 or 403 of a page that the rules allow, and when --refresh asks for it. Running crawls hear
    of --refresh within seconds: they drop the old rules and read the new ones in the host's next turn, after its usual
    pause. A page that the new rules forbid is refused without a request.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.fetch.robots_txt import product_token
    from recrawl.urls import address, host_of

    if url is not None and (address(url) is None or host_of(url) != host):
        raise ConfigError(f"--url {url!r} is not a URL of the host {host}.", "Write all of it, as https://HOST/page.")
    now = RealClock().now()
    place = open_workspace(workspace, parse_assignments(assignments or []))
    settings = place.configuration.settings
    product = product_token(settings.fetch.user_agent)
    with place.open_store() as store:
        ready = _ready_at(store, host)
        origins = [f"{scheme}://{host}" for scheme in ("https", "http")]
        if refresh:
            store.expire_robots_copies(origins, now)
        found = _known(store, origins, product, settings.politeness.crawl_delay_cap)
    if json_output:
        _print_json(host, product, found, url, ready)
        return
    if refresh:
        wait = f", not before {_time(ready)}" if ready > now else ""
        typer.echo(f"robots.txt of {host} is read again before the next request to it{wait}.")
        return
    _print(host, product, found, url, now)


def _ready_at(store: Store, host: str) -> float:
    """Before which time nobody asks the host, seconds since the epoch; an error if it is unknown."""
    import numpy as np

    from recrawl.cli.knowledge import host_id

    number = store.find_host(host)
    if number is None:
        number = host_id(store, host) or 0
    return float(store.hosts(np.array([number])).ready_at[0])


def _known(store: Store, origins: Sequence[str], product: str, cap: float) -> list[_Host]:
    from recrawl.fetch.robots import rules_of

    found = []
    for origin in origins:
        copy = store.robots_copy(origin)
        if copy is not None and copy.status:
            found.append(_Host(origin, rules_of(copy, product, cap), copy.status))
    return found


def _print(host: str, product: str, found: Sequence[_Host], url: str | None, now: float) -> None:
    if url is None:
        for one in found:
            _print_rules(one, product, now)
    asked = [one for one in found if url is None or one.holds(url)]
    if not asked:
        typer.echo(f"robots.txt of {host} was not read yet: it is read before the first page.")
    elif url is not None:
        typer.echo(f"{url}: {_verdict(asked[0].rules, url)}")


def _verdict(rules: Rules, url: str) -> str:
    if not rules.available:
        return f"may not be visited: {rules.reason}."
    rule = rules.said.deciding_rule(url)
    may = "may be visited" if rules.allowed(url) else "may not be visited"
    return f"{may}, by {rule}." if rule is not None else f"{may}: no rule matches."


def _print_rules(one: _Host, product: str, now: float) -> None:
    rules = one.rules
    expired = "now" if rules.expires <= now else _time(rules.expires)
    typer.echo(f"{one.origin}/robots.txt: {rules.reason}.")
    typer.echo(f"  read {_time(rules.fetched_at)}, next before the first request after {expired}")
    group = {"": "no group for us: everything is allowed", "*": "the group of *"}.get(rules.said.agent)
    if rules.available:
        typer.echo(f"  as {product}: {group or f'the group of {rules.said.agent}'}")
    if rules.asked_delay is not None:
        cap = f", of which {rules.crawl_delay:g} s are kept" if rules.crawl_delay != rules.asked_delay else ""
        typer.echo(f"  Crawl-delay: {rules.asked_delay:g} s{cap}")
    for rule in sorted(rules.said.rules):
        typer.echo(f"  {rule}")
    for sitemap in rules.sitemaps:
        typer.echo(f"  Sitemap: {sitemap}")


def _print_json(host: str, product: str, found: Sequence[_Host], url: str | None, ready: float) -> None:
    from recrawl.cli.tables import print_json

    print_json(
        {
            "host": host,
            "agent": product,
            "readyAt": ready,
            "robots": [_as_json(one, url) for one in found],
        }
    )


def _as_json(one: _Host, url: str | None) -> dict[str, object]:
    rules = one.rules
    said: dict[str, object] = {
        "origin": one.origin,
        "status": one.status,
        "reason": rules.reason,
        "available": rules.available,
        "read": rules.fetched_at,
        "expires": rules.expires,
        "group": rules.said.agent,
        "crawlDelay": rules.crawl_delay,
        "askedDelay": rules.asked_delay,
        "rules": [
            {"line": rule.line, "allow": rule.allows, "pattern": str(rule).split(": ", 2)[2]}
            for rule in sorted(rules.said.rules)
        ],
        "sitemaps": list(rules.sitemaps),
    }
    if url is not None and one.holds(url):
        rule = rules.said.deciding_rule(url)
        said |= {"url": url, "allowed": rules.allowed(url), "line": rule.line if rule is not None else None}
    return said


def _time(when: float) -> str:
    from recrawl.cli.tables import shown_time

    return f"{shown_time(when)} UTC"
