"""What ``import recrawl`` offers: the code of the documentation, on files and on a workspace, beside the commands."""

import csv
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.axes import Axes

import recrawl
from recrawl.app.provenance import changed_settings
from recrawl.app.workspace.configuration import configure
from recrawl.errors import ConfigError, InputError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
WHEN = "2024-06-01"


def plain(value):
    """As it comes out of JSON."""
    from recrawl.app.display import json_text

    return json.loads(json_text(value))


def test_the_lines_of_the_page_run_on_files_and_on_a_workspace(here, say, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) <= 10
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    printed = {}
    for source in ("crawls/", "ws"):
        names: dict[str, object] = {}
        capsys.readouterr()
        exec(code.replace("crawls/", source), names)
        printed[source] = capsys.readouterr().out
        names["archive"].close()
        plt.close("all")
        assert (here / "rates.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (here / "quality.svg").read_text(encoding="utf-8")
        (here / "rates.png").unlink()
        (here / "quality.svg").unlink()
    first, *_ = printed["ws"].splitlines()
    assert first.startswith("http://site.org/news/1 about every")
    assert printed["ws"] == printed["crawls/"]


def test_files_and_workspace_say_what_the_verbs_say(here, say):
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    with recrawl.load("crawls") as files, recrawl.load(here / "ws") as place:
        assert files.histories().changes().tolist() == place.histories().changes().tolist()
        assert sorted(files.histories().changes().tolist()) == [0, 1, 3, 7]
        for archive in (files, place):
            rates = archive.rates(at=WHEN)
            assert plain(rates.rows()) == say("rates", "-w", "ws", "--at", WHEN, "--json")
            by_host = archive.rates(by="host", estimator="mle", kind="content", at=WHEN)
            asked = ("--by", "host", "--estimator", "mle", "--kind", "content", "--at", WHEN, "--json")
            assert plain(by_host.rows()) == say("rates", "-w", "ws", *asked)
            plan = archive.plan(3, at=WHEN)
            said = say("plan", "-w", "ws", "--at", WHEN, "--set", "schedule.budget=3", "--json")
            assert plain(plan.facts) == said
            assert plain(plan.next.rows()) == said["next"]
            assert plan.budgets["freshness"] == [said["budgets"][name]["freshness"] for name in plan.budgets["budget"]]
            assert plain(archive.assess("2024-01-01").facts) | {"files": []} == say(
                "assess", "-w", "ws", "--at", "2024-01-01", "--limit", "1000", "--json"
            )
        whole = say("assess", "crawls", "--merge-within", "60s", "--json", "--limit", "1000")
        assert plain(files.assess().facts)["worstPages"] == whole["worstPages"]
        assert len(files.assess(match="/news/").pages) == 2
        assert files.urls(files.histories().page) == files.urls(place.histories().page)


def test_a_budget_that_is_given_stands_before_a_limit_of_the_crawl(here, say):
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    say("limit", "-w", "ws", "schedule.budget=7")
    with recrawl.load("ws") as archive:
        assert archive.plan(at=WHEN).facts["budget_per_day"] == pytest.approx(7)
        assert archive.plan(3, at=WHEN).facts["budget_per_day"] == pytest.approx(3)


def test_tables_display_themselves(here):
    with recrawl.load("crawls") as archive:
        rates = archive.rates(at=WHEN)
    html = rates._repr_html_()
    assert html.count("<tr>") == 1 + len(rates) == 5
    assert "<caption>Rates of 4 pages: rates of crawls as of 2024-06-01T00:00:00Z" in html
    text = repr(rates)
    assert text.startswith("<Rates of 4 pages: rates of crawls as of 2024-06-01T00:00:00Z, recrawl ")
    assert "http://site.org/news/1" in text
    assert max(map(len, text.splitlines()[1:-1])) <= 110
    hostile = recrawl.Table({"url": ["http://a.org/<script>"] * 30})
    assert "<script>" not in hostile._repr_html_()
    assert "20 of 30 rows" in hostile._repr_html_()
    assert "25 more rows" in repr(hostile)
    assert repr(recrawl.Table({})) == "<Table of 0 rows>"


def test_data_frames_hold_the_whole_table(here):
    with recrawl.load("crawls") as archive:
        tables = [archive.rates(at=WHEN), archive.plan(3, at=WHEN).next, archive.assess().pages]
    for table in tables:
        names = list(table.columns)
        frame = pd.DataFrame(table)
        assert list(frame.columns) == names
        assert len(frame) == len(table) > 0
        assert frame["url"].tolist() == table["url"]
        assert frame.equals(table.to_pandas())
        assert table.to_pandas().attrs["recrawl"]["version"] == recrawl.__version__
        for found in (table.to_polars(), pl.DataFrame(table)):
            assert (found.columns, found["url"].to_list()) == (names, table["url"])
        read = pa.table(table)
        assert read.column_names == names
        assert json.loads(read.schema.metadata[b"recrawl"]) == table.provenance.facts()
    empty = recrawl.Table({"url": [], "changes": []})
    assert list(empty.to_pandas().columns) == ["url", "changes"]
    assert empty.to_polars().shape == (0, 2)


def test_a_file_says_where_it_comes_from(here, say):
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    with recrawl.load("ws", settings={"schedule.budget": "7", "store.location": "recrawl.db"}) as archive:
        rates = archive.rates(by="host", at=datetime(2024, 6, 1, tzinfo=UTC))
        compared = archive.compare(["uniform"], repeats=2, seed=9)
    assert rates.provenance == recrawl.Provenance(
        "rates",
        recrawl.__version__,
        ("ws",),
        1717200000.0,
        None,
        {"by": "host", "estimator": "operational", "kind": "any", "min_observations": 1},
        {"schedule.budget": 7.0},
    )
    assert compared.provenance.seed == 9
    for file in ("rates.csv", "rates.parquet"):
        rates.save(file)
    table = csv.reader(Path("rates.csv").read_text(encoding="utf-8").splitlines())
    assert next(table) == list(rates.columns)
    about = json.loads(Path("rates.csv-metadata.json").read_text(encoding="utf-8"))
    assert about["url"] == "rates.csv"
    assert about["notes"] == [rates.provenance.facts()]
    assert json.loads(pq.read_schema("rates.parquet").metadata[b"recrawl"]) == rates.provenance.facts()
    assert "rates of ws as of 2024-06-01T00:00:00Z" in repr(rates)


def test_a_provenance_has_no_password(here, say):
    say("init", "ws")
    hidden = configure(None, {}, {"store.location": "postgresql://me:secret@host/name"})
    assert changed_settings(hidden) == {"store.location": "postgresql://me:***@host/name"}


def test_diagnosis_and_comparison_say_what_the_commands_say(here, say):
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    with recrawl.load("crawls") as files, recrawl.load("ws") as place:
        for archive in (files, place):
            found = archive.diagnose(at=WHEN)
            assert plain(found.facts) == say("rates", "diagnose", "-w", "ws", "--at", WHEN, "--json")
            assert list(found.verdict) == found.facts["verdict"]
            compared = archive.compare(["uniform", "nutch"], repeats=2)
            options = ("--policy", "uniform", "--policy", "nutch", "--repeats", "2", "--jobs", "1", "--json")
            assert plain(compared.facts) == say("compare", "-w", "ws", *options)
            assert set(compared.policies["policy"]) == {"valued-archive", "uniform", "nutch"}
            assert compared.headline in repr(compared)


def test_plots_are_axes_of_matplotlib_and_leave_the_backend_alone(here):
    before = mpl.get_backend()
    mpl.use("svg")
    try:
        with recrawl.load("crawls") as archive:
            results = [
                archive.rates(at=WHEN),
                archive.assess(),
                archive.diagnose(at=WHEN),
                archive.compare(["uniform"]),
            ]
        for result, count in zip(results, (2, 2, 4, 2), strict=True):
            axes = result.plot()
            assert len(axes) == count
            assert all(isinstance(one, Axes) for one in axes)
            assert plt.fignum_exists(axes[0].figure.number)  # so a notebook shows it
            axes[0].figure.savefig("plot.png")
        assert mpl.get_backend() == "svg"
    finally:
        plt.close("all")
        mpl.use(before)


def test_a_model_of_the_workspace_predicts(here, say, index_of):
    say("init", "ws")
    (here / "more.cdx").write_text(
        index_of({f"{'news' if page % 2 else 'docs'}/{page}": "ABCD" if page % 2 else "AAAA" for page in range(44)}),
        encoding="utf-8",
    )
    say("import", "-w", "ws", "more.cdx")
    say("predict", "train", "-w", "ws", "--pages", "44")
    with recrawl.load("ws") as archive:
        found = archive.predict()
    assert plain(found.rows()) == say("predict", "score", "-w", "ws", "--json", "--limit", "100")
    assert found.provenance.arguments["event"] == "changes"


def test_what_is_broken_is_warned_of_and_the_rest_goes_on(here):
    index = here / "crawls" / "site.cdx"
    index.write_text(index.read_text(encoding="utf-8") + "org,site)/cut 2024\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 records could not be read, the first: .*site.cdx"):
        archive = recrawl.load("crawls")
    with archive:
        assert len(archive.problems) == 1
        assert len(archive.rates(at=WHEN)) == 4


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (recrawl.load, "nothing to load"),
        (lambda: recrawl.load("nowhere.warc.gz"), "nowhere.warc.gz"),
        (lambda: recrawl.load("nothing"), "There is nothing in nothing that recrawl reads"),
        (lambda: recrawl.load("crawls", "place"), "place is a workspace"),
        (lambda: recrawl.load("crawls").rates(by="planet"), "page, section, host, site"),
        (lambda: recrawl.load("crawls").rates(kind="colour"), "new-links"),
        (lambda: recrawl.load("crawls").rates(estimator="guess"), "There are: "),
        (lambda: recrawl.load("crawls").rates(at="tomorrow"), "is not a time"),
        (lambda: recrawl.load("crawls").plan(3, at="1999-01-01"), "no page to plan for as of 1999-01-01"),
        (
            lambda: recrawl.load("crawls").plan("lots"),
            "budget: 'lots' is not a number of visits. Write 1000, 10000/day",
        ),
        (lambda: recrawl.load("crawls").predict(), "no model to predict with"),
        (lambda: recrawl.load("crawls").rates().save("rates.xls"), "rates.xls"),
    ],
)
def test_errors_say_what_to_do(here, ask, said):
    (here / "nothing").mkdir()
    (here / "place").mkdir()
    (here / "place" / "recrawl.yaml").touch()
    with pytest.raises((ConfigError, InputError)) as error:
        ask()
    assert said in str(error.value)
    assert error.value.remedy


def imported(code: str, *names: str) -> set[str]:
    """Those of the modules that a new process has loaded after the code."""
    told = f"{code}\nimport sys; print(*(set({names!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


TERMINAL = ("typer", "click", "rich", "recrawl.cli", "recrawl.web")


@pytest.mark.slow
def test_no_question_loads_the_command_line(here, say):
    say("init", "ws")
    say("import", "-w", "ws", "crawls")
    assert not imported("import recrawl; recrawl.load('crawls')", *TERMINAL)
    # Migrations are for stores of another schema: a workspace that has ours does not load what runs them.
    ask = "a = recrawl.load('ws'); a.rates(); a.plan(3); a.assess(); a.diagnose(); a.compare(['uniform'], repeats=1)"
    assert not imported(f"import recrawl; {ask}", *TERMINAL, "alembic", "sqlalchemy")


def test_importing_recrawl_is_light_and_its_names_are_there():
    assert not imported("import recrawl", "numpy", "typer", "pyarrow")
    assert dir(recrawl) == recrawl.__all__
    for name in recrawl.__all__:
        assert getattr(recrawl, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        recrawl.nonsense  # noqa: B018 - asked for on purpose
