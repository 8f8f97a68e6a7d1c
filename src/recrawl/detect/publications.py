"""Links to publications, told by their URLs: what a crawler of scholarly pages comes back for (HACS §VI)."""

from __future__ import annotations

import re

_FILE = re.compile(r"^[^?#]*\.(pdf|ps|eps|dvi|djvu?|docx?|odt|rtf|epub)(\.(gz|z|bz2|zip))?([?#]|$)", re.IGNORECASE)
_PLACE = re.compile(r"^https?://((dx\.)?doi\.org/10\.|([a-z]+\.)?arxiv\.org/(abs|pdf)/)", re.IGNORECASE)


def is_publication(url: str) -> bool:
    """Whether a URL names a document as papers are published in: a PDF and the like, a DOI, a preprint of arXiv.

    >>> is_publication("http://foo.edu/~bar/a.pdf"), is_publication("http://foo.edu/a.ps.gz?x=1")
    (True, True)
    >>> is_publication("https://doi.org/10.1145/1"), is_publication("http://foo.edu/pdf/")
    (True, False)
    """
    return _FILE.match(url) is not None or _PLACE.match(url) is not None
