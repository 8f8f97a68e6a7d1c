"""What a crawl has learned of a host: ``recrawl robots`` and ``recrawl noise``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.commands import CommandWithExamples, SubcommandGroup, new_app
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recrawl.fetch.robots_cache import HostRobots
    from recrawl.store.base import PageTable, ScheduleStore


ROBOTS_EXAMPLES = """
recrawl robots example.org                                the rules in force, and when they expire
recrawl robots example.org --url https://example.org/a    whether a page may be visited, and the matching rule
recrawl robots example.org --refresh                      read them again before the next request
"""


@dataclass(frozen=True, slots=True)
class _OriginRules:
    """One origin of a host and its stored rules."""

    origin: str
    rules: HostRobots
    status: int
    """HTTP status of the robots.txt response."""

    def holds(self, url: str) -> bool:
        """Whether the rules are those for this URL."""
        return url == self.origin or url.startswith(f"{self.origin}/")


def robots(  # noqa: PLR0913 - its options
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host, as recrawl list hosts shows it.")],
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="URL to check against the rules.")] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read robots.txt again before the next request to the host.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Show or refresh the robots.txt rules of a host.

    The rules are those for the product name in fetch.user_agent. Runs share them through the store. They are read again
    after a day, soon after a 401 or 403 for an allowed page, and with --refresh. Running crawls adopt --refresh within
    seconds: they drop the old rules and read the new ones at the next request to the host, after its usual pause. Pages
    that the new rules forbid are not requested.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.fetch.robots_txt import product_token
    from recrawl.urls import address, host_of

    if url is not None and (address(url) is None or host_of(url) != host):
        raise ConfigError(
            f"--url {url!r} is not a URL of the host {host}.", "Give a full URL such as https://HOST/page."
        )
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
        typer.echo(f"robots.txt of {host} will be read again before the next request to it{wait}.")
        return
    _print(host, product, found, url, now)


def _ready_at(store: PageTable, host: str) -> float:
    """The earliest time of the next request to the host, seconds since the epoch; an error if the host is unknown."""
    import numpy as np

    from recrawl.app.rates.belief_table import host_id

    number = store.find_host(host)
    if number is None:
        number = host_id(store, host) or 0
    return float(store.hosts(np.array([number])).ready_at[0])


def _known(store: ScheduleStore, origins: Sequence[str], product: str, cap: float) -> list[_OriginRules]:
    from recrawl.fetch.robots_cache import rules_of

    found = []
    for origin in origins:
        copy = store.robots_copy(origin)
        if copy is not None and copy.status:
            found.append(_OriginRules(origin, rules_of(copy, product, cap), copy.status))
    return found


def _print(host: str, product: str, found: Sequence[_OriginRules], url: str | None, now: float) -> None:
    if url is None:
        for one in found:
            _print_rules(one, product, now)
    asked = [one for one in found if url is None or one.holds(url)]
    if not asked:
        typer.echo(f"robots.txt of {host} was not read yet. It is read before the first page.")
    elif url is not None:
        typer.echo(f"{url}: {_verdict(asked[0].rules, url)}")


def _verdict(rules: HostRobots, url: str) -> str:
    if not rules.available:
        return f"may not be visited: {rules.reason}."
    rule = rules.said.deciding_rule(url)
    may = "may be visited" if rules.allowed(url) else "may not be visited"
    return f"{may}, by {rule}." if rule is not None else f"{may}: no rule matches."


def _print_rules(one: _OriginRules, product: str, now: float) -> None:
    rules = one.rules
    expired = "now" if rules.expires <= now else _time(rules.expires)
    typer.echo(f"{one.origin}/robots.txt: {rules.reason}.")
    typer.echo(f"  read {_time(rules.fetched_at)}, next before the first request after {expired}")
    group = {"": "no matching group: everything is allowed", "*": "the group of *"}.get(rules.said.agent)
    if rules.available:
        typer.echo(f"  as {product}: {group or f'the group of {rules.said.agent}'}")
    if rules.asked_delay is not None:
        cap = f", limited to {rules.crawl_delay:g} s" if rules.crawl_delay != rules.asked_delay else ""
        typer.echo(f"  Crawl-delay: {rules.asked_delay:g} s{cap}")
    for rule in sorted(rules.said.rules):
        typer.echo(f"  {rule}")
    for sitemap in rules.sitemaps:
        typer.echo(f"  Sitemap: {sitemap}")


def _print_json(host: str, product: str, found: Sequence[_OriginRules], url: str | None, ready: float) -> None:
    from recrawl.cli.tables import print_json

    print_json(
        {
            "host": host,
            "agent": product,
            "readyAt": ready,
            "robots": [_as_json(one, url) for one in found],
        }
    )


def _as_json(one: _OriginRules, url: str | None) -> dict[str, object]:
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
    from recrawl.app.display import shown_time

    return f"{shown_time(when)} UTC"


NOISE_EXAMPLES = """
recrawl noise reset example.org                 compare all parts of its pages again
recrawl noise reset a.example b.example -w ws   the same for two hosts of another workspace
"""

app = new_app()


@app.callback(cls=SubcommandGroup, no_args_is_help=True)
def noise() -> None:
    """Reset the learned noise of a host."""


@app.command("reset", cls=CommandWithExamples, epilog=NOISE_EXAMPLES)
def reset(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="Hosts, as recrawl list hosts shows them.")],
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Reset the learned noise of a host.

    All parts of its pages are compared again, and noise is learned from scratch. recrawl list noise shows learned
    noise. Running crawls adopt the reset within five minutes. If noise was learned from imported captures, these are
    classified again with all their parts.
    """
    import numpy as np

    from recrawl.app.assess.archive_reading import classify_all_parts
    from recrawl.app.rates.belief_table import host_id
    from recrawl.detect.noise.learned_noise import NoiseEvidence
    from recrawl.errors import counted
    from recrawl.transfer.archive_noise_learning import hosts_with_noise, with_archive_noise

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        numbers = [host_id(store, host) or 0 for host in hosts]
        from_archives = hosts_with_noise(store)
        for name, number in zip(hosts, numbers, strict=True):
            one = np.array([number])
            learned = NoiseEvidence.counted(store.noise(one)).noise_of(number)
            masked = with_archive_noise(store, number, learned)
            store.drop_noise(one)
            again = ""
            if name in from_archives:
                visits = classify_all_parts(place, store, number)
                again = f" {counted(visits, 'imported visit')} classified again."
            typer.echo(
                f"{name}: {counted(masked.masked, 'masked part')} reset, with the evidence on all other parts.{again}"
            )
