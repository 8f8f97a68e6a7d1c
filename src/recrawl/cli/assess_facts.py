"""What ``recrawl assess`` has to say: in words, and as plain values for other programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import usual_delay
from recrawl.assess.statement import Found
from recrawl.assess.statement_json import iso, statement_json
from recrawl.cli.assess_answer import Answer
from recrawl.cli.assess_composites import composite_columns, composite_words
from recrawl.cli.assess_sources import Archive
from recrawl.cli.assess_tables import crawls, first_rows, pages, sections, subsites
from recrawl.cli.import_errors import row_of
from recrawl.cli.tables import rows_of
from recrawl.crawl.archive_noise import noise_words
from recrawl.crawl.composite_survey import composite_facts
from recrawl.model.words import counted
from recrawl.show.archive_quality import archive_words, deduplication_words, shown_words
from recrawl.show.quality import statement_words

SCHEMA = "recrawl-archive-quality/1"


def words(found: Answer, archive: Archive | None) -> list[str]:
    """The statement about the archive, about what it shows, and about its last crawl that was seen again."""
    lines: list[str] = []
    for paragraph in paragraphs(found, archive):
        lines += [*([""] if lines else []), *paragraph]
    return lines


def paragraphs(found: Answer, archive: Archive | None) -> list[list[str]]:
    """The same by what it is about: three paragraphs, and a fourth if there is such a crawl, which it begins with."""
    lines = [*archive_words(found.quality), *deduplication_words(found.quality.deduplication, found.sites)]
    if archive is not None:
        taken = sum(1 for one in archive.brought if one.accepted)
        files = f"{taken:,} of {counted(len(archive.brought), 'file')} {'holds' if taken == 1 else 'hold'} captures."
        lines = [files, *lines]
    if found.left_out:
        lines.append(
            f"Left out: {counted(found.left_out, 'resource')} (robots.txt, style sheets, pictures and the like). With "
            "the setting archive.resources=pages they count as pages."
        )
    lines += noise_words(found.noise)
    if merged := found.merged.words(None if archive is None else archive.merge_within):
        lines.append(merged)
    if found.recorded.captures:
        own = counted(found.recorded.captures, "capture")
        lines.append(f"The workspace holds the statements of {own} of its own: recrawl capture --list.")
    said = [
        lines,
        shown_words(found.shown, found.chance, found.together, found.urls),
        composite_words(found.composed),
    ]
    crawl = last_judged(found)
    if crawl is not None and len(found.quality.rounds) > 1:
        title = f"The last crawl of {found.sites[found.quality.rounds.site[crawl]]} that was seen again:"
        said.append([title, *statement_words(found.quality.of_crawl(crawl), found.names)])
    return said


def last_judged(found: Answer) -> int | None:
    """The last crawl, of the site with most pages, of which any page was seen again; ``None`` if there is none."""
    pairs, site = found.quality.pairs, found.quality.site
    judged = (pairs.found != Found.UNKNOWN) & ~found.quality.deduplication.certain()[site[pairs.row]]
    if not bool(judged.any()):
        return None
    pages = np.bincount(site)
    largest = pages[site[pairs.row[judged]]]
    return int(pairs.round[judged][largest == largest.max()].max())


def facts(found: Answer, archive: Archive | None, most: int) -> dict[str, Any]:
    """Everything for other programs; of every table at most so many rows."""
    quality, seen = found.quality, found.shown
    crawl = last_judged(found)
    inside = found.together.inside
    breaking = np.flatnonzero(seen.there() & ~inside)
    known = found.chance[seen.there() & ~np.isnan(found.chance)]
    return {
        "schema": SCHEMA,
        "files": [] if archive is None else [_file(one) for one in archive.brought],
        "errors": [] if archive is None else [row_of(error) for error in archive.errors.first],
        "errorsCount": 0 if archive is None else archive.errors.count,
        "captures": int((~quality.looks.gone).sum()),
        "looksInVain": int(quality.looks.gone.sum()),
        "pages": len(quality.looks),
        "leftOut": found.left_out,
        "sites": found.sites,
        "from": iso(quality.start),
        "until": iso(quality.end),
        "crawlsCount": len(quality.rounds),
        "capturesOnRecord": found.recorded.captures,
        "noise": {host: [asdict(part) for part in parts] for host, parts in found.noise.items()},
        "merged": {**found.merged.as_json(), "within": None if archive is None else archive.merge_within},
        "deduplicated": _deduplicated(found),
        "words": words(found, archive),
        "shown": {
            "at": iso(found.at),
            "pages": int(seen.there().sum()),
            "proved": int(seen.proved().sum()),
            "expectedUnchanged": float(known.sum()) if len(known) else None,
            "expectedUnchangedOf": len(known),
            "secondsApart": float(np.ptp(seen.time[seen.there()])) if bool(seen.there().any()) else None,
            "validTogether": {
                "pages": int(inside.sum()),
                "all": len(breaking) == 0 and bool(inside.any()),
                "from": iso(found.together.start),
                "until": iso(found.together.end),
                "brokenBy": [found.urls[row] for row in breaking[:most].tolist()],
            },
        },
        "composites": composite_facts(found.composed),
        "worstComposites": rows_of(composite_columns(found.composed, most)),
        "lastCrawlSeenAgain": None if crawl is None else statement_json(quality.of_crawl(crawl), found.names, most),
        "delay": usual_delay(quality),
        "crawls": rows_of(first_rows(crawls(found), most)),
        "sections": rows_of(first_rows(sections(found), most)),
        "worstPages": rows_of(first_rows(pages(found), most)),
        "subsites": rows_of(first_rows(subsites(found), most)),
    }


def _deduplicated(found: Answer) -> list[dict[str, object]]:
    """Sites whose index seems to leave out captures that found a page unchanged, or may."""
    about = found.quality.deduplication
    return [
        {
            "site": found.sites[site],
            "comparisons": int(about.comparisons[site]),
            "repeats": 0,
            "absent": int(about.absent[site]),
            "coherenceKnown": not bool(about.certain()[site]),
        }
        for site in np.flatnonzero(about.suspected).tolist()
    ]


def _file(one: Any) -> dict[str, object]:  # noqa: ANN401 - a Brought; importing its room here would cost time
    return {"file": one.source, "format": one.format.value, "captures": one.accepted, "broken": one.broken}
