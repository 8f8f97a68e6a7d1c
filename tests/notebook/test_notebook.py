"""What ``import recrawl`` offers: the lines of the reference page, on files and on a workspace, beside the verbs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recrawl
from recrawl.cli.main import main
from recrawl.errors import ConfigError, InputError
from recrawl.time import DAY, to_timestamp14

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
START = 1_700_000_000.0
WHEN = "2024-06-01"
VERSIONS = {"": "AAAABBBB", "news/1": "ABCDEFGH", "news/2": "AABBCCDD", "about": "AAAAAAAA"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an index of eight weekly crawls, in which we stand."""
    monkeypatch.chdir(tmp_path)
    lines = [" CDX N b a m s k r M S V g"]
    for place, (path, versions) in enumerate(VERSIONS.items()):
        for week, version in enumerate(versions):
            time = to_timestamp14(START + week * 7 * DAY + place * 60)
            lines.append(
                f"org,site)/{path} {time} http://site.org/{path} text/html 200 {version * 32} - - 100 0 a.warc.gz"
            )
    (tmp_path / "crawls").mkdir()
    (tmp_path / "crawls" / "site.cdx").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return tmp_path


@pytest.fixture
def say(monkeypatch, capsys):
    """What a verb prints as JSON, or as text if that is no JSON."""

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["recrawl", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main()
        said = capsys.readouterr()
        assert not done.value.code, said.err
        return json.loads(said.out) if "--json" in arguments else said.out

    return run


def plain(value):
    """As it comes out of JSON."""
    from recrawl.cli.tables import json_text

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
            rates = archive.estimate(at=WHEN)
            assert plain(rates.rows()) == say("rates", "-w", "ws", "--at", WHEN, "--json")
            by_host = archive.estimate(by="host", estimator="mle", kind="content", at=WHEN)
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


def test_tables_and_pictures_display_themselves(here):
    with recrawl.load("crawls") as archive:
        rates = archive.estimate(at=WHEN)
        assert rates._repr_html_().count("<tr>") == 1 + len(rates) == 5
        assert "<svg" in rates.plot()._repr_svg_()
        rates.save(here / "rates.csv")
        assert (here / "rates.csv").read_text(encoding="utf-8").splitlines()[0] == ",".join(rates)
        hostile = recrawl.Table({"url": ["http://a.org/<script>"] * 30})
        assert "<script>" not in hostile._repr_html_()
        assert "20 of 30 rows" in hostile._repr_html_()


def test_drawing_leaves_the_backend_of_a_notebook_alone(here):
    import matplotlib as mpl

    before = mpl.get_backend()
    mpl.use("svg")
    try:
        with recrawl.load("crawls") as archive:
            archive.estimate(at=WHEN).plot().save("rates.png")
            archive.assess().plot().save("quality.png")
        assert mpl.get_backend() == "svg"
    finally:
        mpl.use(before)


def test_what_is_broken_is_warned_of_and_the_rest_goes_on(here):
    index = here / "crawls" / "site.cdx"
    index.write_text(index.read_text(encoding="utf-8") + "org,site)/cut 2024\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 things could not be read, the first: .*site.cdx"):
        archive = recrawl.load("crawls")
    with archive:
        assert len(archive.problems) == 1
        assert len(archive.estimate(at=WHEN)) == 4


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (recrawl.load, "nothing to load"),
        (lambda: recrawl.load("nowhere.warc.gz"), "nowhere.warc.gz"),
        (lambda: recrawl.load("nothing"), "There is nothing in nothing that recrawl reads"),
        (lambda: recrawl.load("crawls", "place"), "place is a workspace"),
        (lambda: recrawl.load("crawls").estimate(by="planet"), "page, section, host, site"),
        (lambda: recrawl.load("crawls").estimate(kind="colour"), "new-links"),
        (lambda: recrawl.load("crawls").estimate(estimator="guess"), "There are: "),
        (lambda: recrawl.load("crawls").estimate(at="tomorrow"), "is not a time"),
        (lambda: recrawl.load("crawls").plan(3, at="1999-01-01"), "no page to plan for as of 1999-01-01"),
        (
            lambda: recrawl.load("crawls").plan("lots"),
            "budget: 'lots' is not a number of visits. Write 1000, 10000/day",
        ),
        (lambda: recrawl.load("crawls").assess().plot().save("quality.doc"), "quality.doc"),
        (lambda: recrawl.load("crawls").estimate().save("rates.xls"), "rates.xls"),
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


def test_importing_recrawl_is_light_and_its_names_are_there():
    light = "import sys, recrawl; print('numpy' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    assert dir(recrawl) == recrawl.__all__
    for name in recrawl.__all__:
        assert getattr(recrawl, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        recrawl.nonsense  # noqa: B018 - asked for on purpose
