"""Follow a tutorial as a newcomer would: every command of the page, in order, in one shell and one folder.

What a page may hold, and what is done with it:

- ``sh`` blocks are commands. Each command is run by bash; lines that go on (``\\``, here-documents, loops) are one.
- ``console`` blocks are commands behind ``$ ``, each with what it prints below it. What comes must have that shape:
  the same words in the same order, whatever the numbers, units of time and line breaks. ``…`` stands for anything.
- A command that ends in ``&`` is left running. If output is shown below it, that is waited for.
- A block of another language with ``title="NAME"`` is a file that the reader saves under that name.
- Other blocks are only shown.

Ports that a page names are replaced by free ones, so pages name every port that they use.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"title=\"([^\"]+)\"")
PATIENCE = 240.0
"""Seconds until a command must have ended, or one that is left running must have said what is shown."""
PAUSE = 0.02
"""Seconds between two looks whether it is so."""
WIDTH = "120"
"""Columns of the terminal."""
NUMBER = r"[-+]?\d[\d,.:]*(?:e[-+]?\d+)?"
UNIT = r"(?:ms|s|min|h|d|y|seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_TOKEN = re.compile(rf"(?P<number>{NUMBER})|(?P<rule>[─━]+)|(?P<any>…)|(?P<space>\s+)|(?P<word>[^\d\s…─━])")
_AFTER_NUMBER = re.compile(rf"(?P<gap>\s?){UNIT}\b")


@dataclass(frozen=True)
class Step:
    """A command of a page, or a file to save, as it stands there."""

    command: str
    shown: str | None = None
    """What is shown below the command; ``None`` for nothing at all."""
    file: str | None = None
    """The file that ``command`` is the text of."""

    @property
    def stays(self) -> bool:
        """Whether the command is left running."""
        return self.file is None and self.command.rstrip().endswith("&")


@dataclass(frozen=True)
class Done:
    """A step that was made, and what came of it."""

    command: str
    out: str
    err: str


def steps_of(text: str) -> list[Step]:
    """All that a page asks for, in order."""
    steps: list[Step] = []
    for block in FENCE.finditer(text):
        language, _, rest = block["info"].strip().partition(" ")
        body = re.sub(rf"^{block['indent']}", "", block["body"], flags=re.MULTILINE)
        if language == "sh":
            steps += [Step(command) for command in commands_in(body)]
        elif language == "console":
            steps += list(_session(body))
        elif title := TITLE.search(rest):
            steps.append(Step(body, file=title[1]))
    return steps


def commands_in(text: str) -> Iterator[str]:
    """The commands of a block, each complete: lines are taken together until bash understands them."""
    pending: list[str] = []
    for line in text.splitlines():
        if not pending and (not line.strip() or line.startswith("#")):
            continue
        pending.append(line)
        if _is_complete("\n".join(pending)):
            yield "\n".join(pending)
            pending = []
    assert not pending, f"bash does not understand: {pending}"


def _is_complete(command: str) -> bool:
    if command.endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-n"], input=command + "\n", capture_output=True, text=True, check=False)
    return checked.returncode == 0 and not checked.stderr


def _session(body: str) -> Iterator[Step]:
    """Commands behind ``$ ``, and what is shown below each."""
    command: list[str] = []
    shown: list[str] = []
    for line in [*body.splitlines(), "$ "]:
        if line.startswith("$ ") and command:
            yield Step("\n".join(command), "\n".join(shown))
            command, shown = [], []
        if line.startswith("$ "):
            command = [line[2:]]
        elif not shown and not _is_complete("\n".join(command)):
            command.append(line.removeprefix("> "))
        else:
            shown.append(line)


def shape(shown: str) -> re.Pattern[str]:
    """What output must be like to be what is shown."""
    parts, place = [r"\s*"], 0
    while place < len(shown):
        token = _TOKEN.match(shown, place)
        place = token.end()
        if token["number"]:
            unit = _AFTER_NUMBER.match(shown, place)
            place = unit.end() if unit else place
            parts.append(NUMBER + (rf"\s?{UNIT}\b" if unit else ""))
        elif token["rule"]:
            parts.append("[─━]+")
        elif token["any"]:
            parts.append(".*?")
        elif token["space"]:
            parts.append(r"\s+")
        else:
            parts.append(re.escape(token["word"]))
    pattern = "".join(parts)
    pattern = re.sub(r"(?:\\s\+)?\.\*\?(?:\\s\+)?", ".*?", pattern).removesuffix(r"\s+")
    return re.compile(pattern + r"\s*", re.DOTALL)


class Reader:
    """Somebody at a terminal with a page beside it."""

    def __init__(self, page: str, folder: Path, instead: Mapping[str, str]) -> None:
        text = (PAGES / page).read_text(encoding="utf-8")
        for said, meant in instead.items():
            assert said in text, f"{page} does not say {said!r}"
            text = text.replace(said, meant)
        self._left = steps_of(text)
        self.folder = folder
        self.done: list[Done] = []
        self._notes = folder.parent / f"{folder.name}-printed"
        self._notes.mkdir()
        # Whoever reads the page called no `uv run`, though the tests may have been, and compiles no module twice.
        ours = ("RECRAWL_", "UV", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}  # noqa: TID251 - a child's environment
        scripts = str(Path(sys.executable).parent)
        environment |= {"PATH": f"{scripts}:{environment['PATH']}", "COLUMNS": WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment | {"PYTHONUNBUFFERED": "1"},
            text=True,
        )
        self._tell("set -m")  # jobs can be interrupted, as at a terminal

    def until(self, words: str) -> Done:
        """Go on to the next command with these words in it, and give what came of that."""
        while self._left:
            done = self._make(self._left.pop(0))
            if words in done.command:
                return done
        pytest.fail(f"no further command has {words!r} in it")

    def rest(self) -> list[Done]:
        """Go on to the end of the page; all that was done."""
        while self._left:
            self._make(self._left.pop(0))
        return self.done

    def close(self) -> None:
        """End what is still running."""
        running = self._notes / "running"
        if self._shell.poll() is None:
            self._tell(f"jobs -p >'{running}'; for job in $(jobs -p); do kill -TERM -- -$job; done; wait; exit")
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            for job in running.read_text().split():
                with suppress(ProcessLookupError):
                    os.killpg(int(job), signal.SIGKILL)
            self._shell.kill()
            self._shell.wait(30)
        self._shell.stdin.close()

    def _tell(self, line: str) -> None:
        self._shell.stdin.write(line + "\n")
        self._shell.stdin.flush()

    def _make(self, step: Step) -> Done:
        if step.file is not None:
            (self.folder / step.file).write_text(step.command, encoding="utf-8")
            done = Done(step.file, "", "")
        else:
            done = self._run(step)
        self.done.append(done)
        return done

    def _run(self, step: Step) -> Done:
        number = len(self.done)
        out, err, code = (self._notes / f"{number}.{kind}" for kind in ("out", "err", "code"))
        self._tell(
            f"{{ {step.command}\n}} </dev/null >'{out}' 2>'{err}'; echo $? >'{code}.new'; mv '{code}.new' '{code}'"
        )
        self._wait(code.exists, step, out, err)
        status = int(code.read_text())
        if step.stays and step.shown:
            wanted = shape(step.shown)
            self._wait(lambda: wanted.fullmatch(out.read_text()), step, out, err)
        said = Done(step.command, out.read_text(), err.read_text())
        assert status == 0, f"{step.command}\nended with {status}:\n{said.out}{said.err}"
        if step.shown is not None:
            printed = said.out + said.err
            ok = any(shape(step.shown).fullmatch(text) for text in (said.out, printed))
            assert ok, f"{step.command}\nshown on the page:\n{step.shown}\nprinted:\n{printed}"
        return said

    def _wait(self, ready: Callable[[], object], step: Step, out: Path, err: Path) -> None:
        for _ in range(int(PATIENCE / PAUSE)):
            if ready():
                return
            if self._shell.poll() is not None:
                break
            time.sleep(PAUSE)
        pytest.fail(f"{step.command}\ndid not come to its end; it said:\n{out.read_text()}{err.read_text()}")


def free_ports(how_many: int) -> int:
    """The first of so many free ports in a row, below those that systems give to anybody who asks.

    A page may come to its port minutes later, so tests that run beside this one have ports of their own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))  # noqa: TID251 - which one this is
    for _ in range(1000):
        first = 20_000 + 1_000 * (worker % 10) + secrets.randbelow(990)
        if all(_is_free(port) for port in range(first, first + how_many)):
            return first
    pytest.fail("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture
def follow(tmp_path) -> Iterator[Callable[..., Reader]]:
    """``follow("page.md", ports=(8080,), instead={"--years 10": "--years 3"})`` begins a page.

    Each port stands for itself and the two behind it. ``instead`` makes things smaller; what it replaces must be there.
    """
    readers = []

    def begin(page: str, *, ports: tuple[int, ...] = (), instead: Mapping[str, str] | None = None) -> Reader:
        moved = {}
        for port in ports:
            first = free_ports(3)
            text = (PAGES / page).read_text(encoding="utf-8")
            moved |= {str(port + n): str(first + n) for n in range(3) if str(port + n) in text}
        folder = tmp_path / f"reader{len(readers)}"
        folder.mkdir()
        readers.append(Reader(page, folder, {**(instead or {}), **moved}))
        return readers[-1]

    yield begin
    for reader in readers:
        reader.close()
