"""What changed between two captures. Pure: bytes in, a verdict out.

From cheap to expensive: the status of the server (304), the bytes, then text, links or data without their noise.
"""

from recrawl.detect.body import decoded, media_type, text_of, unchunked, unfolded
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.change_verdict import ChangeResult, classify_change, known_after, unchanged
from recrawl.detect.fingerprint import PageState
from recrawl.detect.html.html_document import Document, read_html

__all__ = [
    "ChangeCriteria",
    "ChangeResult",
    "Document",
    "PageState",
    "classify_change",
    "decoded",
    "known_after",
    "media_type",
    "read_html",
    "text_of",
    "unchanged",
    "unchunked",
    "unfolded",
]
