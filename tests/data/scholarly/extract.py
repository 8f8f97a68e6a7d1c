"""Cut when scholars' sites had new links out of a data set: ``extract.py FOLDER``, written beside this file.

Kept are numbers only. Sites are numbered, pages have no URLs.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BEGIN, END = 1_609_459_200, 1_704_067_200
"""The three years from 1 January 2021 to 1 January 2024, UTC."""
EVENTS = ("site", "page_id", "t", "kind", "new_int", "site_new_int")


def main(folder: Path) -> None:
    """Home pages and pages within two clicks of them, and what happened to them in three years."""
    pages = pq.read_table(folder / "pages.parquet", columns=["site", "page_id", "is_home", "in_d2"])
    pages = pages.filter(pc.or_(pages["is_home"], pages["in_d2"]))
    events = pq.read_table(folder / "events.parquet", columns=list(EVENTS))
    events = events.filter(pc.and_(pc.greater_equal(events["t"], BEGIN), pc.less(events["t"], END)))
    events = events.join(pages.select(["site", "page_id"]), ["site", "page_id"], join_type="inner")
    pages = pages.join(events.select(["site", "page_id"]), ["site", "page_id"], join_type="left semi")
    names = sorted(set(pages["site"].to_pylist()))
    number = {name: f"site{place:02d}" for place, name in enumerate(names)}
    for name, table in {"pages": pages, "events": events.select(EVENTS)}.items():
        numbered = table.set_column(0, "site", pa.array([number[site] for site in table["site"].to_pylist()]))
        ordered = numbered.sort_by([(column, "ascending") for column in table.column_names[:3]])
        pq.write_table(ordered, Path(__file__).with_name(f"{name}.parquet"), compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
