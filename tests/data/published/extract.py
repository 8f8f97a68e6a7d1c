"""Cut some sources out of the data-sources folder: ``extract.py FOLDER COUNT``, written beside this file."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST = 80
"""Events of a source, at most."""


def main(folder: Path, count: int) -> None:
    """Keep ``count`` sources of few events, evenly over the table, with all of their events."""
    sources = pq.read_table(folder / "sources.parquet")
    few = sources.filter(pc.less_equal(sources["n_events"], MOST))
    few = few.take(pa.array([place * len(few) // count for place in range(count)]))
    events = pq.read_table(folder / "events.parquet")
    kept = events.filter(pc.is_in(events["source_id"], few["source_id"]))
    here = Path(__file__).parent
    pq.write_table(few, here / "sources.parquet", compression="zstd")
    pq.write_table(kept, here / "events.parquet", compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
