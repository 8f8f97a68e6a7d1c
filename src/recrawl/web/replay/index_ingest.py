"""Lines of an index that others send: added, or named to be forgotten (conventions A5)."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdxj import read_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.web.replay.replay_port import IngestOptions, ReplayPort
from recrawl.web.replay.replay_urls import RefusalError


def add(archive: ReplayPort, data: bytes, options: IngestOptions) -> str:
    """Take lines over, all or none, unless bad ones are to be passed over; what became of them, in words."""
    if archive.ingest is None:
        raise RefusalError("This archive does not accept captures.", 405)
    if not data.strip():
        raise RefusalError("The body has no lines. Send CDX or CDXJ.")
    taken = archive.ingest(data, options)
    return f"Added {taken.added} records\n" + (f"Skipped {taken.bad} bad lines\n" if taken.bad else "")


def delete(archive: ReplayPort, data: bytes, options: IngestOptions) -> str:
    """Forget the captures that lines name. What a visit of our own brought stays."""
    if archive.ingest is None:
        raise RefusalError("This archive does not accept captures.", 405)
    dropped = 0
    batches = batches_of(data, ReadReport(strict=not options.skip_bad))
    with archive.store() as store:
        for batch in batches:
            seconds = np.floor(batch.column("time").to_numpy())
            for url, second in zip(batch.column("url").to_pylist(), seconds.tolist(), strict=True):
                page = store.find(url)
                if page is None:
                    continue
                there = store.captures_between(page.id, second, second + 0.999_999, 100)
                dropped += store.drop_captures(there.page, there.time)
    return f"Deleted {dropped} records\n"


def batches_of(data: bytes, report: ReadReport) -> list[Any]:
    """Lines of CDX or CDXJ as captures, all of them: so a bad one shows before anything is done.

    Of the file that a line names only its bare name is taken: no line leads out of the folder of our archive files.
    """
    first = data.lstrip().partition(b"\n")[0]
    read = read_cdxj if b"{" in first else read_cdx
    return [_with_bare_names(batch) for batch in read(io.BytesIO(data), "the lines", report)]


def _with_bare_names(batch: Any) -> Any:  # noqa: ANN401 - pyarrow ships no types
    pa: Any = require("pyarrow", "columns")
    names = [_bare(name) for name in batch.column("file").to_pylist()]
    at = batch.schema.get_field_index("file")
    return batch.set_column(at, batch.schema.field(at), pa.array(names, pa.string()))


def _bare(name: str) -> str:
    """The last part of a path.

    >>> _bare("/srv/other/a.warc.gz"), _bare("../../a.warc.gz"), _bare(".."), _bare("a.warc.gz")
    ('a.warc.gz', 'a.warc.gz', '', 'a.warc.gz')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    return "" if last in {".", ".."} else last
