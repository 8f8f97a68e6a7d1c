"""The reference pages that are generated from declarations: commands and settings.

    python -m recrawl.cli.reference docs/reference

writes them; a test fails while they differ from the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.main import get_command

from recrawl.app.workspace.settings import declared, sections
from recrawl.cli.commands import COMMAND_SPECS
from recrawl.cli.main import new_recrawl

_WIDTH = 88
_SETTINGS_INTRODUCTION = """# Settings

The settings of a workspace are in its `recrawl.yaml`, by section. `recrawl init` writes the file with every setting at
its default, commented out. For a single run, every setting is also a flag, `--set section.name=value`, and an
environment variable. A flag wins over a variable, a variable over the file, the file over the default.
`recrawl config show` prints each value and where it comes from. Some settings can be changed while crawls run: a limit
set by `recrawl limit` overrides all of these until it is reset.

An unknown key is an error. Durations need a unit: `500ms`, `30s`, `15min`, `6h`, `2d`,
`1w`, or several, as in `1d 12h`."""
_COMMANDS_INTRODUCTION = """# Commands

This page repeats the `--help` text of every command. Exit codes are listed under
[exit codes and logs](exit-codes-and-logs.md), settings under [settings](config.md)."""


def settings_page() -> str:
    """Every setting: key, type, default, variable and meaning."""
    lines = [_SETTINGS_INTRODUCTION]
    for section, introduction in sections().items():
        lines += ["", f"## {section}", "", introduction, "", "| key | type | default | meaning |", "|---|---|---|---|"]
        for setting in declared():
            if setting.section == section:
                kind = setting.kind.name.replace("|", "\\|")
                default = setting.kind.write(setting.default)
                live = " Can be changed while crawls run." if setting.live else ""
                meaning = f"{setting.help}{live} Variable: `{setting.variable}`."
                lines.append(f"| `{setting.key}` | {kind} | `{default}` | {meaning} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command with its help text."""
    lines = [_COMMANDS_INTRODUCTION]
    for name, text in _helps():
        lines += ["", f"## {name}", "", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def _helps() -> list[tuple[str, str]]:
    """Name and help of every command, subcommands after their group."""
    top = get_command(new_recrawl())
    context = typer.Context(top, info_name="recrawl", terminal_width=_WIDTH)
    assert isinstance(top, TyperGroup)  # noqa: S101 - tells mypy what VerbGroup is
    found = [("recrawl", top.get_help(context))]
    for spec in COMMAND_SPECS:
        command = top.get_command(context, spec.name)
        assert command is not None  # noqa: S101 - every command loads
        below = typer.Context(command, info_name=spec.name, parent=context, terminal_width=_WIDTH)
        found.append((f"recrawl {spec.name}", command.get_help(below)))
        for name, child in getattr(command, "commands", {}).items():
            deepest = typer.Context(child, info_name=name, parent=below, terminal_width=_WIDTH)
            found.append((f"recrawl {spec.name} {name}", child.get_help(deepest)))
    return found


PAGES = {"cli.md": commands_page, "config.md": settings_page}
"""File name and text of each generated page."""


if __name__ == "__main__":
    for file_name, text_of in PAGES.items():
        (Path(sys.argv[1]) / file_name).write_text(text_of(), encoding="utf-8")
