"""Cut a small extract out of the recorded sites: ``extract.py FOLDER SITE PAGES``, written beside this file."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def main(folder: Path, site: str, count: int) -> None:
    """Keep pages that link or are linked to first, and a fifth of the others, so that both kinds remain."""
    pages, events, edges = (
        pq.read_table(folder / f"{name}.parquet", filters=[("site", "==", site)])
        for name in ("pages", "events", "edges")
    )
    linked = set(edges["src"].to_pylist()) | set(edges["dst"].to_pylist())
    alone = [page for page in pages["page_id"].to_pylist() if page not in linked][::5]
    kept = sorted([*alone, *sorted(linked)[: count - len(alone)]])
    chosen = pa.array(kept, pa.int32())
    tables = {
        "pages": pages.filter(pc.is_in(pages["page_id"], chosen)),
        "events": events.filter(pc.is_in(events["page_id"], chosen)),
        "edges": edges.filter(pc.and_(pc.is_in(edges["src"], chosen), pc.is_in(edges["dst"], chosen))),
    }
    for name, table in tables.items():
        pq.write_table(table, Path(__file__).with_name(f"{name}.parquet"), compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
