"""The console entry: run the command, and turn an error into a message and an exit code (conventions S4)."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from recrawl import __version__
from recrawl.app.progress import show_progress
from recrawl.cli.commands import CONTEXT, CommandGroup
from recrawl.cli.progress_bars import TerminalProgress
from recrawl.errors import ExitCode, RecrawlError

_TYPER_INTERRUPTED = 130
"""The exit code of typer for Ctrl-C."""

EXAMPLES = """
recrawl demo                          see all parts at work, in about a minute
recrawl init my-archive               create a workspace
recrawl add -w my-archive https://example.org/
recrawl run -w my-archive --for 8h    visit pages when they are due
recrawl status -w my-archive          counts, freshness and due pages
recrawl add --help                    help for a command
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

    recrawl keeps copies of web pages up to date with a limited budget of visits. It learns how each page changes and
    decides when to revisit it. A workspace is a folder with settings (recrawl.yaml), a store, archive files (warc/) and
    reports.
    """


def new_recrawl() -> typer.Typer:
    """The whole command line; commands are loaded on use."""
    app = typer.Typer(
        rich_markup_mode=None,  # rich's help costs 200 ms of imports
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    app.callback(cls=CommandGroup, no_args_is_help=True, epilog=EXAMPLES)(recrawl)
    return app


def main() -> NoReturn:
    """Run ``recrawl`` with the arguments of the process and exit.

    An error that a user can cause prints a sentence and a remedy. Anything else is a bug and keeps its traceback.
    """
    show_progress(TerminalProgress())
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
