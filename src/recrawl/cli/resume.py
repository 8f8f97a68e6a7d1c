"""``recrawl resume``: let a crawl that was paused go on."""

from __future__ import annotations

from recrawl.cli.options import HERE, SetOption, WorkspaceOption
from recrawl.cli.pause import HostsArgument, tell

EXAMPLES = """
recrawl resume -w my-archive         let the crawl go on
recrawl resume example.org           let this host be asked again
"""


def resume(hosts: HostsArgument = None, workspace: WorkspaceOption = HERE, assignments: SetOption = None) -> None:
    """Let a crawl that was paused, or some of its hosts, go on.

    Without hosts the crawl goes on as a whole. Hosts that were paused by name stay so until they are named here.
    """
    tell(hosts or [], workspace, assignments or [], paused=False)
