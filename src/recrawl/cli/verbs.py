"""The verbs, as data, and a command group that imports a verb's module only when it is used.

``recrawl --help`` must answer at once, so it lists the summaries below and imports nothing else. A test keeps
each summary equal to the first line of its verb's own help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from recrawl.errors import question_of

if TYPE_CHECKING:  # typer's own copy of click has no public name for these
    from typer._click import Command, Context, HelpFormatter


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: where it is implemented and what it is for.

    The module may define ``EXAMPLES``, command lines shown verbatim at the end of the verb's help.
    """

    name: str
    target: str
    """``module:function`` below ``recrawl.cli``, or ``module:app`` for a verb with verbs of its own."""
    summary: str


VERBS = (
    Verb("init", "init:init", "Make a workspace: a folder with settings, a store and room for archive files."),
    Verb("add", "add:add", "Add pages to come back to."),
    Verb("import", "importing:import_", "Bring what archives already hold into the workspace."),
    Verb(
        "capture",
        "capture:capture",
        "Capture a whole site sharply and coherently, and state how good the capture is.",
    ),
    Verb("run", "run:run", "Come back to pages when it is worth a visit."),
    Verb("pause", "pause:pause", "Hold the crawl, or some of its hosts, until recrawl resume."),
    Verb("resume", "resume:resume", "Let a crawl that was paused, or some of its hosts, go on."),
    Verb("limit", "limit:limit", "Set other limits for crawls that run."),
    Verb("robots", "robots:robots", "Show the robots.txt rules in force for a host, or have them read again."),
    Verb("status", "status:status", "Say what there is, how fresh it is and what is due."),
    Verb("list", "listing:listing", "List pages, hosts, visits, learned noise, what is due, fails or is misdated."),
    Verb("noise", "noise:app", "Forget which parts of a host's pages were learned to be noise."),
    Verb("rates", "rates:rates", "Estimate how often each page changes, and how sure that is."),
    Verb("predict", "predict:app", "Say what to expect of pages before their histories tell, and learn it."),
    Verb("plan", "plan:plan", "Say what would be fetched next, when and why, and what the budget buys."),
    Verb("explain", "explain:explain", "Say why a visit counted as a change, or did not."),
    Verb("compare", "compare:compare", "Say what other policies would have caught with the same visits."),
    Verb(
        "experiment",
        "experiment:app",
        "Repeat a result on real or synthetic data: tables as CSV and Markdown, and a picture.",
    ),
    Verb("assess", "assess:assess", "Say how sharp and how coherent an archive is, whoever made it."),
    Verb("report", "report:report", "Write all that is known of an archive into one HTML file."),
    Verb("serve", "serve:serve", "Show a workspace in a browser, live."),
    Verb("export", "export:export", "Write what the workspace holds in a form that other tools read."),
    Verb("verify", "verify:verify", "Check that the store and the archive files are whole and agree."),
    Verb("backup", "backup:backup", "Copy a workspace while crawls run in it."),
    Verb("restore", "restore:restore", "Make a workspace from a backup."),
    Verb("config", "config:app", "Show the settings and where each comes from."),
    Verb("demo", "demo:demo", "Watch the whole job on a small web that really changes."),
)


def hyphenated(token: str) -> str:
    """A name as help texts write it.

    >>> hyphenated("new_links")
    'new-links'
    """
    return token.replace("_", "-")


CONTEXT = {"help_option_names": ["--help", "-h"], "token_normalize_func": hyphenated}
"""For every command: how help is asked for, and that names and choices may be written with _ for -."""


_THEIR_WORDS = (
    (r"Value error, (.*)", r"\1"),
    (r"Input should be greater than or equal to (\S+)", r"it must be \1 or more."),
    (r"Input should be less than or equal to (\S+)", r"it must be \1 or less."),
    (r"Input should be a valid integer, .*", "it is not a whole number."),
    (r"Input should be a valid number, .*", "it is not a number."),
)
"""What pydantic, which typer reads values with, says of a wrong one, and what we say instead."""


def in_our_words(message: str) -> str:
    """What is wrong with the value of an option.

    >>> in_our_words("Input should be greater than or equal to 1"), in_our_words("Value error, 'x' is not one of 'y'.")
    ('it must be 1 or more.', "'x' is not one of 'y'.")
    """
    for theirs, ours in _THEIR_WORDS:
        if re.fullmatch(theirs, message):
            return re.sub(theirs, ours, message)
    return message


class TeachingCommand(TyperCommand):
    """A command whose help ends with examples, printed as written."""

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write the examples, one line each, unwrapped."""
        _write_examples(self.epilog, formatter)


class VerbGroup(TyperGroup):
    """The top-level command: knows every verb by name, loads the one that is asked for."""

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Import the verb's module and build its command; suggest another name if there is no such verb."""
        by_name = {verb.name: verb for verb in VERBS}
        if cmd_name in by_name:
            return load(by_name[cmd_name])
        question = question_of(cmd_name, by_name)
        if question and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r}. {question}")
        return None

    def invoke(self, ctx: Context) -> object:
        """Run the verb. What is wrong with a value is said in our words, not in those of a library."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = in_our_words(error.message)
            raise

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature is typer's
        """The names, in the order in which a newcomer needs them."""
        return [verb.name for verb in VERBS]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write names and summaries without importing any verb."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb.name, verb.summary) for verb in VERBS])

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write the examples, one line each, unwrapped."""
        _write_examples(self.epilog, formatter)


def _write_examples(examples: str | None, formatter: HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples.strip().splitlines():
                formatter.write(f"  {line}\n")


def load(verb: Verb) -> Command:
    """Import a verb's module and make its command."""
    module_name, _, attribute = verb.target.partition(":")
    module = import_module(f"recrawl.cli.{module_name}")
    target = getattr(module, attribute)
    app = target if isinstance(target, typer.Typer) else new_app()
    if app is not target:
        app.command(verb.name, cls=TeachingCommand, epilog=getattr(module, "EXAMPLES", None))(target)
    command = get_command(app)
    command.name = verb.name
    return command


def new_app() -> typer.Typer:
    """A typer application as all verbs use it: plain help, ordinary tracebacks."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,  # rich's help costs 200 ms of imports
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
