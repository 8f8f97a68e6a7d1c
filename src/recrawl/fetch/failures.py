"""Why there is no answer, as numbers: those of Heritrix where it has one (conventions L3)."""

from __future__ import annotations

NO_NAME = -1
"""DNS says that the host has no address."""
NO_CONNECTION = -2
"""The host refuses connections."""
BROKEN_OFF = -3
"""The connection ended in the middle of the head, or what came is not HTTP."""
TOO_SLOW = -4
"""There was a connection, but no head of an answer in time."""
NO_NAME_SERVER = -6
"""DNS does not answer, or not now."""
NO_URL = -7
"""It is no URL that can be fetched."""
NO_TRUST = -21
"""TLS fails: the certificate is not valid, or there is no common protocol. Ours; Heritrix has no number for it."""
NO_ROUTE = -22
"""Nothing came back at all: there is no way to the address, or no connection in time. Ours."""
EMPTY = -404
"""The connection was closed without a byte."""
NOT_ALLOWED = -5001
"""The address is not one that we connect to."""
UNHEARD = frozenset({NO_NAME, NO_CONNECTION, NO_NAME_SERVER, NO_TRUST, NO_ROUTE})
"""Failures before anything was asked."""

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


def failure_of(code: int, library: object, *, sent: bool, refused: bool) -> int:
    """The number for an error of libcurl; ``library`` is the module ``pycurl``, which knows its own numbers.

    ``sent`` says whether a request went out, ``refused`` whether the other side said no to the connection.
    """
    known = {getattr(library, name, None): number for name, number in _BY_NAME.items()}
    number = known.get(code, BROKEN_OFF)
    if sent:
        return number if number in _AFTER_SENDING else BROKEN_OFF
    nobody_there = number == TOO_SLOW or (number == NO_CONNECTION and not refused)
    return NO_ROUTE if nobody_there else number


_AFTER_SENDING = (TOO_SLOW, EMPTY)
"""What can still go wrong then; libcurl calls an answer that is not HTTP an unsupported protocol."""
