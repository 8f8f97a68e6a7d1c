"""Why a visit got no answer, as numbers below zero: those of Heritrix where it has one (conventions L3).

They stand where else the HTTP status stands.
"""

from __future__ import annotations

NO_NAME = -1
"""DNS says that the host has no address."""
NO_CONNECTION = -2
"""The host refuses connections."""
BROKEN_OFF = -3
"""The connection ended in the middle of the head, or what came is not HTTP."""
TOO_SLOW = -4
"""There was a connection, but no head of an answer in time."""
OUR_FAULT = -5
"""Our own code failed on the page (Heritrix: an unexpected exception). Twice in a row, and the page is quarantined."""
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
