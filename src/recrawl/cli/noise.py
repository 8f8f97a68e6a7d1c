"""``recrawl noise``: forget what was learned to be noise; and the rows of ``recrawl list noise``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, SetOption, WorkspaceOption
from recrawl.cli.verbs import TeachingCommand, new_app
from recrawl.cli.workspace import open_workspace

if TYPE_CHECKING:
    from recrawl.crawl.archived_bytes import ArchivedBytes
    from recrawl.detect.learned_noise import HostNoise
    from recrawl.model import IntArray
    from recrawl.store.base import Store

RESET = """
recrawl noise reset example.org                 compare all parts of its pages again
recrawl noise reset a.example b.example -w ws   the same for two hosts of another workspace
"""
_EXAMPLES_READ = 3
"""Pages of a host that are read to show what a masked part says."""
_LONGEST = 60

app = new_app()


@app.callback(cls=None, no_args_is_help=True)
def noise() -> None:
    """Forget which parts of a host's pages were learned to be noise."""


@app.command("reset", cls=TeachingCommand, epilog=RESET)
def reset(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="The hosts, as recrawl list hosts names them.")],
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Forget which parts of a host's pages were learned to be noise.

    All parts of its pages are compared again, and noise is learned anew. recrawl list noise shows what was learned.
    Running crawls hear of it within five minutes.
    """
    import numpy as np

    from recrawl.cli.knowledge import host_id
    from recrawl.detect.learned_noise import NoiseEvidence
    from recrawl.model.words import counted

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with place.open_store() as store:
        numbers = [host_id(store, host) or 0 for host in hosts]
        for name, number in zip(hosts, numbers, strict=True):
            one = np.array([number])
            masked = NoiseEvidence.counted(store.noise(one)).noise_of(number).masked
            store.drop_noise(one)
            typer.echo(f"{name}: {counted(masked, 'masked part')} forgotten, and the evidence on all others.")


def masked_by_host(store: Store, hosts: IntArray) -> dict[int, int]:
    """How many parts of pages are masked on each of these hosts; hosts without any are left out."""
    import numpy as np

    from recrawl.detect.learned_noise import NoiseEvidence

    found = NoiseEvidence.counted(store.noise(hosts if len(hosts) < _MANY_HOSTS else None))
    found = found.take(np.isin(found.host, found.host[found.is_noise()]))  # most hosts have no noise
    masked = {host: found.noise_of(host).masked for host in np.unique(found.host).tolist()}
    return {host: count for host, count in masked.items() if count}


_MANY_HOSTS = 1_000
"""Hosts from which on the evidence on all is read at once."""


def noise_rows(store: Store, archived: ArchivedBytes, host: int | None, limit: int) -> tuple[dict[str, list[Any]], int]:
    """The masked parts as columns, host by host, at most ``limit``, and how many there are."""
    import numpy as np

    from recrawl.detect.learned_noise import NoiseEvidence, masked_parts

    found = NoiseEvidence.counted(store.noise(None if host is None else np.array([host])))
    rows: list[tuple[Any, ...]] = []
    for number in np.unique(found.host[found.is_noise()]).tolist():
        noise = found.noise_of(number)
        parts = masked_parts(noise)
        [name] = store.hosts(np.array([number])).name
        said = _texts(store, archived, number, noise) if len(rows) < limit else {}
        for page, key, split in parts:
            mine = noise.rows.take((noise.rows.part == key) & (noise.rows.page == page))
            where = store.urls(np.array([page]))[0] if page else "all pages"
            differed = f"{mine.near_differed[0]} of {mine.near[0]}"
            text = said.get(key, "")
            short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
            rows.append((key, name, where, short, split.kind.name.lower(), split.place, differed))
    names = ("part", "host", "where", "text", "differs_in", "position", "confirmations_differed")
    columns = {name: [row[place] for row in rows[:limit]] for place, name in enumerate(names)}
    return columns, len(rows)


def _texts(store: Store, archived: ArchivedBytes, host: int, noise: HostNoise) -> dict[int, str]:
    """What masked parts said when pages of the host were last archived, as far as that can be read."""
    import numpy as np

    from recrawl.cli.explain import place_at
    from recrawl.detect.shown import shown
    from recrawl.detect.standards import Standards
    from recrawl.errors import RecrawlError

    pages = [page for page in noise.page_masks if page]
    of_host = store.pages()
    pages += of_host.id[of_host.host == host][:_EXAMPLES_READ].tolist() if noise.mask else []
    said: dict[int, str] = {}
    for page in pages[: 2 * _EXAMPLES_READ]:
        captures = store.capture_columns(np.array([page]))
        if not len(captures):
            continue
        place = place_at(captures, np.inf)
        try:
            capture = archived.read(*place) if place else None
        except (RecrawlError, OSError):
            continue
        if capture is not None:
            told = shown(capture, Standards(mask=noise.mask_of(page)), noise, page)
            said |= {one.key: one.text for one in told.left_out if one.key}
    return said
