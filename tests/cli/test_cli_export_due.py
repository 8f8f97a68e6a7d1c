"""``recrawl export --due``: what another crawler should visit now, in its own form."""

import json

import pytest
import yaml

DAYS = 12
KINDS = ("often", "never")
HEADER = " CDX N b a m s k r M S V g\n"


def cdx(pages):
    """Pages of two kinds, seen every day: those called often were other ones each time."""
    lines = [
        f"- 202601{day:02}000000 http://town.example/{kind}/{page} text/html 200 "
        f"{'ABCDEFGHIJKLMNOP'[day if kind == 'often' else 0] * 32} - - 9 0 town.warc.gz\n"
        for day in range(1, DAYS + 1)
        for kind in KINDS
        for page in range(pages)
    ]
    return HEADER + "".join(lines)


@pytest.fixture
def town(run, tmp_path):
    """A workspace that knows of ten lively and ten still pages, with a budget of ten visits a day."""
    (tmp_path / "town.cdx").write_text(cdx(10))
    assert not run("init", "town", "--set", "schedule.budget=10", "--set", "schedule.min_interval=1d").returncode
    assert not run("import", "town.cdx", "-w", "town").returncode
    return tmp_path / "town"


def exported(run, tmp_path, form, *more):
    result = run("export", "due.txt", "--what", form, "-w", "town", *more)
    assert result.returncode == 0, result.stderr
    return (tmp_path / "due.txt").read_text(), result.stdout


DUE = ("--due", "1d", "--at", "2026-01-13")


def test_pages_that_change_are_due_within_the_budget_and_no_scope_is_widened(run, town, tmp_path):
    listed, said = exported(run, tmp_path, "seeds-heritrix", *DUE)
    urls = listed.split()
    assert 0 < len(urls) == len(set(urls)) <= 10
    assert sum("/often/" in url for url in urls) > len(urls) / 2
    assert f"Wrote {len(urls)} URLs" in said
    assert exported(run, tmp_path, "seeds-nutch", *DUE)[0].split() == urls
    browsertrix = yaml.safe_load(exported(run, tmp_path, "seeds-browsertrix", *DUE)[0])
    assert [seed["url"] for seed in browsertrix["seeds"]] == urls
    assert {seed["scopeType"] for seed in browsertrix["seeds"]} == {"page"}
    assert "+http://(example,town,)/" in exported(run, tmp_path, "seeds-heritrix")[0]


def test_the_list_is_the_head_of_the_plan_and_what_does_not_fit_is_told(run, town, tmp_path):
    planned = run("plan", "-w", "town", "--at", "2026-01-13", "--json", "--limit", "100")
    order = [page["url"] for page in json.loads(planned.stdout)["next"]]
    listed, said = exported(run, tmp_path, "seeds", "--due", "52w", "--at", "2026-01-13")
    assert listed.split() == order
    assert "wait" not in said
    listed, said = exported(
        run, tmp_path, "seeds", "--due", "52w", "--at", "2026-01-13", "--set", "schedule.budget=0.02"
    )
    assert len(listed.split()) == 7
    assert "13 more fall due; they wait for the budget (0.02 visits a day)." in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("visits.parquet", "--due", "1d"), "visits is not a list of pages to visit"),
        (("seeds.txt", "--at", "2026-01-13"), "Add --due"),
        (("seeds.txt", "--due", "0s"), "Give --due a duration above 0"),
        (("seeds.txt", "--due", "1d", "--at", "soon"), "soon"),
    ],
)
def test_what_makes_no_sense_is_refused(run, town, arguments, why):
    result = run("export", *arguments, "-w", "town")
    assert result.returncode == 4
    assert why in result.stderr
