"""How long site graph and scatter plot of a large site take to make, to load and to move, and how large they are.

A site is made whose pages hang below few others, as those of real sites do; some of its parts change much. Beside what
is drawn at first, with unchanged parts folded, the same is measured with every page drawn: the worst case. Frames are
counted in a real Chromium while the plot is moved in every frame: how long each took, and how much of that our
scripts took. The baseline is the graph of a single page. With ``--software`` Chromium draws without a graphics card, as
on a server; then frames tell of its processor, and only the scripts of what a reader will see.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from figures import note, options_of

from recrawl.app.assess.assessment import SitePages
from recrawl.assess.site_structure import ROOT, ChangeClass, collapse
from recrawl.web.html_templates import data_block, plain
from recrawl.web.report import site_graph
from recrawl.web.report.report_page import ReportExtras, ReportPage, Section, report_html

NOW = 1_700_000_000.0
DIRECTORIES = ("about", "archive", "blog", "courses", "data", "img", "news", "people", "research", "staff")
TYPES = ("text/html", "text/html", "text/html", "image/png", "application/pdf", "text/css")
MOVED = 20
"""Frames that are counted."""
HUBS = 0.08
"""Share of the pages that have others below them."""
T = TypeVar("T")

_LAYOUT = """async (whole) => {
  const { tree } = await recrawl.charts.open(document.querySelector('[data-chart=site-graph]'));
  const drawn = whole ? tree.drawn.map(() => 1) : tree.drawn;
  const begin = performance.now();
  recrawl.site.layout({ ...tree, drawn, foldedInto: whole ? () => [] : tree.foldedInto });
  return performance.now() - begin;
}"""
_FRAMES = """async (frames) => {
  const { sigma } = await recrawl.charts.open(document.querySelector('[data-chart=site-graph]'));
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const [whole, ours] = [[], []];
  await next();
  for (let frame = 0; frame < frames; frame += 1) {
    const begin = performance.now();
    const [x, y] = [Math.cos(frame / 5), Math.sin(frame / 5)];
    sigma.getCamera().setState({ x: 0.5 + 0.2 * x, y: 0.5 + 0.2 * y, ratio: 0.4 });
    sigma.render();
    ours.push(performance.now() - begin);
    await next();
    whole.push(performance.now() - begin);
  }
  return [whole, ours];
}"""


def main() -> None:
    """Make, write, then observe it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="Its program file; none: no frames.")
    parser.add_argument("--software", action="store_true", help="Draw without a graphics card.")
    asked = options_of(parser)
    pages = made_site(asked.pages, np.random.default_rng(asked.seed))
    folded = collapse(pages.parent, pages.change)
    sys.stdout.write(f"{len(pages):,} pages, {int(folded.drawn.sum()):,} of them drawn, the rest folded\n")
    lasts, sections = timed(lambda: [site_graph.graph_section(pages), site_graph.scatter_section(pages)])
    sys.stdout.write(f"both sections, with words: {lasts:.2f} s\n")
    for section in sections:
        figure = section.figures[0]
        lasts, block = timed(lambda data=figure.data: data_block("data", data))  # type: ignore[misc]
        bare = len(json.dumps(plain(figure.data)))
        words = f"{len(block) / 1e6:.2f} MB in the page ({bare / 1e6:.2f} MB as plain JSON, {bare / len(block):.1f} x)"
        sys.stdout.write(f"{figure.name}: {words}, {lasts:.2f} s to write\n")
    if asked.chromium is None:
        sys.stdout.write("There is no Chromium in PATH; name one with --chromium to count frames.\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.html", Path(folder) / "large.html"
        write(small, [site_graph.graph_section(made_site(1, np.random.default_rng(asked.seed)))])
        write(large, sections)
        sys.stdout.write(f"the whole file: {large.stat().st_size / 1e6:.2f} MB\n")
        observation(small, large, asked.chromium, pages=len(pages), software=asked.software)


def write(file: Path, sections: list[Section]) -> None:
    """A report of these sections."""
    extras = ReportExtras(site_graph.SCRIPTS, site_graph.STYLES)
    file.write_text(report_html(ReportPage("Site", "Made", NOW, "0", sections), extras), "utf-8")


def made_site(count: int, rng: np.random.Generator) -> SitePages:
    """Pages below few others; an eighth of the parts changes much."""
    parent, hubs, part = np.full(count, ROOT), [0], np.zeros(count, np.int64)
    paths = [""] * count
    draws = rng.random((2, count))
    for page in range(1, count):
        up = hubs[int(len(hubs) * draws[0, page] ** 2)]
        parent[page], part[page] = up, part[up] if up else page
        paths[page] = f"{paths[up] or '/' + DIRECTORIES[page % len(DIRECTORIES)]}/p{page}"
        if draws[1, page] < HUBS:
            hubs.append(page)
    hot = np.isin(part, rng.permutation(np.unique(part))[: max(len(np.unique(part)) // 8, 1)])
    changed = rng.random(count) < np.where(hot, 0.3, 0.002)
    change = np.where(changed, rng.choice([2, 2, 2, 3, 4, 5], count), ChangeClass.UNCHANGED)
    seen = NOW + 1e6 * rng.random(count)
    return SitePages(
        np.arange(count),
        [f"http://www.example.org{path or '/'}" for path in paths],
        change,
        rng.exponential(1e-6, count),
        np.where(changed, seen, np.nan),
        seen,
        rng.integers(1, 20, count),
        rng.choice(TYPES, count).tolist(),
        parent,
    ).by_url()


def observation(small: Path, large: Path, chromium: str, *, pages: int, software: bool) -> None:
    """Load both in a browser and move their graphs."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"]
    arguments += ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] if software else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(300_000)
        load(page, small)
        single = tell_frames("moving a single page (baseline)", page.evaluate(_FRAMES, MOVED))
        lasts, _ = timed(lambda: load(page, large))
        sys.stdout.write(f"from opening the file to a drawn graph: {lasts:.1f} s\n")
        for name, whole in (("folded", False), ("every page drawn", True)):
            sys.stdout.write(f"layout, {name}: {page.evaluate(_LAYOUT, whole) / 1000:.2f} s\n")
        tell_frames("moving, folded", page.evaluate(_FRAMES, MOVED))
        lasts, _ = timed(lambda: page.get_by_role("button", name="Unfold all").click())
        sys.stdout.write(f"to unfold everything: {lasts:.1f} s\n")
        ours = tell_frames("moving, every page drawn", page.evaluate(_FRAMES, MOVED))
        note("scripts", ours, "ms a frame", f"{pages:,} pages", baseline=single, beside="a single page")
        browser.close()


def load(page: Any, file: Path) -> None:  # noqa: ANN401 - a page of Playwright
    """Open a report and wait for its graph."""
    page.goto(file.as_uri())
    page.wait_for_selector("[data-drawn]")


def tell_frames(name: str, times: tuple[list[float], list[float]]) -> float:
    """Print how long frames took, and our part of them, which is returned."""
    (usual, seldom), ours = np.percentile(times[0], [50, 95]), float(np.median(times[1]))
    sys.stdout.write(f"{name}: median {usual:.1f} ms a frame, 95 % within {seldom:.1f} ms; {ours:.2f} ms in scripts\n")
    return ours


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and the result."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


if __name__ == "__main__":
    main()
