"""What holds for every command: help, version, exit codes, start-up."""

import inspect
import shlex
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from recrawl.cli.commands import COMMAND_SPECS, CommandWithSubcommands, load
from recrawl.errors import ExitCode

HEAVY = ("numpy", "scipy", "rich", "yaml", "sqlalchemy", "apsw", "pyarrow", "asyncio", "matplotlib", "recrawl.model")


def commands(verb):
    """The commands of a verb: itself, or those below it."""
    command = load(verb)
    below = list(getattr(command, "commands", {}).values())
    return [command, *below] if isinstance(command, CommandWithSubcommands) else below or [command]


def test_version(spawn):
    result = spawn("--version")
    assert (result.returncode, result.stdout) == (0, f"recrawl {version('recrawl')}\n")


def test_the_console_script_is_the_same_program(spawn):
    script = Path(sys.executable).with_name("recrawl")
    by_script = subprocess.run([script, "--version"], check=True, capture_output=True, text=True)
    assert by_script.stdout == spawn("--version").stdout


def test_help_lists_every_verb_with_its_purpose(run):
    result = run("--help")
    assert result.returncode == 0
    told = " ".join(result.stdout.split())
    for verb in COMMAND_SPECS:
        assert f"{verb.name} {verb.summary}" in told
    assert "Examples:" in result.stdout


def test_help_imports_nothing_heavy():
    code = textwrap.dedent(
        f"""
        import sys
        sys.argv = ["recrawl", "--help"]
        from recrawl.cli.main import main
        try:
            main()
        finally:
            print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
        """
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.stdout.startswith("Usage: recrawl")
    assert result.stderr == "[]\n"


@pytest.mark.parametrize("verb", COMMAND_SPECS, ids=lambda verb: verb.name)
def test_the_summary_is_the_first_line_of_the_verbs_own_help(verb):
    assert inspect.cleandoc(load(verb).help).splitlines()[0] == verb.summary


@pytest.mark.parametrize("verb", COMMAND_SPECS, ids=lambda verb: verb.name)
def test_help_teaches_purpose_explanation_and_examples(verb):
    for command in commands(verb):
        text = command.get_help(typer.Context(command, info_name=command.name))
        examples = text.partition("\nExamples:\n")[2].splitlines()
        assert len([line for line in examples if "recrawl " in line]) >= 2
        purpose, _, explanation = inspect.cleandoc(command.help).partition("\n\n")
        assert purpose.endswith(".")
        assert len(explanation.split()) >= 8
        for option in command.params:
            assert getattr(option, "help", ""), f"{option.name} is not explained"


@pytest.mark.parametrize("verb", COMMAND_SPECS, ids=lambda verb: verb.name)
def test_every_example_is_a_command_line_that_parses(verb):
    for command in commands(verb):
        for line in command.epilog.strip().splitlines():
            words = shlex.split(line.split("  ")[0].partition("recrawl ")[2])
            assert words[0] == verb.name
            top = load(verb)
            below = getattr(top, "commands", {}).get(words[1]) if words[1:] else None
            (below or top).make_context(words[0], words[2:] if below else words[1:])


def test_a_misspelled_verb_is_answered_with_the_nearest(run):
    result = run("lsit")
    assert result.returncode == 2
    assert "Did you mean 'list'?" in result.stderr


def test_no_verb_shows_the_help(run):
    result = run()
    assert result.returncode == 2
    assert "Commands:" in result.stdout + result.stderr


@pytest.mark.parametrize("verb", ["predict", "experiment", "config"])
def test_a_verb_with_verbs_of_its_own_shows_its_help(run, verb):
    result = run(verb)
    assert result.returncode == 2
    assert "Commands:" in result.stdout + result.stderr
    assert "Missing command" not in result.stderr


@pytest.mark.parametrize("words", [("list", "foo"), ("rates", "--limit", "0"), ("rates", "--limit", "few")])
def test_a_wrong_value_is_told_in_words_of_our_own(run, words):
    result = run(*words)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("Error: Invalid value for ")
    assert "Input should" not in result.stderr
    assert "Value error" not in result.stderr


def test_a_users_error_is_a_sentence_and_a_remedy_without_traceback(spawn, tmp_path):
    result = spawn("status", "-w", "nowhere")
    assert result.returncode == ExitCode.BAD_CONFIG
    assert result.stderr.startswith("recrawl: There is no workspace in nowhere")
    assert "recrawl init nowhere" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def planted(body: str) -> subprocess.CompletedProcess[str]:
    """Run main() with a verb whose function has this body."""
    code = f"""
import sys, recrawl.cli.collect.setup_commands as module
from recrawl.cli import commands, main
def status():
    {body}
module.planted = status
commands.COMMAND_SPECS = (commands.CommandSpec("status", "collect.setup_commands:planted", "x"),)
sys.argv = ["recrawl", "status"]
main.main()
"""
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_a_bug_keeps_its_traceback_and_has_a_code_of_its_own():
    result = planted("return {}['missing']")
    assert result.returncode == ExitCode.FATAL
    assert "Traceback" in result.stderr
    assert "KeyError: 'missing'" in result.stderr
    assert "bug" in result.stderr.splitlines()[-1]


def test_an_interrupt_ends_with_its_code_and_no_traceback():
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also where it is ignored (nohup)
    )
    result = planted(f"{heard}; signal.raise_signal(signal.SIGINT); import time; time.sleep(30)")
    assert result.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in result.stderr


def test_an_error_exits_with_the_code_of_its_class():
    result = planted("from recrawl.errors import DiskFullError; raise DiskFullError('Full.', 'Free some.')")
    assert (result.returncode, result.stderr) == (ExitCode.DISK_FULL, "recrawl: Full.\nFree some.\n")


def test_success_is_zero():
    assert planted("pass").returncode == ExitCode.OK
