"""Every command, setting, exit code and table is documented, and the generated pages are current."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from recrawl.app.workspace.settings import declared
from recrawl.cli.commands import COMMAND_SPECS
from recrawl.cli.reference import PAGES
from recrawl.crawl.control.metrics import COUNTERS, HEALTH_GAUGES, STORE_GAUGES, UNIT_GAUGES, WORKER_GAUGES
from recrawl.errors import ExitCode

metadata = runpy.run_path(str(Path(__file__).parents[1] / "store" / "schema.py"))["metadata"]


ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def text_of(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_current(name):
    assert text_of(name) == PAGES[name](), "run: python -m recrawl.cli.reference docs/reference"


@pytest.mark.parametrize("verb", [verb.name for verb in COMMAND_SPECS])
def test_verb_is_documented(verb):
    assert f"\n## recrawl {verb}\n" in text_of("cli.md")


@pytest.mark.parametrize("setting", list(declared()), ids=lambda setting: setting.key)
def test_setting_is_documented(setting):
    page = text_of("config.md")
    assert f"| `{setting.key}` |" in page
    assert f"`{setting.variable}`" in page


@pytest.mark.parametrize("code", list(ExitCode), ids=lambda code: code.name)
def test_exit_code_is_documented(code):
    assert f"| {int(code)} | {code.name} |" in text_of("exit-codes-and-logs.md")


def test_every_event_of_the_log_is_documented():
    page = text_of("exit-codes-and-logs.md")
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "src/recrawl/crawl").rglob("*.py"))
    events = re.findall(r"\.event\(\s*\"(\w+)\",\s*\"([^\"]+)\"", sources)
    assert sources.count(".event(") == len(events) > 0
    assert [event for event in events if "| `{}` | `{}` |".format(*event) not in page] == []


@pytest.mark.parametrize("table", metadata.tables.values(), ids=lambda table: table.name)
def test_table_and_its_columns_are_documented(table):
    section = re.search(rf"^## {table.name}\n(.*?)(?=^## |\Z)", text_of("store-schema.md"), re.MULTILINE | re.DOTALL)
    assert section, f"no section for table {table.name}"
    documented = re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE)
    assert documented == [column.name for column in table.columns]


def public_modules(room: str) -> list[str]:
    """The modules of a room that define something public."""
    found = []
    for file in sorted((ROOT / "src" / "recrawl" / room).rglob("*.py")):
        defined = [node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if hasattr(node, "name")]
        if any(not name.startswith("_") for name in defined):
            found.append(".".join(file.relative_to(ROOT / "src").with_suffix("").parts))
    return sorted(found)


@pytest.mark.parametrize("room", ["detect", "estimate", "predict", "schedule", "capture", "assess", "plan"])
def test_every_module_of_a_thinking_room_is_documented(room):
    """A new estimator, policy, strategy or measure has its place in the reference."""
    on_page = re.findall(r"^::: (\S+)$", text_of(f"api/{room}.md"), re.MULTILINE)
    assert sorted(on_page) == public_modules(room)


def test_documented_command_lines_exist():
    """Every `recrawl VERB` that a written page shows is a verb; generated pages have their own tests."""
    known = {verb.name for verb in COMMAND_SPECS}
    written = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in PAGES]
    for page in [*written, ROOT / "CONTRIBUTING.md", ROOT / "README.md"]:
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for verb in re.findall(r"^(?:\s*\$ )?\s*(?:\w+=\S+ )?(?:uv run )?recrawl ([a-z]+)", block, re.MULTILINE):
                assert verb in known, f"{page}: recrawl {verb}"


def test_every_metric_is_documented():
    page = text_of("metrics.md")
    gauges = {**WORKER_GAUGES, **HEALTH_GAUGES, **STORE_GAUGES, **UNIT_GAUGES}
    names = [*(f"recrawl_{name}" for name in gauges), *(f"recrawl_{name}_total" for name in COUNTERS)]
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_files_that_the_reference_and_the_explanation_name_exist():
    """Modules move; a page that names one by its path moves with it."""
    packages = "|".join(folder.name for folder in (ROOT / "src" / "recrawl").iterdir() if folder.is_dir())
    named = re.compile(rf"`((?:{packages}|tests|benchmarks|fuzz)/[\w/]+\.py)")
    places = (ROOT, ROOT / "src" / "recrawl")
    pages = [*(ROOT / "docs" / "explanation").rglob("*.md"), *REFERENCE.rglob("*.md")]
    paths = {(page.name, path) for page in pages for path in named.findall(page.read_text(encoding="utf-8"))}
    assert len(paths) > 100
    assert [path for path in sorted(paths) if not any((place / path[1]).exists() for place in places)] == []
