"""``recrawl resume``: resume a paused crawl."""

from __future__ import annotations

from recrawl.app.display import HERE
from recrawl.cli.operate.pause_command import HostsArgument, tell
from recrawl.cli.options import SetOption, WorkspaceOption

EXAMPLES = """
recrawl resume -w my-archive         resume the crawl
recrawl resume example.org           resume this host
"""


def resume(hosts: HostsArgument = None, workspace: WorkspaceOption = HERE, assignments: SetOption = None) -> None:
    """Resume a paused crawl, or some of its hosts.

    Without hosts, the whole crawl is resumed. Hosts that were paused by name stay paused until they are named here.
    """
    tell(hosts or [], workspace, assignments or [], paused=False)
