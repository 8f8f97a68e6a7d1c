"""Cut a few pages of recorded sites with their links out: ``extract.py FOLDER PAGES``, written beside this file.

Run from the root of the repository. No text is kept: what stands in its place are the strongest of the axes on which
texts are compared, each as often as it is strong, so that pages that read alike still do.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recrawl.predict.related_pages import learn_text_space

WATCHED, JUDGED, END = 1_609_459_200, 1_711_929_600, 1_735_689_600
"""1 January 2021, 1 April 2024 and 1 January 2025: pages were there from the first to the second."""
LEFT_OUT = "awesome"
"""A site of sixteen lists that have more events than all other pages kept."""
AXES, STRONGEST, TIMES = 96, 8, 12
"""Axes of the space, those kept of a text, and how many words stand for a text at most."""
KEY = ["site", "page_id"]
ORDER = [(name, "ascending") for name in KEY]
EVENTS = (
    "site", "page_id", "t", "kind", "bulk", "missing", "net_int", "net_ext", "size", "text_len", "n_links_int",
    "n_links_ext", "n_images", "n_tables",
)  # fmt: skip
TEXTS = ("site", "page_id", "t_ref", "title", "text")
EDGES = ("site", "src", "dst", "t_add", "t_rem")


def main(folder: Path, count: int) -> None:
    """Keep at most ``count`` pages of each site that got links while they were watched, and as many that got none."""
    rng = np.random.default_rng(1)
    pages = _read(folder / "pages.parquet", "site", "page_id", "url", "first_seen", "deleted_at")
    there = pc.and_(pc.less(pages["first_seen"], WATCHED), pc.greater(pc.fill_null(pages["deleted_at"], END), JUDGED))
    pages = pages.filter(pc.and_(there, pc.not_equal(pages["site"], LEFT_OUT))).select(["site", "page_id", "url"])
    events = _before(_read(folder / "events.parquet", *EVENTS), "t")
    new = pc.greater(pc.fill_null(pc.add(events["net_int"], events["net_ext"]), 0), 0)
    own = pc.and_(pc.equal(events["kind"], "mod"), pc.invert(events["bulk"]))
    while_watched = pc.and_(pc.greater(events["t"], WATCHED), pc.less(events["t"], JUDGED))
    lively = events.filter(pc.and_(pc.and_(new, own), while_watched))
    halves = [_some(pages.join(lively, KEY, join_type=kind), count) for kind in ("left semi", "left anti")]
    pages = pa.concat_tables(halves).sort_by(ORDER)
    texts = _of(pages, _before(_read(folder / "texts.parquet", *TEXTS), "t_ref"), ("site", "page_id", "t_ref"))
    edges = _before(_read(folder / "edges.parquet", *EDGES), "t_add")
    for end in ("src", "dst"):
        edges = edges.join(pages, ["site", end], KEY, join_type="left semi")
    found = {
        "pages": pages,
        "events": _of(pages, events, ("site", "page_id", "t")),
        "texts": _without_words(texts, rng),
        "edges": edges.sort_by([(name, "ascending") for name in ("site", "src", "dst", "t_add")]),
    }
    for name, table in found.items():
        pq.write_table(table, Path(__file__).with_name(f"{name}.parquet"), compression="zstd", compression_level=19)


def _some(pages: pa.Table, count: int) -> pa.Table:
    """At most so many pages of each site, at equal steps."""
    pages, kept = pages.sort_by(ORDER), []
    for site in sorted(set(pages["site"].to_pylist())):
        own = pages.filter(pc.equal(pages["site"], site))
        kept.append(own.take(pa.array(range(0, len(own), -(-len(own) // count)))))
    return pa.concat_tables(kept)


def _read(file: Path, *columns: str) -> pa.Table:
    table = pq.read_table(file, columns=list(columns))
    return table.set_column(0, "site", table["site"].cast(pa.string()))


def _before(table: pa.Table, column: str) -> pa.Table:
    return table.filter(pc.less(table[column], END))


def _of(pages: pa.Table, table: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """The rows of these pages, in an order."""
    here = table.join(pages, KEY, join_type="left semi")
    return here.sort_by([(name, "ascending") for name in order])


def _without_words(texts: pa.Table, rng: np.random.Generator) -> pa.Table:
    written = [f"{title or ''} {text or ''}" for title, text in zip(*_lists(texts, "title", "text"), strict=True)]
    vectors = learn_text_space(written, rng, dimensions=AXES).vectors(written)
    codes = []
    for vector in vectors:
        axes = np.argsort(-np.abs(vector), kind="stable")[:STRONGEST]
        share = vector[axes] ** 2
        often = np.round(TIMES * share / max(float(share.sum()), 1e-9)).astype(int)
        signed = [f"{'up' if vector[axis] > 0 else 'down'}{axis}" for axis in axes]
        codes.append(" ".join(word for word, times in zip(signed, often, strict=True) for _ in range(times)))
    nothing = pa.nulls(len(texts), pa.string())
    return texts.select(["site", "page_id", "t_ref"]).append_column("title", nothing).append_column("text", [codes])


def _lists(table: pa.Table, *names: str) -> list[list[str | None]]:
    return [table[name].to_pylist() for name in names]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
