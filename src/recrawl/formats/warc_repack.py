"""WARC files in the packing that everybody reads: each record a gzip member of its own (conventions W1)."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from recrawl.formats.captures import Report
from recrawl.formats.warc_members import GZIP
from recrawl.formats.warc_reader import opened
from recrawl.formats.warc_stream import PLAIN, Window, fastwarc, magic_of, records


def is_common(path: Path) -> bool:
    """Whether a WARC file is packed as every tool reads it: not at all, or each record in a gzip member of its own.

    zstd and LZ4 are for few tools, and of one long stream of gzip nothing can be read alone. Looks at two records.
    """
    with opened(path) as file:
        magic = magic_of(file)
        if magic == GZIP:
            places = [at for _, at in islice(records(Window(file), str(path), Report()), 2)]
            return all(at > 0 and os.pread(file.fileno(), len(GZIP), at) == GZIP for at in places[1:])
        return magic == PLAIN


def repack(path: Path, target: BinaryIO, report: Report) -> int:
    """Write all records of a file anew, each in a gzip member; returns how many.

    Blocks and the fields of records stay as they are. Memory does not grow with the file.
    """
    library, count = fastwarc(), 0
    with opened(path) as file:
        for record, _ in records(Window(file), str(path), report):
            member = library.GzipWriter(target)
            record.write(member)
            member.finish()
            count += 1
    return count
