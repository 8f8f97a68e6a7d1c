"""What changed between two captures. Pure: bytes in, a judgement out.

From cheap to dear: what the server says (304), the bytes, then text, links or data without their noise.
"""

from recrawl.detect.body import decoded, media_type, text_of, unchunked, unfolded
from recrawl.detect.html import Document, read_html
from recrawl.detect.known import Known
from recrawl.detect.standards import Standards
from recrawl.detect.verdict import Judgement, judge, known_after, unchanged

__all__ = [
    "Document",
    "Judgement",
    "Known",
    "Standards",
    "decoded",
    "judge",
    "known_after",
    "media_type",
    "read_html",
    "text_of",
    "unchanged",
    "unchunked",
    "unfolded",
]
