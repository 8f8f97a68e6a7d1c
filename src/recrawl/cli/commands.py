"""The commands, as data, and a group that imports the module of a command only when it is used.

``recrawl --help`` must answer at once, so it lists the summaries below and imports nothing else. A test keeps
each summary equal to the first line of the command's own help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from recrawl.errors import ConfigError, question_of

if TYPE_CHECKING:  # typer's own copy of click has no public name for these
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command: where it is implemented, and its summary.

    The module may define ``EXAMPLES``, command lines shown verbatim at the end of the command's help, and
    ``SUBCOMMANDS``: a command with them still does its own work if none is named. A module of several commands names
    the examples of each, such as ``PAUSE_EXAMPLES``.
    """

    name: str
    target: str
    """``module:function`` below ``recrawl.cli``, or ``module:app`` for a command with commands of its own.

    Empty for commands of other packages, which register themselves as entry points (:data:`ENTRY_POINTS`).
    """
    summary: str
    package: str = ""
    """The package that provides a command from outside ``recrawl``."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A command below one that also works by itself, such as ``recrawl plan slots`` below ``recrawl plan``."""

    name: str
    function: Callable[..., None]
    examples: str


ENTRY_POINTS = "recrawl.commands"
"""Entry points under which other packages add commands: a typer application, or a function with typed options."""


COMMAND_SPECS = (
    CommandSpec(
        "init",
        "collect.setup_commands:init",
        "Create a workspace: a folder with settings, a store and archive files.",
    ),
    CommandSpec("add", "collect.setup_commands:add", "Add pages to the schedule."),
    CommandSpec("import", "collect.import_command:import_", "Import captures of existing archives into the workspace."),
    CommandSpec(
        "capture",
        "collect.capture_command:capture",
        "Capture a whole site and state the quality of the capture.",
    ),
    CommandSpec("run", "operate.run_command:run", "Crawl: visit pages when they are due."),
    CommandSpec(
        "frontier",
        "operate.frontier_command:frontier",
        "Serve the schedule to crawlers of others (URLFrontier API).",
    ),
    CommandSpec("pause", "operate.control_commands:pause", "Pause the crawl, or some of its hosts."),
    CommandSpec("resume", "operate.control_commands:resume", "Resume a paused crawl, or some of its hosts."),
    CommandSpec("limit", "operate.control_commands:limit", "Change limits of running crawls."),
    CommandSpec(
        "robots",
        "operate.host_commands:robots",
        "Show or refresh the robots.txt rules of a host.",
    ),
    CommandSpec("status", "operate.status_commands:status", "Show counts, freshness, due pages and running workers."),
    CommandSpec(
        "list",
        "operate.status_commands:listing",
        "List pages, hosts, visits, due or failing pages, misdated visits, noise, workers, or units.",
    ),
    CommandSpec("noise", "operate.host_commands:app", "Reset the learned noise of a host."),
    CommandSpec("rates", "analyse.rates_command:rates", "Estimate change rates, with intervals."),
    CommandSpec(
        "predict",
        "analyse.predict_command:app",
        "Predict how often new pages change, from their features.",
    ),
    CommandSpec("plan", "analyse.plan_command:plan", "Show upcoming fetches, and what the budget achieves."),
    CommandSpec(
        "changes",
        "analyse.changes_command:changes",
        "Show what changed: pages changed, added, gone, back, moved or failing.",
    ),
    CommandSpec("explain", "analyse.explain_command:explain", "Explain why a visit counted as a change, or did not."),
    CommandSpec(
        "compare", "analyse.compare_command:compare", "Back-test other policies on the history of the workspace."
    ),
    CommandSpec(
        "experiment",
        "",
        "Reproduce a published result: tables as CSV and Markdown, and a plot.",
        package="recrawl-lab",
    ),
    CommandSpec("assess", "collect.assess_command:assess", "Measure the blur and coherence of an archive."),
    CommandSpec("report", "collect.report_command:report", "Write a report on an archive as one HTML file."),
    CommandSpec("serve", "operate.serve_command:serve", "Serve the dashboard and the archived pages of a workspace."),
    CommandSpec(
        "export", "collect.export_command:export", "Export visits, histories, indexes or archives for other tools."
    ),
    CommandSpec("upload", "operate.maintenance_commands:upload", "Upload closed WARC files to object storage."),
    CommandSpec(
        "verify",
        "operate.maintenance_commands:verify",
        "Check that store and archive files are complete and consistent.",
    ),
    CommandSpec("backup", "operate.maintenance_commands:backup", "Copy a workspace while crawls run in it."),
    CommandSpec("restore", "operate.maintenance_commands:restore", "Restore a workspace from a backup."),
    CommandSpec("copy", "operate.maintenance_commands:copy", "Copy the store of a workspace to another database."),
    CommandSpec("leave", "operate.maintenance_commands:leave", "Take a unit out of a crawl of several units."),
    CommandSpec("config", "collect.setup_commands:app", "Show the settings and where each comes from."),
    CommandSpec("demo", "", "Run a complete crawl on a small test web.", package="recrawl-testweb"),
)


def hyphenated(token: str) -> str:
    """A name with hyphens, as help texts show it.

    >>> hyphenated("new_links")
    'new-links'
    """
    return token.replace("_", "-")


CONTEXT = {"help_option_names": ["--help", "-h"], "token_normalize_func": hyphenated}
"""For every command: ``-h`` and ``--help``; names and choices accept _ for -."""


_THEIR_WORDS = (
    (r"Value error, (.*)", r"\1"),
    (r"Input should be greater than or equal to (\S+)", r"it must be \1 or more."),
    (r"Input should be less than or equal to (\S+)", r"it must be \1 or less."),
    (r"Input should be a valid integer, .*", "it is not a whole number."),
    (r"Input should be a valid number, .*", "it is not a number."),
)
"""Messages of pydantic (typer parses values with it) and our replacements."""


def in_our_words(message: str) -> str:
    """The error message for a wrong option value.

    >>> in_our_words("Input should be greater than or equal to 1"), in_our_words("Value error, 'x' is not one of 'y'.")
    ('it must be 1 or more.', "'x' is not one of 'y'.")
    """
    for theirs, ours in _THEIR_WORDS:
        if re.fullmatch(theirs, message):
            return re.sub(theirs, ours, message)
    return message


RUNNING: ContextVar[Context | None] = ContextVar("running command", default=None)
"""The command that runs now, with its options; results carry both (:func:`recrawl.cli.tables.command_provenance`)."""


class CommandWithExamples(TyperCommand):
    """A command whose help ends with examples, printed as written."""

    def invoke(self, ctx: Context) -> object:
        """Run the command; meanwhile :data:`RUNNING` is its context."""
        before = RUNNING.set(ctx)
        try:
            return super().invoke(ctx)
        finally:
            RUNNING.reset(before)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write arguments and options, without the names of Python's types."""
        for one in self.params:
            if isinstance(one, TyperOption) and one.metavar is None:
                one.metavar = _METAVARS.get(one.display_type(ctx))
            elif isinstance(one, TyperArgument) and one.display_type(ctx) in _METAVARS:
                one.display_type_rich = _no_type  # type: ignore[method-assign]
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write the examples, one line each, unwrapped."""
        _write_examples(self.epilog, formatter)


_METAVARS = {
    "<int>": "NUMBER",
    "<int range>": "NUMBER",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<str>": "TEXT",
    "<path>": "PATH",
    "<list[str]>": "TEXT",
}
"""Values of options without a name of their own, by what typer calls their type."""


def _no_type(ctx: Context) -> None:
    """Nothing behind the name of an argument."""


class CommandWithSubcommands(CommandWithExamples):
    """A command that does its own work unless the word after its name is a subcommand.

    Only the first word counts: ``recrawl capture list`` lists captures, and a site, file or host given anywhere else
    is never taken for a subcommand.
    """

    commands: Mapping[str, Command] = {}
    """The subcommands by name."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the options; a subcommand after options is answered with where it belongs."""
        if not ctx.resilient_parsing:
            found, rest, _ = self.make_parser(ctx).parse_args(list(args))
            words = [*rest, *(found.get(str(one.name)) for one in self.params if isinstance(one, TyperArgument))]
            for word in words:
                if isinstance(word, str) and hyphenated(word) in self.commands:
                    ctx.fail(f"Put {word!r} first: {ctx.command_path} {word} [OPTIONS].")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the options, then the subcommands with their summaries."""
        super().format_options(ctx, formatter)
        with formatter.section("Subcommands"):
            formatter.write_dl([(name, one.get_short_help_str(_WHOLE)) for name, one in self.commands.items()])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Options and subcommands that start with ``incomplete``."""
        from typer._click.shell_completion import CompletionItem

        names = [name for name in self.commands if name.startswith(incomplete)]
        return [*(CompletionItem(name) for name in names), *super().shell_complete(ctx, incomplete)]


class CommandGroup(TyperGroup):
    """The top-level command: lists every command, imports only the requested one."""

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Import and build the command; suggest another name if there is no such command."""
        by_name = {spec.name: spec for spec in COMMAND_SPECS}
        if cmd_name not in by_name:
            by_name |= {spec.name: spec for spec in other_commands()}
        if cmd_name in by_name:
            return load(by_name[cmd_name])
        question = question_of(cmd_name, by_name)
        if question and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r}. {question}")
        return None

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that the first words name: ``plan slots`` is a command of its own, ``plan`` is another."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, CommandWithSubcommands) and rest and hyphenated(rest[0]) in command.commands:
            below = hyphenated(rest[0])
            return f"{name} {below}", command.commands[below], rest[1:]
        return name, command, rest

    def invoke(self, ctx: Context) -> object:
        """Run the command, with our own messages for wrong values."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = in_our_words(error.message)
            raise

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature is typer's
        """The names, in the order in which a new user needs them."""
        return [spec.name for spec in (*COMMAND_SPECS, *other_commands())]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write names and summaries without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(spec.name, spec.summary) for spec in (*COMMAND_SPECS, *other_commands())])

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - the signature is typer's
        """Write the examples, one line each, unwrapped."""
        _write_examples(self.epilog, formatter)


class SubcommandGroup(TyperGroup):
    """A command that only groups subcommands; its help has their whole summaries."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write names and summaries."""
        below = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(_WHOLE)) for name, one in below if one is not None])


_WHOLE = 1_000
"""Characters of a summary: more than any has, as lines are broken and not cut."""


def _write_examples(examples: str | None, formatter: HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples.strip().splitlines():
                formatter.write(f"  {line}\n")


def load(spec: CommandSpec) -> Command:
    """Import the module of a command and make the command.

    Raises:
        ConfigError: it belongs to a package that is not installed.
    """
    if spec.target:
        module_name, _, attribute = spec.target.partition(":")
        target = getattr(import_module(f"recrawl.cli.{module_name}"), attribute)
    else:
        registered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        if spec.name not in registered:
            raise ConfigError(
                f"The command {spec.name} is not installed.", f"Install it with: pip install {spec.package}"
            )
        target = registered[spec.name].load()
    if isinstance(target, typer.Typer):
        command = get_command(target)
        command.name = spec.name
        return command
    module = import_module(target.__module__)
    examples: str | None = getattr(module, f"{spec.name.upper()}_EXAMPLES", None) or getattr(module, "EXAMPLES", None)
    below: Sequence[Subcommand] = getattr(module, "SUBCOMMANDS", ())
    command = _built(spec.name, target, examples, CommandWithSubcommands if below else CommandWithExamples)
    if isinstance(command, CommandWithSubcommands):
        command.commands = {
            one.name: _built(one.name, one.function, one.examples, CommandWithExamples) for one in below
        }
    return command


def _built(name: str, function: Callable[..., None], examples: str | None, cls: type[TyperCommand]) -> Command:
    app = new_app()
    app.command(name, cls=cls, epilog=examples)(function)
    return get_command(app)


def other_commands() -> tuple[CommandSpec, ...]:
    """Commands of other packages that are not in the list above."""
    known = {spec.name for spec in COMMAND_SPECS}
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in known}
    return tuple(CommandSpec(name, "", f"From {point.value.partition(':')[0]}.") for name, point in found.items())


def new_app() -> typer.Typer:
    """A typer application as all commands use it: plain help, ordinary tracebacks."""
    return typer.Typer(
        cls=SubcommandGroup,
        add_completion=False,
        rich_markup_mode=None,  # rich's help costs 200 ms of imports
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
