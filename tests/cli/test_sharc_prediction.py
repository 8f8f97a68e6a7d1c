"""The experiment sharc-prediction on a small recorded site and on a sitemap."""

import csv
from pathlib import Path

import pytest

from recrawl_lab.experiments.sharc_prediction import PUBLISHED

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"


@pytest.fixture
def sitemap(tmp_path):
    """News are daily, of the last week; all else is yearly and old."""
    entries = [
        f"<url><loc>http://a.test/{'news/' if row % 2 else ''}{row}</loc>"
        f"<lastmod>{'2024-05-1' if row % 2 else '2021-03-0'}{row % 9 + 1}</lastmod>"
        f"<changefreq>{'daily' if row % 2 else 'yearly'}</changefreq></url>"
        for row in range(40)
    ]
    file = tmp_path / "news.xml"
    file.write_text(f"<urlset>{''.join(entries)}<url><loc>http://a.test/</loc></url></urlset>", encoding="utf-8")
    return file


def test_a_recorded_site_and_a_sitemap_go_through_whole(run, tmp_path, sitemap):
    output = tmp_path / "out"
    options = ("--data", RECORDED, "--output", output, "--fewest", 50, "--sitemap", sitemap)
    result = run("experiment", "sharc-prediction", *options)
    assert result.returncode == 0, result.stderr
    with (output / "sharc-prediction.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["reading"] for row in rows} == {"as printed", "ahead", "honest sitemaps", "as published"}
    for row in rows:
        assert 0.0 < float(row["right"]) <= 1.0
        assert 0.0 < float(row["largest"]) <= 1.0
    assert {row["features"] for row in rows if row["reading"] == "ahead"} == {"online", "offline"}
    published = [row for row in rows if row["reading"] == "as published"]
    assert {(row["pages"], row["classes"], row["never_changed"]) for row in published} == {("40", "2", "")}
    right = {row["learner"]: float(row["right"]) for row in published}
    # What is not in a directory of its own has all other pages for siblings.
    assert (right["tree"], right["naive Bayes"]) == (1.0, 1.0)
    assert right["siblings"] >= 0.5
    text = (output / "sharc-prediction.md").read_text(encoding="utf-8")
    assert text in result.stdout
    assert all(f"{share:.1%}" in text for _, _, right in PUBLISHED.values() for share in right)
    assert (output / "sharc-prediction.png").stat().st_size > 10_000


def test_small_sites_and_sitemaps_that_say_nothing_are_refused(run, tmp_path):
    result = run("experiment", "sharc-prediction", "--data", RECORDED, "--fewest", 5000)
    assert result.returncode == 1
    assert "no site has 5,000 pages" in result.stderr
    silent = tmp_path / "silent.xml"
    silent.write_text("<urlset><url><loc>http://a.test/</loc></url></urlset>", encoding="utf-8")
    result = run("experiment", "sharc-prediction", "--data", RECORDED, "--sitemap", silent)
    assert result.returncode == 1
    assert "only 0 of its pages say how often they change" in result.stderr
    result = run("experiment", "sharc-prediction", "--data", RECORDED, "--sitemap", tmp_path / "none.xml")
    assert result.returncode == 1
    assert "cannot be read" in result.stderr
