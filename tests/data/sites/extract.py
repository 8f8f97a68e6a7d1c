"""Cut a few pages of every recorded site out: ``extract.py FOLDER PAGES``, written beside this file."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DAYS = 400
"""Of each page, from its first event on."""
EVENTS = (
    "site", "page_id", "t", "kind", "bulk", "missing", "net_int", "net_ext", "size", "text_len", "n_links_int",
    "n_links_ext", "n_images", "n_tables",
)  # fmt: skip


def main(folder: Path, count: int) -> None:
    """Keep every so-and-so-many-th page of each site, at most ``count``, and how its first year went."""
    pages = pq.read_table(folder / "pages.parquet", columns=["site", "page_id", "url"])
    events = pq.read_table(folder / "events.parquet", columns=list(EVENTS))
    here = Path(__file__).parent
    kept_pages, kept_events = [], []
    for site in sorted(set(pages["site"].to_pylist())):
        own = pages.filter(pc.equal(pages["site"], site)).sort_by("page_id")
        own = own.take(pa.array(range(0, len(own), -(-len(own) // count))))
        told = events.filter(pc.and_(pc.equal(events["site"], site), pc.is_in(events["page_id"], own["page_id"])))
        told = told.sort_by([("page_id", "ascending"), ("t", "ascending")])
        first = dict(reversed(list(zip(told["page_id"].to_pylist(), told["t"].to_pylist(), strict=True))))
        ends = pa.array([first[page] + DAYS * 86_400 for page in told["page_id"].to_pylist()])
        kept_pages.append(own)
        kept_events.append(told.filter(pc.less_equal(told["t"], ends)))
    pq.write_table(pa.concat_tables(kept_pages), here / "pages.parquet", compression="zstd")
    pq.write_table(pa.concat_tables(kept_events), here / "events.parquet", compression="zstd")
    edges = pq.read_schema(folder / "edges.parquet").empty_table()
    pq.write_table(edges, here / "edges.parquet", compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
