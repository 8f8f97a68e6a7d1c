"""What each answer says of its own sharpness: as headers and as JSON."""

import json
import math

import pytest

HOME = "http://site.example/"


def sharp(answer):
    found = {name.removeprefix("x-recrawl-"): value for name, value in answer.headers if name.startswith("x-recrawl-")}
    assert found
    return found


def test_between_two_looks_at_one_version_the_answer_is_proved(server):
    found = sharp(server.ask(f"archive/{HOME}", Accept_Datetime="Mon, 01 Jan 2024 01:20:00 GMT"))
    assert found == {
        "asked": "Mon, 01 Jan 2024 01:20:00 GMT",
        "distance": "-1199",
        "provably-valid": "yes",
        "valid-from": "Mon, 01 Jan 2024 00:00:00 GMT",
        "valid-until": "Mon, 01 Jan 2024 02:00:00 GMT",
        "expected-changes": "0",
    }


def test_between_two_versions_it_is_not(server):
    found = sharp(server.ask(f"archive/{HOME}", Accept_Datetime="Mon, 01 Jan 2024 04:00:00 GMT"))
    assert (found["distance"], found["provably-valid"]) == ("3600", "no")
    assert found["valid-from"] == found["valid-until"] == "Mon, 01 Jan 2024 05:00:00 GMT"
    # One change at least lies between 2 and 5 o'clock; a third of the time lies between the moment and the copy.
    assert 1 / 3 <= float(found["expected-changes"]) < 1


def test_the_last_version_blurs_with_time(server):
    changes = [
        float(
            sharp(server.ask(f"archive/{HOME}", Accept_Datetime=f"Mon, 01 Jan 2024 {hour:02}:00:00 GMT"))[
                "expected-changes"
            ]
        )
        for hour in (6, 8, 12)
    ]
    assert 0 < changes[0] < changes[1] < changes[2]
    assert changes[1] / changes[0] == pytest.approx(3, rel=0.02)
    now = sharp(server.ask(f"archive/{HOME}"))
    assert now["asked"] == "Mon, 01 Jan 2024 10:00:00 GMT"


def test_a_memento_answers_for_the_moment_that_led_to_it(server):
    path = f"archive/20240101010000id_/{HOME}"
    assert sharp(server.ask(path, Accept_Datetime="Mon, 01 Jan 2024 01:20:00 GMT"))["distance"] == "-1199"
    own = sharp(server.ask(path))
    assert (own["distance"], own["provably-valid"], own["expected-changes"]) == ("0", "yes", "0")


@pytest.mark.parametrize("modifier", ["", "id_", "if_", "mp_"])
def test_a_page_tells_how_far_its_parts_lie_apart(server, modifier):
    """The request behind openwayback#266. At 0 o'clock: style.css of 0:00:10, logo.png of 4:00, one picture missing."""
    found = sharp(server.ask(f"archive/20240101000000{modifier}/{HOME}"))
    assert found["parts"] == "2/3"
    assert found["parts-spread"] == str(4 * 3600)
    assert found["parts-together"] == "no"


def test_parts_that_were_not_looked_up_prove_nothing(make_server, build_visits, monkeypatch):
    odd = make_server(filled=False)
    build_visits(odd.place, f"{HOME}a.png", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", b"a")
    build_visits(odd.place, f"{HOME}b.png", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", b"b")
    page = b"<img src=/a.png><img src=/b.png>"
    build_visits(odd.place, HOME, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", page)
    found = sharp(odd.ask(f"archive/20240101000000/{HOME}"))
    assert (found["parts"], found["parts-together"]) == ("2/2", "yes")
    monkeypatch.setattr("recrawl.web.replay.mementos.MOST_PARTS", 1)
    found = sharp(odd.ask(f"archive/20240101000000/{HOME}"))
    assert (found["parts"], found["parts-together"]) == ("1/2", "no")
    assert facts(odd, f"url={HOME}&at=2024")["parts"]["provably_together"] is False


def test_parts_have_no_parts(server):
    found = sharp(server.ask(f"archive/20240101000010cs_/{HOME}style.css"))
    assert "parts" not in found


def facts(server, query):
    answer = server.ask(f"api/memento?{query}")
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


def test_the_same_as_json_with_every_part(server):
    found = facts(server, f"url={HOME}&at=20240101012000")
    assert found["uri"] == f"{server.base}archive/20240101010000/{HOME}"
    assert found["distance_seconds"] == pytest.approx(-1199.75)
    assert (found["expected_changes"], found["provably_valid"]) == (0.0, True)
    assert (found["valid_from"], found["valid_until"]) == ("2024-01-01T00:00:00Z", "2024-01-01T02:00:00Z")
    parts = found["parts"]
    assert (parts["count"], parts["archived"], parts["missing"]) == (3, 2, [f"{HOME}missing.png"])
    assert [(part["url"], part["datetime"]) for part in parts["list"]] == [
        (f"{HOME}style.css", "2024-01-01T00:00:10Z"),
        (f"{HOME}logo.png", "2024-01-01T04:00:00Z"),
    ]
    assert parts["spread_seconds"] == pytest.approx(4 * 3600 - 10)
    assert parts["provably_together"] is False


@pytest.mark.parametrize(
    "at", ["2024", "2024-01-01", "2024-01-01T00:00:00Z", "Mon,%2001%20Jan%202024%2000:00:00%20GMT"]
)
def test_a_time_may_be_written_in_many_ways(server, at):
    found = facts(server, f"url={HOME}&at={at}")
    assert found["asked"] == "2024-01-01T00:00:00Z"


def test_what_is_no_page_has_no_parts(server):
    assert facts(server, f"url={HOME}style.css&at=2024")["parts"] is None


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("url=ftp://x", 400), (f"url={HOME}&at=soon", 400), ("url=http://never.example/", 404)],
)
def test_what_cannot_be_answered_is_told(server, query, status):
    answer = server.ask(f"api/memento?{query}")
    assert answer.status == status
    assert answer.text.strip()


def test_a_page_nobody_judged_says_how_far_it_is_and_no_more(make_server):
    fresh = make_server(filled=False)
    line = f"example,site)/ 20230101000000 {HOME} - 0 - - - - - -\n"
    assert fresh.send("archive", line).status == 200
    found = facts(fresh, f"url={HOME}&at=20230101000010")
    assert found["distance_seconds"] == -10.0
    assert found["expected_changes"] is None or math.isfinite(found["expected_changes"])
    assert found["provably_valid"] is False
