"""The semantics that clients of URLFrontier rely on, against a real server, with a client generated from the proto."""

import time

import grpc
import pytest

from recrawl.crawl.clock import RealClock

CLOCK = RealClock()


def until(wanted, ask):
    """Ask until the answer is the wanted one: a lease or a delay ends when it ends."""
    end = CLOCK.elapsed() + 120
    while (found := ask()) != wanted and CLOCK.elapsed() < end:
        time.sleep(0.05)
    assert found == wanted


def test_every_method_is_there(client, generated):
    pb, stub = generated[0], client.stub
    methods = pb.DESCRIPTOR.services_by_name["URLFrontier"].methods
    assert len(methods) == 19
    for method in methods:
        if method.name == "GetURLStatus":
            with pytest.raises(grpc.RpcError) as caught:
                stub.GetURLStatus(pb.URLStatusRequest(), timeout=120)
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND
            continue
        request = pb.Active(state=True) if method.name == "SetActive" else getattr(pb, method.input_type.name)()
        answer = getattr(stub, method.name)(iter([request]) if method.client_streaming else request, timeout=120)
        answers = list(answer) if method.server_streaming else [answer]
        assert all(type(one).__name__ == method.output_type.name for one in answers)
    stub.SetDelay(pb.QueueDelayParams(delay_requestable=0), timeout=120)


def test_a_found_url_is_handed_out_once_and_again_when_its_lease_ends(client, host):
    url = f"http://{host}/"
    assert client.put(client.found(url, depth="1")) == {url: "OK"}
    assert client.put(client.found(url, depth="2")) == {url: "SKIPPED"}
    [one] = client.get("", key=host, delay_requestable=2)
    assert (one.url, one.key, one.crawlID) == (url, host, "DEFAULT")
    assert {name: list(values.values) for name, values in one.metadata.items()} == {"depth": ["1"]}
    assert client.stats(host).inProcess == 1
    assert client.get("", key=host) == []
    until([url], lambda: client.urls("", key=host, delay_requestable=60))


def test_a_reported_url_is_not_handed_out_again(client, host):
    url = f"http://{host}/"
    client.put(client.found(url))
    assert client.urls("", key=host, delay_requestable=1) == [url]
    assert client.put([client.known(url, number="7", depth="3")]) == {"7": "OK"}
    assert client.put([client.known(url)]) == {url: "OK"}  # without an id it is the URL
    assert client.stats(host).inProcess == 0
    time.sleep(1.1)
    assert client.get("", key=host) == []
    known = client.status(url)
    assert known.known.refetchable_from_date > CLOCK.now() + 600
    assert known.creation_date <= CLOCK.now()


def test_metadata_are_those_of_the_last_report(client, host):
    url = f"http://{host}/"
    client.put(client.found(url, a="1"))
    client.put([client.known(url, b=["x", "y"])])
    found = client.status(url).known.info.metadata
    assert {name: list(values.values) for name, values in found.items()} == {"b": ["x", "y"]}


def test_without_a_date_a_url_is_done(client, host):
    url = f"http://{host}/"
    client.put(client.found(url))
    client.put([client.known(url, date=0)])
    assert client.status(url).known.refetchable_from_date == 0
    assert client.put(client.found(url)) == {url: "SKIPPED"}
    assert client.get("", key=host) == []
    stats = client.stats(host)
    assert (stats.size, stats.counts["completed"], stats.inProcess) == (0, 1, 0)
    client.put([client.known(url)])  # a date brings it back
    assert client.status(url).known.refetchable_from_date > 0
    assert client.stats(host).counts["completed"] == 0


def test_a_url_that_was_never_found_can_be_reported(client, host):
    url = f"http://{host}/new"
    assert client.put([client.known(url)]) == {url: "OK"}
    assert client.status(url).known.refetchable_from_date > CLOCK.now()


def test_queues_are_hosts_and_limits_hold(client, host):
    hosts = [f"{name}.{host}" for name in "abc"]
    urls = [f"http://{one}/{number}" for one in hosts for number in range(5)]
    assert set(client.put(client.found(*urls)).values()) == {"OK"}
    first = client.get("", key=host, max_urls_per_queue=2, max_queues=2)  # a domain is the queues of its hosts
    assert len(first) == 4
    assert len({one.key for one in first}) == 2
    rest = client.get("", key=host, max_urls_per_queue=2)
    assert {one.key for one in rest} == set(hosts) - {one.key for one in first}  # the others have two in flight
    listed = client.stub.ListQueues(client.pb.Pagination(size=10_000, include_inactive=True), timeout=120)
    assert set(hosts) <= set(listed.values)
    assert listed.total >= 3


def test_a_queue_rests_after_it_gave_urls(client, host):
    client.put(client.found(*(f"http://{host}/{number}" for number in range(3))))
    client.stub.SetDelay(client.pb.QueueDelayParams(key=host, delay_requestable=3), timeout=120)
    began = CLOCK.elapsed()
    assert len(client.get("", key=host, max_urls_per_queue=1)) == 1
    assert client.get("", key=host, max_urls_per_queue=2) == []
    until(1, lambda: len(client.get("", key=host, max_urls_per_queue=2, delay_requestable=600)[:1]))
    assert CLOCK.elapsed() - began >= 2.9


def test_a_block_wins_over_the_delay(client, host):
    client.put(client.found(f"http://{host}/"))
    block = client.pb.BlockQueueParams
    for end in (int(CLOCK.now()) + 3_600, 2**62):
        client.stub.BlockQueueUntil(block(key=host, time=end), timeout=120)
        assert client.get("", key=host) == []
        client.stub.BlockQueueUntil(block(key=host, time=0), timeout=120)
    assert len(client.get("", key=host)) == 1


def test_a_limit_ends_a_queue_once_so_many_urls_are_done(client, host):
    urls = [f"http://{host}/{number}" for number in range(3)]
    client.put(client.found(*urls))
    limit = client.pb.CrawlLimitParams
    client.stub.SetCrawlLimit(limit(key=host, limit=1), timeout=120)
    [one] = client.get("", key=host, max_urls_per_queue=1)
    client.put([client.known(one.url, date=0)])
    assert client.get("", key=host) == []
    client.stub.SetCrawlLimit(limit(key=host, limit=0), timeout=120)
    assert len(client.get("", key=host)) == 2


def test_batches_of_found_urls_are_acknowledged_url_by_url(client, host):
    urls = [f"http://{host}/1", f"http://{host}/2", "mailto:me@example.org", f"http://{host}/1"]
    client.put(client.found(urls[1]))
    batches = [client.pb.DiscoveredBatch(ID=str(n), items=[client.info(url) for url in urls]) for n in range(2)]
    first, again = client.stub.PutDiscovered(iter(batches), timeout=120)
    name = client.pb.AckMessage.Status.Name
    assert (first.ID, [name(one) for one in first.statuses]) == ("0", ["OK", "SKIPPED", "SKIPPED", "OK"])
    assert (again.ID, [name(one) for one in again.statuses]) == ("1", ["SKIPPED"] * 4)


def test_urls_are_listed_counted_and_found_by_text(client, host):
    urls = [f"http://{host}/{name}" for name in ("Alpha", "alpine", "b%eta", "gamma_1")]
    client.put(client.found(*urls))
    pb, stub = client.pb, client.stub
    listed = [item.known.info.url for item in stub.ListURLs(pb.ListUrlParams(key=host), timeout=120)]
    assert listed == urls
    part = stub.ListURLs(pb.ListUrlParams(key=host, start=1, size=2), timeout=120)
    assert [item.known.info.url for item in part] == urls[1:3]

    def count(text, any_case=False):
        return stub.CountURLs(pb.CountUrlParams(key=host, filter=text, ignoreCase=any_case), timeout=120).value

    assert stub.CountURLs(pb.CountUrlParams(key=host), timeout=120).value == 4
    assert [count("alp"), count("ALP", any_case=True), count("%e"), count("_1"), count("a%")] == [1, 2, 1, 1, 0]


def test_a_deleted_queue_is_empty_until_its_urls_are_found_again(client, host):
    urls = [f"http://{host}/{number}" for number in range(3)]
    client.put(client.found(*urls))
    client.put([client.known(urls[0], date=0)])
    assert client.stub.DeleteQueue(client.pb.QueueWithinCrawlParams(key=host), timeout=120).value == 3
    assert client.get("", key=host) == []
    assert client.stub.CountURLs(client.pb.CountUrlParams(key=host), timeout=120).value == 0
    with pytest.raises(grpc.RpcError) as caught:
        client.status(urls[0])
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert client.put(client.found(*urls)) == dict.fromkeys(urls, "OK")
    assert client.urls("", key=host) == urls


def test_old_urls_are_purged(client, host):
    client.put(client.found(f"http://{host}/"))
    purge = client.pb.PurgeUrlParams
    assert client.stub.PurgeURLs(purge(key=host, days=1), timeout=120).value == 0  # it was found just now
    assert client.stub.PurgeURLs(purge(key=host), timeout=120).value == 0


def test_crawls_are_apart(client, host):
    url = f"http://{host}/"
    client.put(client.found(url, crawl="other"))
    assert client.get("", key=host) == []
    assert client.get("none-of-this-name", key=host) == []
    crawls = client.stub.ListCrawls(client.pb.Local(), timeout=120).values
    assert "other" in crawls
    assert [one.crawlID for one in client.get("other", key=host)] == ["other"]
    assert client.status(url, "other").known.info.crawlID == "other"
    assert client.stub.DeleteCrawl(client.pb.DeleteCrawlMessage(value="other"), timeout=120).value == 1
    assert "other" not in client.stub.ListCrawls(client.pb.Local(), timeout=120).values
    assert client.put(client.found(url, crawl="../x")) == {url: "SKIPPED"}  # that is no name of a crawl


def test_who_names_no_crawl_gets_urls_of_all(serve):
    with serve() as (_, client):
        client.put([*client.found("http://a.example/"), *client.found("http://b.example/", crawl="second")])
        assert {one.crawlID for one in client.get()} == {"DEFAULT", "second"}


def test_nothing_is_handed_out_while_it_is_not_active(serve):
    with serve() as (_, client):
        client.put(client.found("http://a.example/"))
        client.stub.SetActive(client.pb.Active(state=False), timeout=120)
        assert not client.stub.GetActive(client.pb.Local(), timeout=120).state
        assert client.get() == []
        assert client.put(client.found("http://b.example/")) == {"http://b.example/": "OK"}
    with serve() as (server, client):  # also after a restart
        assert client.get() == []
        client.stub.SetActive(client.pb.Active(state=True), timeout=120)
        assert client.urls() == ["http://a.example/", "http://b.example/"]
        assert client.stub.ListNodes(client.pb.Empty(), timeout=120).values == [server.address]


def test_what_a_report_says_of_change_decides_when_a_url_comes_back(serve):
    """By an adaptive rule, which needs no price: a page that changes comes back sooner each time."""
    restless, quiet = "http://a.example/restless", "http://a.example/quiet"
    with serve("--set", "schedule.policy=nutch") as (_, client):
        for number in range(3):
            said = {"fetch.statusCode": "200", "signature": f"{number:032x}"}
            client.put([client.known(restless, **said), client.known(quiet, **said | {"signature": "0" * 32})])
        due = [client.status(url).known.refetchable_from_date for url in (restless, quiet)]
    assert due[0] < due[1]


def test_settings_say_whose_date_counts(serve):
    wish = int(CLOCK.now()) + 12_345
    with serve("--set", "frontier.refetch_date=client") as (_, client):
        client.put([client.known("http://a.example/", date=wish)])
        assert client.status("http://a.example/").known.refetchable_from_date == wish
    with serve("--set", "frontier.refetch_date=ignore") as (_, client):
        client.put([client.known("http://a.example/", date=0)])
        assert client.status("http://a.example/").known.refetchable_from_date not in {0, wish}
