"""Commands with subcommands: which word names one, what else it may be, and how help and completion show it."""

import json

import pytest
from typer.main import get_command

from recrawl.cli.commands import COMMAND_SPECS, CommandWithSubcommands, load
from recrawl.cli.main import new_recrawl

GROUPS = {spec.name: command for spec in COMMAND_SPECS if isinstance(command := load(spec), CommandWithSubcommands)}


def resolved(*words):
    """Name and remaining words of the command that these words name."""
    top = get_command(new_recrawl())
    context = top.make_context("recrawl", list(words))
    name, _, rest = top.resolve_command(context, [*context._protected_args, *context.args])
    return name, rest


def test_the_subcommands():
    assert {name: list(command.commands) for name, command in GROUPS.items()} == {
        "capture": ["list", "show", "plan"],
        "rates": ["diagnose", "compare"],
        "plan": ["slots", "crawl-time", "capacity"],
    }


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
        (("capture", "list", "-w", "ws"), "capture list", ["-w", "ws"]),
        (("plan", "crawl-time", "all"), "plan crawl-time", ["all"]),
        (("plan", "crawl_time", "all"), "plan crawl-time", ["all"]),
        (("plan",), "plan", []),
        (("rates", "--host", "compare"), "rates", ["--host", "compare"]),
        (("plan", "--host", "slots"), "plan", ["--host", "slots"]),
        (("capture", "http://list/"), "capture", ["http://list/"]),
        (("capture", "list.example.org"), "capture", ["list.example.org"]),
        (("capture", "--", "list"), "capture", ["--", "list"]),
        (("plan", "crawl-time", "slots"), "plan crawl-time", ["slots"]),
    ],
)
def test_only_the_first_word_names_a_subcommand(words, name, rest):
    assert resolved(*words) == (name, rest)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("capture", "-w", "ws", "list"), "list"),
        (("plan", "--json", "capacity"), "capacity"),
        (("rates", "--host", "a.org", "compare"), "compare"),
    ],
)
def test_a_subcommand_after_options_is_answered_with_its_place(run, words, first):
    done = run(*words)
    assert done.returncode == 2
    assert f"Put {first!r} first: recrawl {words[0]} {first} [OPTIONS]." in done.stderr


@pytest.mark.parametrize("name", GROUPS)
def test_help_lists_the_subcommands_and_each_has_its_own(run, name):
    told = run(name, "--help").stdout
    for below, command in GROUPS[name].commands.items():
        assert f"  {below}" in told.partition("Subcommands:")[2]
        own = run(name, below, "--help").stdout
        assert own.startswith(f"Usage: recrawl {name} {below} ")
        assert command.help.splitlines()[0] in own


@pytest.mark.parametrize(
    "old",
    [("capture", "--list"), ("capture", "--show", "1"), ("plan", "--capacity"), ("rates", "--diagnose")],
)
def test_there_is_one_way_to_ask(run, old):
    done = run(*old)
    assert done.returncode == 2
    assert "No such option" in done.stderr


def test_completion_offers_subcommands():
    command = GROUPS["plan"]
    context = command.make_context("plan", [], resilient_parsing=True)
    assert [item.value for item in command.shell_complete(context, "c")] == ["crawl-time", "capacity"]


@pytest.mark.usefixtures("workspace")
def test_an_empty_workspace_has_no_captures(run):
    assert json.loads(run("capture", "list", "-w", "ws", "--json").stdout) == []
