"""Copies of robots.txt in the store."""

from __future__ import annotations

from dataclasses import replace

from recrawl.model.captures import RobotsCopy
from recrawl.time import DAY

NOW = 1_700_000_000.0
HTTP, HTTPS = "http://a.example", "https://a.example:8443"
COPY = RobotsCopy(
    HTTP, NOW, NOW + DAY, 200, "answered 200", True, f"{HTTP}/robots.txt", b"User-agent: *\nDisallow: /\xff"
)


def test_a_copy_is_given_back_as_it_was_kept(store):
    other = replace(COPY, origin=HTTPS, status=503, reason="é busy", available=False, body=b"")
    store.keep_robots_copies([COPY, other])
    store.keep_robots_copies([])
    assert (store.robots_copy(HTTP), store.robots_copy(HTTPS)) == (COPY, other)
    assert store.robots_copy("http://b.example") is None


def test_the_last_copy_replaces_those_before_and_says_whether_it_differs(store):
    store.keep_robots_copies([replace(COPY, body=b"old"), COPY])
    assert store.changed_robots_copies(0.0) == []
    same = replace(COPY, fetched_at=NOW + 5, expires=NOW + 5 + DAY)
    store.keep_robots_copies([same])
    assert (store.robots_copy(HTTP), store.changed_robots_copies(0.0)) == (same, [])
    other = replace(same, fetched_at=NOW + 9, body=b"User-agent: *")
    store.keep_robots_copies([other])
    assert store.robots_copy(HTTP) == replace(other, changed=NOW + 9)
    assert store.changed_robots_copies(NOW + 9) == [replace(other, changed=NOW + 9, body=b"")]
    assert store.changed_robots_copies(NOW + 10) == []


def test_a_copy_can_be_asked_to_be_read_again(store):
    store.keep_robots_copies([COPY])
    store.expire_robots_copies([HTTP, HTTPS, HTTP], NOW + 60)
    expired = store.robots_copy(HTTP)
    assert expired == replace(COPY, expires=NOW + 60, changed=NOW + 60)
    assert {copy.origin for copy in store.changed_robots_copies(NOW + 60)} == {HTTP, HTTPS}
    store.expire_robots_copies([HTTP], NOW + 90)
    assert store.robots_copy(HTTP).expires == NOW + 60, "it does not last longer for that"


def test_copies_of_hosts_that_nobody_visits_go(store):
    store.keep_robots_copies([COPY])
    later = replace(COPY, origin=HTTPS, fetched_at=NOW + 32 * DAY, expires=NOW + 33 * DAY)
    store.keep_robots_copies([later])
    assert (store.robots_copy(HTTP), store.robots_copy(HTTPS)) == (None, later)


def test_a_large_copy_takes_little_room(store):
    large = replace(COPY, body=b"Disallow: /some/path\n" * 25_000)
    store.keep_robots_copies([large])
    assert store.robots_copy(HTTP).body == large.body[: 512 * 1024]
