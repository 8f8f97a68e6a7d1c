"""Options: one that cannot be read is named, with what to write; those that several verbs share read the same."""

import pytest

from recrawl.cli.verbs import VERBS, load

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


def parameters():
    def walk(command):
        below = getattr(command, "commands", None)
        if below is None:
            yield from command.params
        else:
            for one in below.values():
                yield from walk(one)

    for verb in VERBS:
        yield from walk(load(verb))


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
