"""Validators, compression, chunks, charsets, noise and failures, as a client meets them."""

import gzip
import re
import socket
from collections import Counter

import numpy as np
import pytest

from recrawl.errors import ConfigError
from recrawl.simulate.virtual_web import PageKind
from recrawl.time import DAY, VirtualClock, from_http_date, to_http_date
from recrawl_testweb import FaultProfile, PageNoise, ValidatorLie, ValidatorOffer, VirtualWebServer
from recrawl_testweb.fault_injection import RequestFailure


def steady(web, count=1):
    """HTML pages that live throughout and change."""
    counts = web.changes.counts()
    return [p for p in range(len(web)) if web.kind[p] == 0 and web.born[p] == web.start and counts[p] >= count
            and not np.isfinite(web.died[p])]  # fmt: skip


def just_before(time):
    return float(np.nextafter(time, -np.inf))


# -- validators -------------------------------------------------------------------------------


def test_304_exactly_as_long_as_the_page_is_the_same(run, small):
    running = run(small)
    page = steady(small)[0]
    first = running.get(page)
    running.clock.advance_to(just_before(small.changes.row(page)[0]))
    same = running.get(page, If_None_Match=first.headers["etag"])
    assert (same.status, same.body) == (304, b"")
    assert same.headers["etag"] == first.headers["etag"]
    running.clock.advance_to(small.changes.row(page)[0])
    changed = running.get(page, If_None_Match=first.headers["etag"])
    assert changed.status == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_last_modified_is_the_last_change_and_if_modified_since_works(run, small):
    running = run(small, now=small.start + 5 * DAY)
    page = next(p for p in steady(small) if small.version(p, running.clock.now()) > 0)
    answer = running.get(page)
    stamp = answer.headers["last-modified"]
    assert from_http_date(stamp) == np.floor(small.last_change(page, running.clock.now()))
    assert running.get(page, If_Modified_Since=stamp).status == 304
    assert running.get(page, If_Modified_Since=to_http_date(from_http_date(stamp) - 1)).status == 200
    assert running.get(page, If_Modified_Since="yesterday").status == 200
    assert from_http_date(answer.headers["date"]) == np.floor(running.clock.now())


def test_an_entity_tag_outweighs_a_date(run, small):
    running = run(small)
    stamp = running.get(1).headers["last-modified"]
    assert running.get(1, If_None_Match='"other"', If_Modified_Since=stamp).status == 200
    assert running.get(1, If_None_Match='"other", ' + running.get(1).headers["etag"]).status == 304


def test_pages_send_the_validators_they_were_dealt(run, small):
    running = run(small, FaultProfile(no_validators=0.3, one_validator=0.5))
    expected = {
        ValidatorOffer.BOTH: {"etag", "last-modified"},
        ValidatorOffer.ETAG: {"etag"},
        ValidatorOffer.LAST_MODIFIED: {"last-modified"},
        ValidatorOffer.NONE: set(),
    }
    met = set()
    for page in steady(small, 0):
        offer = running.living.faults_of(page).offer
        met.add(offer)
        assert running.get(page).headers.keys() & {"etag", "last-modified"} == expected[offer]
    assert met == set(ValidatorOffer)


def test_stuck_validators_say_304_although_the_page_changed(run, small):
    running = run(small, FaultProfile(stuck_validators=0.5))
    stuck = next(p for p in steady(small) if running.living.faults_of(p).lie is ValidatorLie.STUCK)
    honest = next(p for p in steady(small) if running.living.faults_of(p).lie is ValidatorLie.NONE)
    before = {page: running.get(page) for page in (stuck, honest)}
    running.clock.advance_to(max(small.changes.row(page)[0] for page in (stuck, honest)))
    assert running.get(stuck, If_None_Match=before[stuck].headers["etag"]).status == 304
    assert running.get(stuck, If_Modified_Since=before[stuck].headers["last-modified"]).status == 304
    assert running.get(stuck).body != before[stuck].body
    assert running.get(honest, If_None_Match=before[honest].headers["etag"]).status == 200


def test_restless_validators_never_say_304(run, small):
    running = run(small, FaultProfile(restless_validators=1.0))
    page = steady(small)[0]
    first = running.get(page)
    assert "etag" not in first.headers
    running.clock.advance_to(min(small.start + 60, just_before(small.changes.row(page)[0])))
    later = running.get(page, If_Modified_Since=first.headers["last-modified"])
    assert later.status == 200
    assert later.body == first.body
    assert from_http_date(later.headers["last-modified"]) == np.floor(running.clock.now())


# -- form -------------------------------------------------------------------------------------


def test_gzip_only_for_clients_that_accept_it(run, small):
    running = run(small, FaultProfile(gzip=0.5))
    packs = next(p for p in steady(small) if running.living.faults_of(p).gzip)
    never = next(p for p in steady(small) if not running.living.faults_of(p).gzip)
    plain, packed = running.get(packs), running.get(packs, Accept_Encoding="br, gzip;q=0.5")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body
    assert "content-encoding" not in running.get(packs, Accept_Encoding="gzip;q=0").headers
    assert "content-encoding" not in running.get(never, Accept_Encoding="gzip").headers


def test_chunked_bodies_are_framed_and_whole(run, small):
    plain = run(small)
    running = run(small, FaultProfile(chunked=1.0))
    page = steady(small)[0]
    answer, raw = running.get(page), running.get(page, raw=True)
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in answer.headers
    expected = plain.get(page).body.replace(str(plain.living.port).encode(), str(running.living.port).encode())
    assert answer.body == expected
    assert raw.wire.endswith(b"0\r\n\r\n")
    assert re.match(rb"[0-9a-f]+\r\n", raw.wire)
    assert len(raw.wire) > len(answer.body)


def test_pages_in_every_charset_decode_to_their_words(run, small):
    running = run(small, FaultProfile(charsets=0.9, meta_charset=0.5))
    met = Counter()
    for page in steady(small, 0):
        traits, answer = running.living.faults_of(page), running.get(page)
        declared = re.search(r"charset=([\w-]+)", answer.headers["content-type"])
        inside = re.search(rb'<meta charset="([\w-]+)">', answer.body)
        assert bool(declared) == traits.in_header
        if declared:
            assert declared[1] == traits.charset
            assert not inside
        elif traits.charset == "utf-16":
            assert answer.body[:2] in {b"\xff\xfe", b"\xfe\xff"}
        else:
            assert inside
            assert inside[1].decode() == traits.charset
        text = answer.body.decode(traits.charset)
        assert text.startswith("<!DOCTYPE html>")
        assert small.title[page] in text
        assert "&#" not in text.partition("<main>")[2]  # the charset can write all its words
        met[traits.charset, traits.in_header] += 1
        if traits.charset in {"iso-8859-1", "windows-1252", "shift_jis"}:
            assert not text.isascii()
            with pytest.raises(UnicodeDecodeError):
                answer.body.decode("utf-8")
    assert {charset for charset, _ in met} == {"utf-8", "iso-8859-1", "windows-1252", "utf-16", "shift_jis"}
    assert {place for _, place in met} == {True, False}


def test_odd_noise_differs_each_time_and_leaves_the_version_and_its_links(run, small):
    running = run(small, FaultProfile(odd_noise=1.0))
    marks = {
        PageNoise.RELATED: b"You may also like",
        PageNoise.COUNTER: b"people so far",
        PageNoise.QUOTE: b'class="wisdom"',
    }
    met = Counter()
    for page in range(len(small)):
        if small.born[page] != small.start or small.kind[page] != PageKind.HTML:
            continue
        first, again = running.get(page), running.get(page)
        noise = running.living.faults_of(page).noise
        for kind, mark in marks.items():
            if kind in noise and (kind != PageNoise.RELATED or mark in first.body):
                met[kind] += 1
            assert (mark in first.body) <= (kind in noise)
        if PageNoise.COUNTER in noise:
            assert first.body != again.body
        assert b"\x00" not in first.body
        assert first.headers["etag"] == again.headers["etag"]
        hrefs = [set(re.findall(rb'href="([^"]+)"', seen.body)) for seen in (first, again)]
        assert hrefs[0] == hrefs[1]
        without = [
            re.sub(
                rb'(?s)<div class="more">.*?</div>|<blockquote.*?</blockquote>|<p class="readers">.*?</p>', b"", body
            )
            for body in (first.body, again.body)
        ]
        assert without[0] == without[1]
    assert set(met) == set(marks)


def test_noise_changes_bytes_and_nothing_else(run, small):
    running = run(small, FaultProfile(noise=1.0))
    kinds = Counter()
    for page in range(len(small)):
        if small.born[page] != small.start:
            continue
        first, again = running.get(page), running.get(page)
        running.clock.advance_to(running.clock.now() + 1.0)
        later = running.get(page)
        noise = running.living.faults_of(page).noise
        assert noise
        if small.version(page, running.clock.now()) != small.version(page, running.clock.now() - 1):
            continue
        if small.kind[page] in {PageKind.HTML, PageKind.RDF}:
            kinds[noise] += 1
            assert (b"Page served at" in first.body) == (PageNoise.CLOCK in noise)
            assert (b"csrf-token" in first.body) == (PageNoise.NONCE in noise)
            assert (b'class="banner"' in first.body) == (PageNoise.BANNER in noise)
            if PageNoise.NONCE in noise:
                assert first.body != again.body
            if PageNoise.CLOCK in noise:
                assert first.body != later.body
        else:
            assert first.body != again.body
        assert first.headers["etag"] == again.headers["etag"] == later.headers["etag"]
        assert first.headers["etag"].startswith('W/"')
        assert b"\x00" not in first.body
        assert running.get(page, If_None_Match=first.headers["etag"]).status == 304
        without = [
            re.sub(
                rb"(?s)<aside.*?</aside>|Page served at \S+|content=\"\w{15}\"|generated\W.*?\n|request\W.*?\n",
                b"",
                a.body,
            )
            for a in (first, later)
        ]
        assert without[0] == without[1]
    assert len(kinds) >= 6


# -- failures ---------------------------------------------------------------------------------


def ask_again(running, page, times):
    return [running.get(page) for _ in range(times)]


def test_errors_come_at_their_rate_and_repeat_with_the_seed(run, small):
    page = steady(small)[0]
    first, again, other = (
        [answer.status for answer in ask_again(run(small, FaultProfile(errors=0.3), seed=seed), page, 100)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert set(first) == {200, 500, 502}
    assert np.mean(np.array(first) >= 500) == pytest.approx(0.3, abs=0.15)


def test_busy_hosts_say_when_to_come_back(run, small):
    running = run(small, FaultProfile(busy=0.5, retry_after=120.0))
    refused = [answer for answer in ask_again(running, steady(small)[0], 60) if answer.status != 200]
    assert {answer.status for answer in refused} == {429, 503}
    values = {answer.headers["retry-after"] for answer in refused}
    assert values == {"120", to_http_date(running.clock.now() + 120)}


def test_truncated_answers_break_off_and_keep_what_came(run, small):
    page = steady(small)[0]
    whole = run(small).get(page).body
    for chunked in (0.0, 1.0):
        running = run(small, FaultProfile(truncated=0.5, chunked=chunked))
        answers = ask_again(running, page, 30)
        cut = [answer for answer in answers if answer.error]
        assert 5 < len(cut) < 25
        assert {answer.error for answer in cut} == {18}
        assert all(0 < len(answer.body) < len(whole) for answer in cut)
        log = running.living.requests()
        assert log.bytes.tolist() == [len(answer.body) for answer in answers]


@pytest.mark.parametrize("chunked", [0.0, 1.0])
def test_slow_answers_arrive_whole_in_pieces(run, small, chunked):
    running = run(small, FaultProfile(slow=1.0, slowness=1.0, chunked=chunked))
    host, path = running.living.hosts()[0], small.path[steady(small)[0]]
    with socket.create_connection(("127.0.0.1", running.living.port), timeout=120) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        pieces = []
        while piece := connection.recv(65536):
            pieces.append(piece)
    assert len(pieces) > 2
    assert b"</html>" in b"".join(pieces)


def test_others_are_served_while_one_waits(run, small):
    running = run(small, FaultProfile(slow=1.0, slowness=2.0))
    host = running.living.hosts()[0]
    with socket.create_connection(("127.0.0.1", running.living.port), timeout=120) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        begun = connection.recv(65536)
        assert running.client.get(f"http://{host}/robots.txt").status == 200
        assert b"</html>" not in begun
        while piece := connection.recv(65536):
            begun += piece
    assert b"</html>" in begun


def test_failures_depend_on_page_and_count_not_on_order(run, small):
    pages = steady(small)[:4]
    fault_profile = FaultProfile(errors=0.2, busy=0.2, truncated=0.2)
    together, apart = run(small, fault_profile), run(small, fault_profile)
    rounds = [[together.get(page).status for page in pages] for _ in range(10)]
    alone = [[answer.status for answer in ask_again(apart, page, 10)] for page in pages]
    assert np.array_equal(np.array(rounds).T, np.array(alone))
    assert len({tuple(statuses) for statuses in alone}) == len(pages)


def test_each_failure_has_its_own_chance():
    fault_profile = FaultProfile(errors=0.1, busy=0.2, slow=0.15, truncated=0.25)
    drawn = Counter(fault_profile.failure(0, page, count) for page in range(40) for count in range(100))
    shares = {failure.name: drawn[failure] / 4_000 for failure in RequestFailure}
    expected = {"ERROR": 0.1, "BUSY": 0.2, "SLOW": 0.15, "TRUNCATED": 0.25, "NONE": 0.3}
    assert shares == {name: pytest.approx(share, abs=0.025) for name, share in expected.items()}


def test_quirks_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"noise = 1\.5"):
        FaultProfile(noise=1.5)
    with pytest.raises(ConfigError, match="more than 1"):
        FaultProfile(errors=0.6, busy=0.6)


def test_presets_grow_wilder(small):
    shares = [
        (q.errors, q.noise, q.stuck_validators) for q in (FaultProfile.none(), FaultProfile.mild(), FaultProfile.wild())
    ]
    assert shares == sorted(shares)
    assert shares[0] == (0.0, 0.0, 0.0)


# -- odd clients ------------------------------------------------------------------------------


def say(port, data, *, finish=True):
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(data)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def test_head_has_the_headers_of_get_and_no_body(run, small):
    running = run(small)
    get, head = running.get(1), running.get(1, method="HEAD")
    assert head.body == b""
    assert head.headers == get.headers
    assert running.living.requests().bytes.tolist() == [len(get.body), 0]


def test_other_methods_are_refused(run, small):
    answer = run(small).get(1, method="DELETE")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_nonsense_is_answered_with_400_and_logged(run, small):
    running = run(small)
    assert say(running.living.port, b"NONSENSE\r\n\r\n").startswith(b"HTTP/1.1 400")
    log = running.living.requests()
    assert log.status.tolist() == [400]
    assert running.get(1).status == 200
    assert running.client.get(running.living.seeds()[0] + "x" * 100_000).status == 431
    assert running.living.requests().status.tolist() == [400, 200, 431]


def test_pipelined_requests_are_answered_in_order(run, small):
    running = run(small)
    host = running.living.hosts()[0]
    asked = b"".join(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for path in ("/robots.txt", "/", "/none"))
    received = say(running.living.port, asked)
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200", b"200", b"404"]
    assert running.living.requests().path.tolist() == ["/robots.txt", "/", "/none"]


def test_http_1_0_and_absolute_targets_work(run, small):
    running = run(small, FaultProfile(chunked=1.0))
    host = running.living.hosts()[0]
    old = say(running.living.port, f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    assert b"</html>" in old
    assert b"chunked" not in old
    proxied = f"GET http://{host}/robots.txt HTTP/1.1\r\nHost: elsewhere.test\r\nConnection: close\r\n\r\n"
    assert b"User-agent" in say(running.living.port, proxied.encode())
    assert running.living.requests().host.tolist() == [host.partition(":")[0]] * 2


def test_a_client_that_leaves_early_harms_nobody(run, small):
    running = run(small, FaultProfile(slow=1.0, slowness=0.05))
    host = running.living.hosts()[0]
    with socket.create_connection(("127.0.0.1", running.living.port)) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert running.get(1).status == 200


def test_a_port_in_use_is_said_plainly(run, small):
    port = run(small).living.port
    with pytest.raises(ConfigError, match=f"Port {port}"):
        VirtualWebServer(small, VirtualClock(), port=port)


def test_a_fault_of_the_server_is_raised_when_it_closes(small, monkeypatch):
    living = VirtualWebServer(small, VirtualClock(small.start))
    monkeypatch.setattr(living._answers, "answer", lambda *_: 1 / 0)
    living.start()
    with socket.create_connection(("127.0.0.1", living.port), timeout=120) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(10) == b""
    with pytest.raises(ZeroDivisionError):
        living.close()
