"""``recrawl config``: the settings and where each comes from."""

from __future__ import annotations

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.settings import declared, without_password
from recrawl.app.workspace.workspace import Workspace, open_workspace
from recrawl.cli.commands import CommandWithExamples, new_app
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.cli.tables import print_json, print_table
from recrawl.errors import StoreError

EXAMPLES = """
recrawl config show -w my-archive
recrawl config show --json
RECRAWL_FETCH_TIMEOUT=20s recrawl config show
recrawl config show --set fetch.timeout=20s
"""

app = new_app()


@app.callback(cls=None, no_args_is_help=True)
def config() -> None:
    """Show the settings and where each comes from."""


def _limited(place: Workspace) -> Workspace:
    """The configuration with the limits in force. If the store cannot be read, print that and leave the limits out."""
    from recrawl.crawl.control.runtime_limits import limits

    try:
        with place.open_store() as store:
            return place.limited(limits(store.controls()))
    except StoreError as error:
        typer.echo(f"Limits are not shown: {error.what}", err=True)
        return place


@app.command("show", cls=CommandWithExamples, epilog=EXAMPLES)
def show(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Print every setting, its value and its origin.

    Precedence, highest first: recrawl limit, a flag (--set KEY=VALUE), an environment variable (RECRAWL_SECTION_KEY),
    the recrawl.yaml of the workspace, the default.
    """
    configuration = _limited(open_workspace(workspace, parse_assignments(assignments or []))).configuration
    if json_output:
        rows = {}
        for setting in declared():
            value = configuration.value(setting)
            shown = without_password(value) if isinstance(value, str) else value
            rows[setting.key] = {"value": shown, "origin": str(configuration.origins[setting.key])}
        print_json(rows)
        return
    print_table(
        ("setting", "value", "origin"),
        [
            (
                setting.key,
                without_password(setting.kind.write(configuration.value(setting))),
                str(configuration.origins[setting.key]),
            )
            for setting in declared()
        ],
    )
