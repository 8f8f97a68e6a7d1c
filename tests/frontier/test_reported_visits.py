"""What crawlers say of a fetch, and what it means for change."""

import pytest

from recrawl.app.frontier.client_metadata import said_of
from recrawl.detect.reported_visits import ReportedVisit, digest_of, judge
from recrawl.model import ChangeKind, Outcome, Validators, Verdict

SAME, OTHER = "a" * 40, "b" * 40
KNOWN = Validators(etag='"1"', last_modified="Mon", digest=digest_of(SAME))
NONE, CONTENT, EXISTENCE = ChangeKind.NONE, ChangeKind.CONTENT, ChangeKind.EXISTENCE


def judged(told, before=KNOWN):
    visits, validators = judge([1], [5.0], [told], [before])
    return Outcome(visits.outcome[0]), Verdict(visits.verdict[0]), ChangeKind(int(visits.kinds[0])), validators[0]


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({}, Verdict.UNKNOWN),
        ({"status": 200}, Verdict.UNKNOWN),
        ({"digest": SAME, "etag": '"2"'}, Verdict.UNCHANGED),
        ({"digest": OTHER, "etag": '"1"'}, Verdict.CHANGED),
        ({"digest": "md5:" + "0" * 32}, Verdict.UNKNOWN),
        ({"digest": "md5:" + "0" * 32, "etag": 'W/"1"'}, Verdict.UNCHANGED),
        ({"etag": '"2"'}, Verdict.CHANGED),
        ({"last_modified": "Mon"}, Verdict.UNCHANGED),
        ({"last_modified": "Tue"}, Verdict.CHANGED),
        ({"status": 304}, Verdict.UNCHANGED),
        ({"status": 304, "changed": True}, Verdict.CHANGED),
        ({"digest": OTHER, "changed": False}, Verdict.UNCHANGED),
        ({"status": 503, "digest": OTHER}, Verdict.UNKNOWN),
        ({"status": 200, "failed": True, "digest": OTHER}, Verdict.UNKNOWN),
    ],
)
def test_verdicts(told, verdict):
    assert judged(ReportedVisit(**told))[1] == verdict


def test_a_page_that_goes_away_and_comes_back_changes_each_time():
    gone = judged(ReportedVisit(status=404))
    assert gone[:3] == (Outcome.GONE, Verdict.CHANGED, EXISTENCE)
    assert judged(ReportedVisit(status=410), gone[3])[:3] == (Outcome.GONE, Verdict.UNCHANGED, NONE)
    back = judged(ReportedVisit(status=200, digest=SAME), gone[3])
    assert back[:3] == (Outcome.FETCHED, Verdict.CHANGED, EXISTENCE)
    assert not back[3].gone
    assert judged(ReportedVisit(status=404), Validators())[1] == Verdict.UNKNOWN  # there was nothing before


def test_the_target_is_the_version_of_a_redirect():
    first = judged(ReportedVisit(status=301, redirect_to="http://a/x"), Validators())
    assert first[:2] == (Outcome.REDIRECTED, Verdict.UNKNOWN)
    assert judged(ReportedVisit(status=301, redirect_to="http://a/x"), first[3])[1] == Verdict.UNCHANGED
    assert judged(ReportedVisit(status=302, redirect_to="http://a/y"), first[3])[1] == Verdict.CHANGED


def test_a_failure_leaves_what_is_known():
    for told in ({"status": 500}, {"failed": True}, {"status": 403}, {"status": -4}, {"status": 99_999}):
        outcome, verdict, kinds, after = judged(ReportedVisit(**told))
        assert outcome > Outcome.GONE
        assert (verdict, kinds, after) == (Verdict.UNKNOWN, NONE, None)


def test_a_304_keeps_the_version_and_may_bring_a_new_etag():
    assert judged(ReportedVisit(status=304))[3] is None
    after = judged(ReportedVisit(status=304, etag='"9"'))[3]
    assert (after.etag, after.digest) == ('"9"', KNOWN.digest)


def test_names_of_several_crawlers_are_understood():
    storm = {"fetch.statusCode": ["301"], "_redirTo": ["http://a/x"], "fetch.loadingTime": ["250"], "signature": ["s"]}
    visit, _ = said_of(storm)
    assert (visit.status, visit.redirect_to, visit.seconds, visit.digest) == (301, "http://a/x", 0.25, "s")
    visit, rest = said_of(
        {"STATUS": ["429"], "Retry-After": ["120"], "http.etag": ['"x"'], "protocol.last-modified": ["M"]}
    )
    assert (visit.status, visit.etag, visit.last_modified, rest) == (429, '"x"', "M", 120.0)
    assert said_of({"fetch.error.count": ["3"]})[0].failed
    assert not said_of({"fetch.error.count": ["3"], "fetch.statusCode": ["200"]})[0].failed
    assert said_of({"changed": ["False"]})[0].changed is False
    assert said_of({"status": [], "etag": ["e"]})[0] == ReportedVisit(etag="e")
