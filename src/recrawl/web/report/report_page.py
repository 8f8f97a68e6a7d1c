"""One HTML file from sections: with everything inside it, so that it opens offline and for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.time import to_iso
from recrawl.web.html_templates import InlineAssets, environment, plain
from recrawl.web.report.report_section import Section

SCHEMA = "recrawl-report/1"
_ALWAYS = ("page.js", "tables.js")
_CHARTS = ("vendor/echarts.min.js", "charts.js")
_STYLES = ("look.css",)


@dataclass(frozen=True, slots=True)
class ReportPage:
    """All that a report says."""

    title: str
    about: str
    """What it is about, in a sentence."""
    made: float
    """Seconds since the epoch."""
    version: str
    """Of recrawl."""
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class ReportExtras:
    """What figures of other kinds than ``charts.js`` draws need: scripts by kind, and style sheets."""

    scripts: Mapping[str, Sequence[str]]
    styles: Sequence[str] = ()


def report_html(report: ReportPage, extras: ReportExtras | None = None) -> str:
    """The page. Only scripts that are needed are in it, and its policy lets no others run."""
    extras = extras or ReportExtras({})
    assets = InlineAssets()
    scripts = _scripts(report.sections, extras)
    template = environment(assets).get_template("report/page.html")
    return str(
        template.render(
            report=report,
            made=to_iso(report.made),
            policy=assets.policy(scripts),
            scripts=scripts,
            styles=[*_STYLES, *extras.styles],
        )
    )


def _scripts(sections: Sequence[Section], extras: ReportExtras) -> list[str]:
    kinds = {figure.kind for section in sections for figure in section.figures}
    wanted = [*_ALWAYS, *(_CHARTS if kinds else ())]
    for kind, scripts in extras.scripts.items():
        if kind in kinds:
            wanted += scripts
    return list(dict.fromkeys(wanted))


def report_json(report: ReportPage) -> dict[str, Any]:
    """The same for other programs: every word, number and column of the page. Times are seconds since the epoch."""
    sections = [plain(asdict(section)) for section in report.sections]
    return {
        "schema": SCHEMA,
        "title": report.title,
        "about": report.about,
        "made": to_iso(report.made),
        "version": report.version,
        "sections": sections,
    }
