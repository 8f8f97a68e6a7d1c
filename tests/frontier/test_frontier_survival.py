"""Kills, restarts, strangers and hostile clients, against a real server process."""

import itertools
import threading
from contextlib import suppress

import grpc
import numpy as np
import pytest
from cryptography import x509

from recrawl.crawl.clock import RealClock
from recrawl.store import open_store

CLOCK = RealClock()
pytestmark = pytest.mark.slow


def test_a_kill_in_the_middle_of_streams_loses_nothing_acknowledged(serve, workspace):  # noqa: C901 - two streams
    """Every acknowledged URL is there afterwards, and every acknowledged report is a visit."""
    found, reported = [], []

    def report(client, began):
        def items():
            for number in itertools.count():
                url = f"http://r{number % 50}.example/{number}"
                said = {"fetch.statusCode": "200", "signature": f"{number:032x}"}
                yield client.known(url, **said) if number % 2 else next(client.found(url))

        with suppress(grpc.RpcError):
            for ack in client.stub.PutURLs(items(), timeout=120):
                (reported if int(ack.ID.rpartition("/")[2]) % 2 else found).append(ack.ID)
                if len(reported) >= 200:
                    began.set()

    def discover(client, began):
        def batches():
            for number in itertools.count():
                urls = [f"http://d{number}.example/{row}" for row in range(50)]
                yield client.pb.DiscoveredBatch(ID=str(number), items=[client.info(url) for url in urls])

        with suppress(grpc.RpcError):
            for ack in client.stub.PutDiscovered(batches(), timeout=120):
                found.extend(f"http://d{ack.ID}.example/{row}" for row in range(50))
                if len(found) >= 500:
                    began.set()

    with serve() as (server, client):
        began = [threading.Event(), threading.Event()]
        streams = [
            threading.Thread(target=one, args=(client, event))
            for one, event in zip((report, discover), began, strict=True)
        ]
        for stream in streams:
            stream.start()
        assert all(event.wait(120) for event in began)
        server.kill()
        for stream in streams:
            stream.join(120)
    with open_store(workspace / "recrawl.db") as store:
        assert store.engine_faults(thorough=True) == []
        pages = [store.find(url) for url in [*found, *reported]]
        assert None not in pages
        assert all(page.importance > 0 for page in pages)
        visited = set(np.unique(store.visits().page).tolist())
        assert {store.find(url).id for url in reported} <= visited
    with serve() as (_, client):  # and it goes on
        assert client.put(client.found(found[0])) == {found[0]: "SKIPPED"}


def test_leases_delays_blocks_and_limits_survive_a_kill(serve):
    url = "http://{}.example/"
    with serve() as (server, client):
        pb, stub = client.pb, client.stub
        client.put(client.found(*(url.format(name) for name in ("leased", "blocked", "open", "short"))))
        more = [url.format("limited") + name for name in "ab"]
        client.put(client.found(*more, *(url.format("slow") + name for name in "ab")))
        assert len(client.get("", key="leased.example", delay_requestable=3_600)) == 1
        assert len(client.get("", key="short.example", delay_requestable=1)) == 1
        stub.BlockQueueUntil(pb.BlockQueueParams(key="blocked.example", time=int(CLOCK.now()) + 3_600), timeout=120)
        stub.SetDelay(pb.QueueDelayParams(key="slow.example", delay_requestable=3_600), timeout=120)
        assert len(client.get("", key="slow.example", max_urls_per_queue=1)) == 1
        stub.SetCrawlLimit(pb.CrawlLimitParams(key="limited.example", limit=1), timeout=120)
        client.put([client.known(more[0], date=0)])
        server.kill()
    with serve() as (_, client):
        assert client.stats("leased.example").inProcess == 1
        assert client.urls() == [url.format("open"), url.format("short")]
        assert client.urls() == []


def test_urls_that_never_reached_the_client_are_handed_out_again(serve):
    """A client that goes away in the middle of a stream holds only what it got."""
    with serve() as (_, client):
        many = [f"http://h{number}.example/{'x' * 2_000}" for number in range(900)]
        batch = client.pb.DiscoveredBatch(ID="1", items=[client.info(url) for url in many])
        list(client.stub.PutDiscovered(iter([batch]), timeout=120))
        call = client.stub.GetURLs(client.pb.GetParams(delay_requestable=3_600), timeout=120)
        first = next(call)
        call.cancel()
        got = set()
        end = CLOCK.elapsed() + 120
        while not got and CLOCK.elapsed() < end:
            got = {one.url for one in client.get(delay_requestable=3_600)}
        assert got
        assert first.url not in got


def test_strangers_are_turned_away(serve):
    token = "a-token-of-some-length"
    with serve("--token", token) as (server, client):
        for metadata in ((), (("authorization", "Bearer wrong"),), (("authorization", token),)):
            for call in (
                lambda said: client.stub.GetActive(client.pb.Local(), timeout=120, metadata=said),
                lambda said: list(client.stub.GetURLs(client.pb.GetParams(), timeout=120, metadata=said)),
                lambda said: list(client.stub.PutURLs(client.found("http://a.example/"), timeout=120, metadata=said)),
            ):
                with pytest.raises(grpc.RpcError) as caught:
                    call(metadata)
                assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        said = (("authorization", f"Bearer {token}"),)
        assert client.stub.GetActive(client.pb.Local(), timeout=120, metadata=said).state
        assert token not in "".join(server.lines)


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that signs itself."""
    import datetime as dt
    import ipaddress

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "frontier")])
    now = dt.datetime.fromtimestamp(CLOCK.now(), dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = tmp_path / "server.pem", tmp_path / "server.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def test_tls(serve, certificate):
    pem, key = certificate
    trusted = grpc.ssl_channel_credentials(pem.read_bytes())
    with serve("--tls-cert", str(pem), "--tls-key", str(key), credentials=trusted) as (server, client):
        assert client.stub.GetActive(client.pb.Local(), timeout=120).state
        with grpc.insecure_channel(server.address) as plain, pytest.raises(grpc.RpcError):
            type(client.stub)(plain).GetActive(client.pb.Local(), timeout=120)


def test_hostile_items_are_refused_one_by_one(serve):
    """Whatever a client sends, its other items are stored, and the server goes on."""
    with serve() as (_, client):
        pb = client.pb
        bad = {
            "long url": client.known("http://a.example/" + "x" * 100_000, number="long url"),
            "nul": client.known("http://a.example/\0", number="nul"),
            "no url": client.known("", number="no url"),
            "no item": pb.URLItem(ID="no item"),
            "not http": client.known("javascript:alert(1)", number="not http"),
            "large": client.known("http://a.example/large", number="large", blob="x" * 200_000),
        }
        odd = {
            "status": client.known("http://a.example/1", number="status", **{"fetch.statusCode": "9" * 400}),
            "words": client.known(
                "http://a.example/2", number="words", **{"fetch.statusCode": "teapot", "size": "nan"}
            ),
            "digest": client.known("http://a.example/3", number="digest", signature="\x00" * 5_000, etag="\x00"),
            "future": client.known("http://a.example/4", number="future", date=2**64 - 1),
            "rest": client.known("http://a.example/5", number="rest", **{"retry-after": "1e300"}),
            "letters": client.known("http://a.example/\N{SNOWMAN}", number="letters", title="\N{SNOWMAN}\ud7ff"),
        }
        told = client.put([*bad.values(), *odd.values()])
        assert told == {**dict.fromkeys(bad, "SKIPPED"), **dict.fromkeys(odd, "OK")}
        with pytest.raises(grpc.RpcError) as caught:
            client.put([client.known("http://a.example/", blob=["x" * 1_000_000] * 5)])
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        for params in ({"key": "x" * 10_000}, {"key": "%"}, {"max_queues": 2**32 - 1, "max_urls_per_queue": 2**32 - 1}):
            client.get("", **params, delay_requestable=2**32 - 1)
        pages = client.stub.ListQueues(pb.Pagination(start=2**32 - 1, size=2**32 - 1), timeout=120)
        assert not pages.values
        assert client.status("http://a.example/4").known.refetchable_from_date > CLOCK.now()


def test_streams_without_end_and_without_readers_hold_up_nobody(serve):
    """Clients that never read their acknowledgements, or send nothing at all, cost no other client its turn."""
    with serve() as (_, client):
        over = threading.Event()

        def endless():
            number = 0
            while not over.is_set():
                yield client.known(f"http://e.example/{number}", blob="x" * 20_000)
                number += 1

        def silent():
            over.wait(120)
            yield from ()

        calls = [client.stub.PutURLs(endless()) for _ in range(2)] + [client.stub.PutURLs(silent()) for _ in range(20)]
        try:
            for number in range(5):
                url = f"http://calm{number}.example/"
                assert client.put(client.found(url)) == {url: "OK"}
        finally:
            over.set()
            for call in calls:
                call.cancel()
