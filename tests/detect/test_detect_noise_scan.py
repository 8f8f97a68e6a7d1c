"""The quick search for noise finds what the patterns find."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recrawl.detect.noise.text_noise import TEXT_RULES, without_noise
from recrawl.model.compiled import can_compile

pytestmark = pytest.mark.skipif(not can_compile(), reason="numba is not installed")

HINTS = [hint for rule in TEXT_RULES for hint in rule.hints]
PIECES = st.sampled_from(
    [
        *HINTS,
        *(hint.upper() for hint in HINTS),
        "visitors", "page views", "session id", "2 minutes", "a year", "in", "few", "Mon, 3 May 2026,", "2026-01-02",
        "9:15", "10:20:30", "12", "7", "\u0663", "ms", ":", "=", "#", "abcd", "-", ",", ".", "Z", "am", "\u212a",
        "to\u212aen",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "0123456789abcdef01", "a1" * 14,
        "aB3dE6gH9jK2mN5pQ8sT1vW4", "internationalisation", "größe", "İ", "東京", "\ud800", "\x01",
    ]
)  # fmt: skip
SPACES = st.sampled_from(["", " ", " ", "  ", "\n", "\t", "\xa0", "\u2003", "\u2028", "\x1c", "\x85"])
TEXTS = st.lists(st.tuples(SPACES, PIECES), max_size=14).map(lambda found: "".join(map("".join, found)))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("visits 2026-01-02 10:20: 7")
@example("took 3f2504e0-4f89-11d3-9a0c-0305e82c3301 12 ms")
@example("12:3")
@example(":")
@example("ago")
def test_it_finds_no_less(text):
    assert without_noise(text, use_kernels=True) == without_noise(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_the_same(text):
    assert without_noise(text, use_kernels=True) == without_noise(text)
