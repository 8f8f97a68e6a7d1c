"""The console entry: run the verb, and turn an error into a sentence and an exit code (conventions S4)."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from recrawl import __version__
from recrawl.cli.verbs import CONTEXT, VerbGroup
from recrawl.errors import ExitCode, RecrawlError

_TYPER_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

EXAMPLES = """
recrawl demo                          see everything at work, in a minute or so
recrawl init my-archive               make a workspace
recrawl add -w my-archive https://example.org/
recrawl run -w my-archive --for 8h    visit them when it is worth a visit
recrawl status -w my-archive          what there is and what is due
recrawl add --help                    every command explains itself
"""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


def recrawl(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The web archive crawler that knows when to come back.

    recrawl keeps copies of web pages true to a web that keeps changing, with a limited budget. It learns how
    each page changes and decides when to return. Its work lives in a workspace: a folder with settings
    (recrawl.yaml), a store, archive files (warc/) and reports.
    """


def new_recrawl() -> typer.Typer:
    """The whole command line, with its verbs still to be loaded."""
    app = typer.Typer(
        rich_markup_mode=None,  # rich's help costs 200 ms of imports
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    app.callback(cls=VerbGroup, no_args_is_help=True, epilog=EXAMPLES)(recrawl)
    return app


def main() -> NoReturn:
    """Run ``recrawl`` with the arguments of the process and exit.

    An error that a user can cause is one sentence and its remedy; anything else is a bug and keeps its traceback.
    """
    try:
        get_command(new_recrawl()).main(prog_name="recrawl")
    except SystemExit as done:
        sys.exit(ExitCode.INTERRUPTED if done.code == _TYPER_INTERRUPTED else done.code)
    except RecrawlError as error:
        sys.stderr.write(f"recrawl: {error.what}\n" + (f"{error.remedy}\n" if error.remedy else ""))
        sys.exit(error.exit_code)
    except Exception:  # noqa: BLE001 - the outermost place: a bug is shown whole, with a code of its own
        import traceback

        traceback.print_exc()
        sys.stderr.write("recrawl: this is a bug in recrawl. Please report it with the lines above.\n")
    sys.exit(ExitCode.FATAL)
