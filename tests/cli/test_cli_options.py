"""Options: one that cannot be read is named, with what to write; those that several verbs share read the same."""

import re
import shlex

import pytest

from recrawl.cli.commands import COMMAND_SPECS, CommandWithSubcommands, load
from recrawl.cli.main import EXAMPLES as MAIN

SHARED = ("--workspace", "--json", "--set", "--match", "--plot", "--digests-only", "--open", "--jobs", "--name")
"""Options that mean the same wherever they are."""


@pytest.mark.parametrize(
    "command",
    [
        ("rates", "--window", "soon"),
        ("assess", "--pause", "soon"),
        ("assess", "--delay", "soon"),
        ("import", "--merge-within", "soon", "."),
        ("compare", "--tick", "soon"),
        ("run", "--for", "soon"),
        ("capture", "--delay", "soon", "http://a.org/"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("workspace")
def test_a_duration_that_is_none_is_told_with_its_option(run, command):
    contact = ("--set", "fetch.contact=me@example.org")
    done = run(*command, "-w", "ws", *contact)
    assert done.returncode == 4
    assert done.stderr.startswith(f"recrawl: {command[1]}: 'soon' is not a duration.\n")
    assert "6h" in done.stderr


@pytest.mark.parametrize("text", ["many", "5/fortnight", "-3"])
@pytest.mark.usefixtures("workspace")
def test_a_budget_that_is_none_is_told_with_its_option(run, text):
    for command in (("compare", "-w", "ws"), ("demo", "--folder", "demo")):
        done = run(*command, f"--budget={text}")
        assert done.returncode == 4
        assert done.stderr.startswith("recrawl: --budget: '")
        assert "500/h" in done.stderr or "periods" in done.stderr


def commands(name, command):
    """Every command that does something, by its words."""
    below = getattr(command, "commands", None)
    if below is None or isinstance(command, CommandWithSubcommands):
        yield name, command
    for word, one in (below or {}).items():
        yield from commands(f"{name} {word}", one)


COMMANDS = {name: command for verb in COMMAND_SPECS for name, command in commands(verb.name, load(verb))}


def parameters():
    return [one for command in COMMANDS.values() for one in command.params]


def examples():
    """The command lines of all help texts, without what stands beside them."""
    texts = [MAIN, *(load(verb).epilog for verb in COMMAND_SPECS), *(command.epilog for command in COMMANDS.values())]
    lines = {line for text in texts if text for line in text.strip().splitlines()}
    return sorted(re.split(r"\s{2,}", line.strip())[0] for line in lines)


@pytest.mark.parametrize("line", examples())
def test_the_examples_of_help_texts_can_be_parsed(line):
    variable, _, rest = line.partition("recrawl ")
    assert re.fullmatch(r"(RECRAWL_[A-Z_]+=\S+ )?", variable)
    words = shlex.split(rest, comments=True)
    name = max((name for name in COMMANDS if f"{' '.join(words)} ".startswith(f"{name} ")), key=len)
    context = COMMANDS[name].make_context(name, words[len(name.split()) :], resilient_parsing="--help" in words)
    assert context.info_name == name


def test_every_verb_has_examples():
    told = {line.split()[1] for line in examples()}
    assert [verb.name for verb in COMMAND_SPECS if verb.name not in told] == []


def test_shared_options_have_one_help_text():
    told: dict[str, set[tuple[str, str | None]]] = {}
    for one in parameters():
        for name in set(one.opts) & set(SHARED):
            told.setdefault(name, set()).add((one.help, one.metavar))
    assert told.keys() == set(SHARED)
    assert {name: texts for name, texts in told.items() if len(texts) > 1} == {}


def test_every_option_has_a_help_text_that_is_a_sentence():
    texts = [(one.name, getattr(one, "help", None)) for one in parameters()]
    assert [name for name, text in texts if not text or not text.endswith(".")] == []
