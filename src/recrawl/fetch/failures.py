"""Which of the failures an error of libcurl is."""

from __future__ import annotations

from recrawl.model.failures import BROKEN_OFF, EMPTY, NO_CONNECTION, NO_NAME, NO_ROUTE, NO_TRUST, NO_URL, TOO_SLOW

_BY_NAME = {
    "E_COULDNT_RESOLVE_HOST": NO_NAME,
    "E_COULDNT_CONNECT": NO_CONNECTION,
    "E_OPERATION_TIMEDOUT": TOO_SLOW,
    "E_GOT_NOTHING": EMPTY,
    "E_URL_MALFORMAT": NO_URL,
    "E_UNSUPPORTED_PROTOCOL": NO_URL,
    "E_SSL_CONNECT_ERROR": NO_TRUST,
    "E_PEER_FAILED_VERIFICATION": NO_TRUST,
    "E_SSL_CIPHER": NO_TRUST,
    "E_SSL_ISSUER_ERROR": NO_TRUST,
    "E_SSL_INVALIDCERTSTATUS": NO_TRUST,
}


def failure_of(code: int, library: object, *, sent: bool, heard: bool) -> int:
    """The number for an error of libcurl; ``library`` is the module ``pycurl``, which knows its own numbers.

    ``sent`` says whether a request went out, ``heard`` whether the other side said anything, if only no.
    """
    known = {getattr(library, name, None): number for name, number in _BY_NAME.items()}
    number = known.get(code, BROKEN_OFF)
    if sent:
        return number if number in _AFTER_SENDING else BROKEN_OFF
    return NO_ROUTE if number in (TOO_SLOW, NO_CONNECTION) and not heard else number


_AFTER_SENDING = (TOO_SLOW, EMPTY)
"""What can still go wrong then; libcurl calls an answer that is not HTTP an unsupported protocol."""
