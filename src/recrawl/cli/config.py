"""``recrawl config``: the settings and where each comes from."""

from __future__ import annotations

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.settings import declared, without_password
from recrawl.cli.tables import print_json, print_table
from recrawl.cli.verbs import TeachingCommand, new_app
from recrawl.cli.workspace import Workspace, open_workspace
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
    """With the limits in force, which the store knows; where it cannot be read, that is said and they are left out."""
    from recrawl.crawl.controls import limits

    try:
        with place.open_store() as store:
            return place.limited(limits(store.controls()))
    except StoreError as error:
        typer.echo(f"Limits are left out: {error.what}", err=True)
        return place


@app.command("show", cls=TeachingCommand, epilog=EXAMPLES)
def show(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Print every setting, its value and its origin.

    A flag (--set KEY=VALUE) wins over an environment variable (RECRAWL_SECTION_KEY), which wins over the workspace's
    recrawl.yaml, which wins over the default. What recrawl limit says wins over all of them.
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
