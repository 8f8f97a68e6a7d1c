"""What changed between two captures. Pure: bytes in, a judgement out.

From cheap to dear: what the server says (304), the bytes, then text, links or data without their noise.
"""

from recrawl.detect.body import decoded, media_type, text_of, unchunked, unfolded
from recrawl.detect.html import Document, read_html
from recrawl.detect.verdict import Judgement, Known, judge, unchanged

__all__ = [
    "Document",
    "Judgement",
    "Known",
    "decoded",
    "judge",
    "media_type",
    "read_html",
    "text_of",
    "unchanged",
    "unchunked",
    "unfolded",
]
