import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect.validator_trust import FALSE_ANSWERS, NO_SIGN, ValidatorEvidence, is_believed, is_check, sign_of
from recrawl.model import Capture, Validators, Verdict
from recrawl.time import to_http_date

NOW = 1_700_000_000.0
EARLIER, LATER = to_http_date(NOW - 500), to_http_date(NOW)


def answer(status=200, etag="", modified="", date=LATER):
    headers = {"Date": date, "ETag": etag, "Last-Modified": modified}
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items() if value), "", ""]
    return Capture("http://a.example/", NOW, status, "\r\n".join(lines).encode())


@pytest.mark.parametrize(
    ("said", "before", "lies"),
    [
        (answer(etag='"1"'), Validators('"1"', ""), 1),
        (answer(etag='W/"1"'), Validators('"1"', ""), 1),
        (answer(etag='"2"'), Validators('"1"', ""), 0),
        (answer(etag='"1"', modified=LATER), Validators('"1"', EARLIER), 1),  # the entity tag goes first
        (answer(etag='"2"', modified=EARLIER), Validators('"1"', EARLIER), 0),
        (answer(modified=EARLIER), Validators("", EARLIER), 1),
        (answer(modified=LATER), Validators("", EARLIER), 0),
        (answer(modified=EARLIER), Validators("", LATER), 1),  # not modified since that
        (answer(), Validators("", EARLIER), 0),
        (answer(), Validators('"1"', ""), 0),
    ],
)
def test_a_changed_page_with_the_validators_of_before_is_a_lie(said, before, lies):
    assert sign_of(said, Verdict.CHANGED, before, conditional=False) == ValidatorEvidence(checks=1, lies=lies)


def test_who_did_not_say_304_did_not_lie():
    said, before = answer(etag='"1"'), Validators('"1"', "")
    assert sign_of(said, Verdict.CHANGED, before, conditional=True) == NO_SIGN
    assert sign_of(said, Verdict.UNKNOWN, before, conditional=False) == NO_SIGN
    assert sign_of(said, Verdict.CHANGED, Validators(), conditional=False) == NO_SIGN
    assert sign_of(answer(404, etag='"1"'), Verdict.CHANGED, before, conditional=False) == NO_SIGN


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize(
    ("said", "before", "restless"),
    [
        (answer(modified=LATER), Validators("", EARLIER), 1),
        (answer(modified=LATER, date=""), Validators("", EARLIER), 1),
        (answer(modified=LATER), Validators("", LATER), 0),
        (answer(modified=to_http_date(NOW - 100)), Validators("", EARLIER), 0),
        (answer(modified="yesterday"), Validators("", EARLIER), 0),
        (answer(modified=LATER), Validators('"1"', ""), 0),
    ],
)
def test_the_same_page_modified_just_now_is_restless(said, before, restless, conditional):
    assert sign_of(said, Verdict.UNCHANGED, before, conditional=conditional) == ValidatorEvidence(restless=restless)


def test_one_lie_may_be_an_accident_and_a_liar_can_redeem_itself():
    assert is_believed(0, 0)
    assert is_believed(1, FALSE_ANSWERS - 1)
    assert not is_believed(FALSE_ANSWERS, FALSE_ANSWERS)
    assert not is_believed(30, FALSE_ANSWERS)
    assert is_believed(1_000, FALSE_ANSWERS)


@given(st.integers(1, 2**40), st.floats(0, 4e9))
def test_checks_are_drawn_alike_every_time_and_shares_nest(page, due):
    drawn = [is_check(page, due, share) for share in (0.0, 0.05, 0.5, 1.0)]
    assert drawn == sorted(drawn)
    assert drawn[0] is False
    assert drawn[-1] is True
    assert drawn == [is_check(page, due, share) for share in (0.0, 0.05, 0.5, 1.0)]


def test_the_share_of_checks_is_as_asked():
    checks = sum(is_check(page, 86_400.0 * visit, 0.05) for page in range(100) for visit in range(100))
    assert 400 < checks < 600
