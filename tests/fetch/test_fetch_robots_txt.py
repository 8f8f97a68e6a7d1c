"""Parsing and matching of robots.txt (RFC 9309, conventions R1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from recrawl.fetch.robots_txt import AgentRules, RobotsRule, normal_path, parse_robots_txt, product_token

GROUPS = Path(__file__).parents[1] / "data" / "robots" / "groups.txt"
OTHER = re.compile(r"(?im)^(?!\s*(?:user-?agent|di\w*l\w*w|allow)\b).*$")
"""Lines that RFC 9309 does not define."""
AGENT = re.compile(r"(?im)^([ \t]*user-?agent\s*:[ \t]*)(?![ \t*])([A-Z_-]+)(?=[\s/]|$).*$")
"""Lines with an agent, and its product token."""


def allowed(text: str | bytes, path: str, agent: str = "recrawl") -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return parse_robots_txt(body, agent).allowed(f"http://example.org{path}")


# -- groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "between",
    [
        "Crawl-delay: 600",
        "Clean-param: ref /x",
        "Host: example.org",
        "Request-rate: 1/5",
        "Sitemap: http://example.org/s.xml",
        "Noindex: /y",
        "Whatever: it says",
        "",
        "# x",
    ],
)
def test_only_allow_and_disallow_close_a_group(between):
    text = f"User-agent: *\n{between}\nUser-agent: Bingbot\nDisallow: /private\nUser-agent: Other\nDisallow: /"
    assert [allowed(text, path) for path in ("/private/x", "/open")] == [False, True]
    assert [allowed(text, path, "bingbot") for path in ("/private/x", "/open")] == [False, True]
    assert not allowed(text, "/open", "other")


def test_an_empty_rule_closes_a_group_too():
    text = "User-agent: *\nDisallow:\nUser-agent: Bingbot\nDisallow: /"
    assert allowed(text, "/x")
    assert not allowed(text, "/x", "bingbot")


def test_groups_of_one_agent_count_together_and_everybody_elses_do_not():
    text = "User-agent: ReCrawl/1.0\nDisallow: /a\nUser-agent: *\nDisallow: /\nUser-agent: recrawl\nDisallow: /b"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_an_agent_is_matched_by_its_whole_product_token():
    text = "User-agent: recrawl-news\nUser-agent: re\nUser-agent: crawl\nDisallow: /\nUser-agent: *\nDisallow: /star"
    assert [allowed(text, path) for path in ("/x", "/star")] == [True, False]
    assert product_token("Recrawl_Test-x/2 (+http://a)") == "recrawl_test-x"


def test_rules_without_a_group_count_for_nobody():
    assert allowed("Disallow: /\nUser-agent: other\nDisallow: /", "/x")


def test_a_crawl_delay_holds_for_the_agents_named_before_it():
    text = "User-agent: a\nUser-agent: b\nCrawl-delay: 5\nUser-agent: c\nCrawl-delay: 9\nCrawl-delay: 7\nDisallow: /x"
    assert {agent: parse_robots_txt(text.encode(), agent).crawl_delay for agent in "abcd"} == {
        "a": 5.0,
        "b": 5.0,
        "c": 9.0,
        "d": None,
    }
    assert [allowed(text, "/x", agent) for agent in "abcd"] == [False, False, False, True]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-5", "soon", "", "5 s", "9" * 5_000])
def test_a_delay_that_makes_no_sense_is_none(value):
    assert (
        parse_robots_txt(f"User-agent: *\nCrawl-delay: {value}\nDisallow: /x".encode(), "recrawl").crawl_delay is None
    )


@pytest.mark.parametrize("structure", GROUPS.read_text().split("\n\n"))
def test_structures_of_real_files_mean_the_same_without_other_records(structure):
    """protego reads files right that hold nothing but what the RFC defines."""
    reference = Protego.parse(OTHER.sub("", structure))
    agents = {*re.findall(r"User-agent: (agent\w+)", structure), "recrawl"}
    paths = {*re.findall(r"llow: (/\S*)", structure), "/other"}
    for agent in agents:
        ours = parse_robots_txt(structure.encode(), agent)
        for path in paths:
            url = f"http://example.org{path}"
            assert ours.allowed(url) == reference.can_fetch(url, agent), (agent, path)


@pytest.mark.big
def test_real_files_mean_the_same_without_other_records(data_folder):
    import pyarrow.parquet as pq

    for body in pq.read_table(data_folder / "formats/robots_real/robots_real.parquet")["body"].to_pylist()[::4]:
        text = body.decode("utf-8-sig", "replace")
        bare = AGENT.sub(r"\1\2", "\n".join(OTHER.sub("", line) for line in re.split(r"\r\n|\r|\n", text)))
        reference = Protego.parse(bare)
        patterns = re.findall(r"(?im)^\s*(?:dis)?allow\s*:\s*(/[^#\r\n]*)", text)[:40]
        paths = {"/", *(pattern.strip().replace("$", "").replace("*", "zz") for pattern in patterns)} - {"/robots.txt"}
        tokens = {token for found in AGENT.finditer(text) if len(token := found[2].lower()) > 1}
        # protego also takes the beginning of a name for the name
        agents = sorted(one for one in tokens if not any(one != other and one.startswith(other) for other in tokens))
        for agent in ("recrawl", *agents[:3]):
            ours = parse_robots_txt(text.encode(), agent)
            for url in (f"http://example.org{path}" for path in paths):
                assert ours.allowed(url) == reference.can_fetch(url, agent), (agent, url, ours.deciding_rule(url))


# -- lines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_byte_order_marks(end, encoding):
    text = end.join(["User-agent: *", "Disallow: /x", "Sitemap: /é.xml"]).encode(encoding)
    said = parse_robots_txt(text, "recrawl")
    assert (said.allowed("http://h/x"), said.allowed("http://h/y"), said.sitemaps) == (False, True, ("/é.xml",))


@pytest.mark.parametrize(
    "line", ["disallow:/x", "DISALLOW : /x # all", "\t Disallow /x", "Dissallow: /x", "disalow: /x"]
)
def test_odd_spellings_are_understood(line):
    assert not allowed(f"user agent: *\n{line}", "/x")


def test_sitemaps_are_found_anywhere_and_end_nothing():
    text = "Sitemap: /1\nUser-agent: *\nSitemap: /2\nDisallow: /x\nsitemap: /1\nDisallow: /y\nSITE-MAP:/3"
    said = parse_robots_txt(text.encode(), "recrawl")
    assert said.sitemaps == ("/1", "/2", "/3")
    assert [said.allowed(f"http://h{path}") for path in ("/x", "/y", "/z")] == [False, False, True]


def test_only_whole_lines_of_the_first_500_kib_count():
    for end in ("\n", "\r"):
        text = f"User-agent: *{end}Disallow: /a{end}" + f"# filler{end}" * 60_000 + f"Disallow: /b{end}"
        assert [allowed(text, path) for path in ("/a", "/b")] == [False, True]
    assert allowed("User-agent: * " + "x" * 600_000 + "\nDisallow: /", "/a")


# -- patterns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        # RFC 9309, 5.2, and Google's table of precedence
        ("Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/disallowed.gif", False),
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /fish", "/Fish.asp", True),
        ("Disallow: /fish*", "/fishheads", False),
        ("Disallow: /fish/", "/fish", True),
        ("Disallow: /*.php$", "/folder/any.php.file.php", False),
        ("Disallow: /*.php$", "/filename.php?parameters", True),
        ("Disallow: /fish*.php", "/fishheads/catfish.php?p", False),
        ("Disallow: /a*b*", "/a-b-c", False),
        ("Disallow: /a$b", "/a$b", False),
        ("Disallow: /a$b", "/a", True),
        ("Disallow: **/x", "/y/x", False),
        ("Disallow: *$", "/y/x", False),
        ("Disallow: /ab*ba$", "/aba", True),
        ("Disallow: /a\nAllow: /a/index.html", "/a/", True),
        ("Disallow: /a\nAllow: /a/index.html", "/a/b", False),
        # RFC 9309, 2.2.2: one spelling for each octet
        ("Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A//foo.bar", False),
        ("Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", False),
        ("Disallow: /foo/bar/%e3%83%84", "/foo/bar/ツ", False),
        ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("Disallow: /a%2fb", "/a%2Fb", False),
        ("Disallow: /a%252Fb", "/a%2Fb", True),
        ("Disallow: /file-with-a-%2A.html", "/file-with-a-*.html", False),
        ("Disallow: /file-with-a-%2A.html", "/file-with-a-b.html", True),
        ("Disallow: /a b", "/a%20b", False),
        ("Disallow: /100%", "/100%25", False),
        ("Disallow: x", "/x", True),
        ("Disallow: /?", "", True),
    ],
)
def test_the_longest_match_decides(rules, path, expected):
    assert allowed(f"User-agent: *\n{rules}", path) is expected


@pytest.mark.parametrize("url", ["http://h", "http://h?", "http://h#f", "http://h/#?", "http://h:80/"])
def test_a_url_without_a_path_is_the_root(url):
    assert normal_path(url).startswith("/")
    assert not parse_robots_txt(b"User-agent: *\nDisallow: /", "x").allowed(url)


def test_a_decision_names_its_line():
    said = parse_robots_txt("User-agent: *\n\nDisallow: /caf\xe9 # no".encode("latin-1"), "recrawl")
    assert str(said.deciding_rule("http://h/caf%E9")) == "line 3: Disallow: /caf\N{REPLACEMENT CHARACTER}"
    assert said.deciding_rule("http://h/") is None
    assert AgentRules().allowed("http://h/")


def test_patterns_made_to_explode_cost_little():
    """Hours with a matcher that tries all ways."""
    text = "User-agent: *\n" + "Disallow: /" + "*a" * 2_000 + "*b$\n" + "Disallow: /*a*a*a*a*c\n" * 20_000
    said = parse_robots_txt(text.encode(), "recrawl")
    assert len(said.rules) > 10_000
    assert said.allowed("http://h/" + "a" * 2_000)


def test_a_line_of_megabytes_and_groups_without_end_are_read():
    assert allowed(b"User-agent: *\nDisallow: /" + b"x" * 5_000_000, "/x")
    many = "".join(f"User-agent: bot{'x' * (n % 9)}\nDisallow: /{n}\n" for n in range(10_000))
    assert not allowed(many + "User-agent: *\nDisallow: /", "/q")


# -- properties -------------------------------------------------------------------------------------

pieces = st.text(alphabet="ab/%2Ff*$?.é", max_size=12)


def reference_match(pattern: str, path: str) -> bool:
    """By a regular expression over the normal forms."""
    anchored = pattern.endswith("$")
    parts = (pattern[:-1] if anchored else pattern).split("*")
    spelled = [normal_path("http://h/" + part).removeprefix("/") for part in parts]
    return bool(re.match(".*".join(map(re.escape, spelled)) + ("$" if anchored else ""), path, re.DOTALL))


@given(pieces.map("/".__add__), st.text(alphabet="ab/%2Ff?.é", max_size=20).map("/".__add__))
def test_matching_is_that_of_a_regular_expression(pattern, path):
    [rule] = parse_robots_txt(f"User-agent: *\nDisallow: {pattern}".encode(), "x").rules
    normal = normal_path(f"http://h{path}")
    assert isinstance(rule, RobotsRule)
    assert rule.matches(normal) == reference_match(pattern, normal)


@given(st.binary(max_size=400) | st.text(alphabet="User-agent: *\r\nDisallow:/x#$%", max_size=200).map(str.encode))
def test_any_bytes_can_be_read(body):
    said = parse_robots_txt(body, "recrawl")
    assert said.allowed("http://h/x") in {True, False}
    str(said.rules)


RECORDS = "User-agent: a|User-agent: *|Disallow: /a|Allow: /ab|Disallow:|Crawl-delay: 3|Clean-param: x|Sitemap: /s|x||#"


@given(st.lists(st.sampled_from(RECORDS.split("|")), max_size=12))
def test_records_that_the_rfc_does_not_define_change_no_decision(lines):
    bare = [line for line in lines if line.startswith(("User-agent", "Disallow", "Allow"))]
    with_others, without = (parse_robots_txt("\n".join(some).encode(), "a") for some in (lines, bare))
    for path in ("/", "/a", "/abc"):
        assert with_others.allowed(f"http://h{path}") == without.allowed(f"http://h{path}")


@given(st.text(max_size=30))
def test_the_normal_form_is_normal(path):
    once = normal_path("http://h/" + path.replace("#", ""))
    assert normal_path("http://h" + once) == once
    assert once.isascii()
