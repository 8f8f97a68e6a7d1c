"""The golden functions that recrawl has, each as a call of recrawl. Names and arguments are those of the golden file.

To add one: write a function with the arguments of its cases that returns what they expect, register it, and take
its name off ``missing.txt``.
"""

import numpy as np

from recrawl.assess import blur_coherence, prediction_scores, site_structure
from recrawl.capture import (
    STRATEGIES,
    CaptureTerms,
    pyramid,
    sharc_intervals,
    sharc_optimal,
    sharc_selective,
    single_visit,
)
from recrawl.capture.strategy import LinkGraph, walk
from recrawl.detect import classify_change, known_after
from recrawl.estimate import mle, site_signals
from recrawl.estimate.mle import interpolate, update_model
from recrawl.estimate.point_estimators import bias_reduced_rate
from recrawl.model import UNCOUNTED, Capture, Histories, Pages, Verdict, Visits
from recrawl.plan import crawl_time
from recrawl.predict import static_features
from recrawl.predict.feature_extraction import link_targets, look_back_look_around
from recrawl.predict.related_pages import RelatedPages
from recrawl.schedule.policies import datamonitor_rules, hacs_policy, historic_classes
from recrawl.schedule.policies.policy_registry import ORACLES, POLICIES
from recrawl.time import DAY
from recrawl_lab.trials import bin_trial

FUNCTIONS = {}


def golden(name):
    """Register the call under its golden name."""

    def register(call):
        FUNCTIONS[name] = call
        return call

    return register


def floats(values):
    return np.asarray(values, dtype=np.float64)


def judged_links(versions):
    """What the judge says of a page that had these links, version by version."""
    known = None
    for number, links in enumerate(versions):
        body = "".join(f"<a href=/{link}>{link}</a>" for link in links).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        judged = classify_change(Capture("http://example.org/page", float(number), 200, head, body), known)
        known = known_after(judged, known)
        yield judged


# -- 000 HACS ---------------------------------------------------------------------------------


def history(tc, tu):
    """One page with gaps ``tc`` that ended in a change and ``tu`` that did not."""
    gaps = floats([*tc, *tu])
    ends = (np.array([np.nan if not len(gaps) else time]) for time in (0.0, gaps.sum(), floats(tc).sum()))
    changed = np.arange(len(gaps)) < len(tc)
    return Histories(np.array([0]), np.array([0, len(gaps)]), gaps, changed, *ends)


@golden("hacs.lambda_mle")
def lambda_mle(tc, tu):
    return mle.rates(history(tc, tu))[0]


@golden("hacs.lambda_bias_reduced")
def lambda_bias_reduced(X, n, T):  # noqa: N803 - the paper's letters
    return bias_reduced_rate(X, n, T)


def captures(times, new):
    """One page with captures at these times; a capture with new links is an update, the first one cannot be."""
    verdict = [Verdict.UNKNOWN, *(Verdict.CHANGED if count else Verdict.UNCHANGED for count in new[1:])]
    return Histories.from_visits(Visits.of(np.zeros(len(times)), times, verdict=verdict[: len(times)]))


@golden("hacs.new_link_counts")
def new_link_counts(links):
    first, *others = judged_links(links)
    return [None if first.new_internal == UNCOUNTED else first.new_internal, *(one.new_internal for one in others)]


@golden("hacs.interpolated_intervals")
def interpolated_intervals(times, new):
    moved = interpolate(captures(times, new))
    return [moved.gaps[moved.changed], moved.gaps[~moved.changed]]


@golden("hacs.model")
def hacs_model(times, new, interpolated):
    found = update_model(captures(times, new), interpolated=interpolated)
    return {"lambda": found.rate[0], "tau": found.last_update[0]} if len(times) else {"lambda": None, "tau": None}


@golden("hacs.micro")
def micro(counts):
    scores = prediction_scores.micro(np.reshape(counts, (-1, 4)))
    return [scores.precision, scores.recall, scores.f1]


@golden("hacs.macro")
def macro(counts):
    scores = prediction_scores.macro(np.reshape(counts, (-1, 4)))
    return [scores.precision, scores.recall, scores.f1]


@golden("hacs.weighted_p_at_k")
def weighted_p_at_k(model, expected):
    return prediction_scores.weighted_precision_at_k(np.asarray(model), np.asarray(expected))


@golden("hacs.select")
def hacs_select(urls, t, w, e, theta):
    pages = [captures(url["times"], url["new"]) for url in urls.values()]
    chances = [hacs_policy.change_probability(page, t, horizon=e, window=w)[0] if len(page) else 0.0 for page in pages]
    found = dict(zip(urls, chances, strict=True))
    return {"probabilities": found, "selected": sorted(url for url, p in found.items() if p >= theta)}


# -- 001 datamonitor --------------------------------------------------------------------------


def trailing_run(states):
    """How many of the last states are equal, counted up for changes and down for none."""
    equal = next((n for n, state in enumerate(reversed(states)) if state != states[-1]), len(states))
    return equal if states and states[-1] else -equal


@golden("datamonitor.fixdyn_step")
def fixdyn_step(kind, interval, states_same_interval):
    days = floats([interval]) * DAY
    needed = {"fix": datamonitor_rules.two, "dyn": datamonitor_rules.fewer_when_long}[kind](days)
    return datamonitor_rules.next_interval(days, np.array([trailing_run(states_same_interval)]), needed)[0] / DAY


@golden("datamonitor.ratio_step")
def ratio_step(interval, ratio):
    return datamonitor_rules.by_ratio(floats([interval]) * DAY, floats([ratio]))[0] / DAY


@golden("datamonitor.state_probability")
def state_probability(table, context):
    count = {(tuple(before), after): number for before, after, number in table}
    unchanged, changed = (np.array([count.get((tuple(context), after), 0)]) for after in (0, 1))
    return datamonitor_rules.probability(unchanged, changed)[0]


def simulated(policy, events, horizon):
    """Visit page 0 whenever it is due, from the time 0 on: yields when, whether it changed, and the interval it had."""
    page, last = np.array([0]), 0.0
    policy.add(Pages.of(page))
    policy.tell(Visits.of(page, [last]))
    while (now := policy.due(page, last)[0]) <= horizon:
        changed = bool(((events > last) & (events <= now)).any())
        yield now, changed, now - last
        policy.tell(Visits.of(page, [now], verdict=Verdict.CHANGED if changed else Verdict.UNCHANGED))
        last = now


def _datamonitor_policy(strategy, events, horizon, start):
    """A strategy of the paper by name. Two have no first interval: ``gold`` knows the mean one, ``week`` has one."""
    if strategy in ORACLES:
        return ORACLES[strategy](lambda page: np.full(len(page), len(events) / (horizon * DAY)))
    return POLICIES[strategy]() if strategy == "week" else POLICIES[strategy](start=start * DAY)


@golden("datamonitor.simulate")
def datamonitor_simulate(events, T, strategy, f0):  # noqa: N803 - the reference's letters
    policy = _datamonitor_policy(strategy.replace("_", "-"), events, T, f0)
    visits = list(simulated(policy, floats(events) * DAY, T * DAY))
    observed = sum(changed for _, changed, _ in visits)
    return {
        "downloads": len(visits),
        "observed": observed,
        "events": len(events),
        "recall": observed / len(events) if events else None,
        "precision": observed / len(visits) if visits else None,
        "final_interval": policy.intervals(np.array([0]))[0] / DAY,
        "intervals": [interval / DAY for _, _, interval in visits],
    }


def domain_columns(rows):
    """Domains from [name, docs, c, d] each."""
    name, docs, c, d = zip(*rows, strict=True) if rows else ((), (), (), ())
    return crawl_time.Domains(name, np.array(docs, dtype=np.int64), floats(c), floats(d))


@golden("datamonitor.domain")
def domain(docs, c, d):
    alone = crawl_time.estimate(domain_columns([["one", docs, c, d]]), concurrency=max(docs, 1))
    return {"threads": alone.concurrency, "crawltime": alone.seconds}


@golden("datamonitor.estimate")
def crawl_time_estimate(domains, max_threads):
    found = crawl_time.estimate(domain_columns(domains), max_threads)
    return {"crawl_time": found.seconds, "threads": found.concurrency, "cap": found.cap, "bins": found.bins}


# -- 002 Barbosa ------------------------------------------------------------------------------


@golden("barbosa.directory_level")
def directory_level(url):
    return static_features.directory_level(url)


CLASSES = {"table2": historic_classes.TABLE_2, "table4": historic_classes.TABLE_4}


@golden("barbosa.historic_step")
def historic_step(classes, cls, changes, visits):
    return historic_classes.reclassified(CLASSES[classes], np.array([cls]), np.array([changes]), np.array([visits]))[0]


@golden("barbosa.historic_run")
def historic_run(classes, start, change_days, horizon):
    policy = historic_classes.historic_classes(
        classes=CLASSES[classes], first_class=lambda pages: np.full(len(pages), start)
    )
    page, visits = np.array([0]), []
    for time, changed, _ in simulated(policy, floats(change_days) * DAY, horizon * DAY):
        visits.append([round(time / DAY), policy.state(page, "class")[0], int(changed)])
    return {"visits": visits, "final_class": policy.state(page, "class")[0]}


@golden("barbosa.bayes_update")
def bayes_update(prior, intervals, elapsed, changed):
    return historic_classes.updated(floats(prior), floats(intervals), elapsed, changed=changed)


@golden("barbosa.kmeans_1d")
def kmeans_1d(values, k):
    found = historic_classes.kmeans_1d(values, k)
    return {"centers": found.centres, "labels": found.labels, "sse": found.squares}


# -- 003 SHARC --------------------------------------------------------------------------------


@golden("sharc.blur")
def sharc_blur(lam, times, o_s, o_e):
    capture = floats(lam), floats(times), o_s, o_e
    return {"blur": blur_coherence.capture_blur(*capture), "average": blur_coherence.average_blur(*capture)}


@golden("sharc.blur_revisit")
def blur_revisit(lam, tv, tr, delta):
    end = (2 * len(lam) - 1) * delta
    return blur_coherence.capture_blur(floats(lam), floats(tv), 0.0, end, floats(tr))


@golden("sharc.offline")
def offline(lam, delta):
    plan = single_visit.organ_pipes(floats(lam))
    end = (len(lam) - 1) * delta
    capture = floats(lam), plan.visit_times(0.0, delta), 0.0, end
    return {
        "slot": plan.visit,
        "blur": blur_coherence.capture_blur(*capture),
        "average_blur": blur_coherence.average_blur(*capture),
        "bounds": blur_coherence.blur_bounds(floats(lam), 0.0, end),
    }


@golden("sharc.offline_general")
def offline_general(lam, delta, o_s, o_e):
    start = single_visit.centred_start(len(lam), delta, o_s, o_e)
    return single_visit.organ_pipes(floats(lam)).visit_times(start, delta)


def walked(strategy, children, seeds, lam):
    offsets = np.append(0, np.cumsum([len(row) for row in children]))
    targets = np.array([page for row in children for page in row], dtype=np.int64)
    return walk(strategy, LinkGraph(offsets, targets), np.asarray(seeds), floats(lam))


def order_of(name, children, seeds, lam, **terms):
    return walked(STRATEGIES[name](CaptureTerms(**{"delay": 1.0} | terms)), children, seeds, lam).visited


def both_kinds(pages, hopeless):
    """The hopeful and the hopeless ones of the pages, in the order given."""
    return {"hopeful": pages[~hopeless[pages]], "hopeless": pages[hopeless[pages]]}


@golden("sharc.bfs")
def bfs(children, seeds):
    return order_of("bfs", children, seeds, [0.0] * len(children))


@golden("sharc.dfs")
def dfs(children, seeds):
    return order_of("dfs", children, seeds, [0.0] * len(children))


@golden("sharc.hottest_first")
def hottest_first(lam, children, seeds):
    return order_of("hottest-first", children, seeds, lam)


@golden("sharc.hottest_last")
def hottest_last(lam, children, seeds):
    return order_of("hottest-last", children, seeds, lam)


@golden("sharc.online")
def online(lam, children, seeds, size):
    return order_of("sharc-online", children, seeds, lam, expected=size)


@golden("sharc.revisits")
def revisits(lam, delta):
    plan = pyramid.sharc_revisits(floats(lam))
    times = plan.visit_times(0.0, delta), 0.0, (2 * len(lam) - 1) * delta, plan.revisit_times(0.0, delta)
    return {"v": plan.visit, "r": plan.revisit, "blur": blur_coherence.capture_blur(floats(lam), *times)}


@golden("sharc.threshold")
def threshold(lam, tau, delta):
    plan = pyramid.sharc_threshold(floats(lam), delta, tau)
    hopeless = ~pyramid.hopeful_pages(floats(lam), delta, tau)
    return judged(lam, delta, plan, hopeless)


def judged(lam, delta, plan, hopeless):
    expected = blur_coherence.expected_coherence(floats(lam), delta * (plan.revisit - plan.visit))
    kinds = both_kinds(pyramid.hottest_first(floats(lam)), hopeless)
    return {"v": plan.visit, "r": plan.revisit, "expected_coherence": expected} | kinds


@golden("sharc.intervals_offline")
def intervals_offline(lengths):
    schedule = sharc_intervals.schedule_intervals(np.array(lengths))
    shrunk = schedule.shrunk()
    slots = {"v": schedule.visit, "r": schedule.revisit, "shrunk_v": shrunk.visit, "shrunk_r": shrunk.revisit}
    return slots | both_kinds(np.arange(len(lengths)), ~schedule.hopeful)


@golden("sharc.intervals_online")
def intervals_online(lengths, children, seeds):
    last = len(lengths) - 1
    rate = np.log(1.0 / 0.95) / (floats(lengths) + 0.5)  # rounds down to the length again
    strategy = STRATEGIES["sharc-intervals-online"](CaptureTerms(delay=1.0, expected=last + 1))
    done = walked(strategy, children, seeds, rate)
    hopeless = np.isin(np.arange(last + 1), strategy.given_up())
    slots = {"order": done.visited, "v": done.plan().visit - last, "r": done.plan().revisit - last}
    return slots | both_kinds(np.arange(last + 1), hopeless)


@golden("sharc.selective_offline")
def selective_offline(lam, delta):
    plan = sharc_selective.sharc_selective(floats(lam), delta)
    return judged(lam, delta, plan, sharc_selective.hopeless_pages(floats(lam), delta))


@golden("sharc.selective_optimum")
def selective_optimum(lam, delta):
    inner_first = pyramid.best_valley(floats(lam), delta)
    lengths = pyramid.pyramid_lengths(len(lam), delta, once=True)
    return {
        "optimal_expected_coherence": sharc_optimal.optimal(floats(lam), delta).expected_coherence,
        "valley_expected_coherence": blur_coherence.expected_coherence(floats(lam)[inner_first], lengths),
    }


@golden("sharc.selective_online")
def selective_online(lam, children, seeds, size, delta):
    return order_of("sharc-selective-online", children, seeds, lam, expected=size, delay=delta)


@golden("sharc.expected_coherence")
def expected_coherence(lam, lengths):
    return blur_coherence.expected_coherence(floats(lam), floats(lengths))


@golden("sharc.actual_blur")
def actual_blur(history, t, o_s, o_e):
    return blur_coherence.actual_blur(np.array([0, len(history)]), floats(history), floats([t]), o_s, o_e)[0]


@golden("sharc.actual_blur_revisit")
def actual_blur_revisit(history, tv, tr, o_s, o_e):
    offsets = np.array([0, len(history)])
    return blur_coherence.actual_blur(offsets, floats(history), floats([tv]), o_s, o_e, floats([tr]))[0]


@golden("sharc.actual_incoherence")
def actual_incoherence(histories, tv, tr):
    offsets = np.append(0, np.cumsum([len(times) for times in histories]))
    return blur_coherence.actual_incoherence(
        offsets, floats([t for times in histories for t in times]), floats(tv), floats(tr)
    )


@golden("sharc.worst_case_increase")
def worst_case_increase(lam, k, delta):
    return blur_coherence.worst_case_increase(floats(lam), k, delta)


@golden("sharc.collapse")
def sharc_collapse(tree, status, root):
    names = {"same": "UNCHANGED", "content": "CONTENT", "link": "LINKS", "missing": "MISSING"}
    change = [site_structure.ChangeClass[names[one]] for one in status]
    parent = np.full(len(tree), site_structure.ROOT)
    for node, children in enumerate(tree):
        parent[children] = node
    assert parent[root] == site_structure.ROOT
    found = site_structure.collapse(parent, np.array(change))
    return {
        "drawn": {str(node): change[node].colour for node in found.nodes()},
        "collapsed": {str(node): found.folded[node] for node in found.nodes() if found.folded[node]},
        "edges": np.transpose(found.edges(parent)).tolist(),
    }


@golden("sharc.oracle_mle")
def oracle_mle(times, T, delta):  # noqa: N803 - the thesis' letter
    return site_signals.rate(len(times), T / delta)  # changes per interval of length delta: reading 003.37


@golden("sharc.sitemap_rates")
def sitemap_rates(T, tau):  # noqa: N803 - the thesis' letter
    return site_signals.category_rates(T, tau)


@golden("sharc.online_features")
def features_before_the_fetch(url, mime):
    return static_features.online_features(url, mime)._asdict()


@golden("sharc.equal_frequency_bins")
def equal_frequency_bins(values, bins):
    return bin_trial.equal_frequency_bins(floats(values), bins)


# -- 004 LBLA ---------------------------------------------------------------------------------


@golden("lbla.is_internal")
def is_internal(src, dst):
    return static_features.is_internal(src, dst)


@golden("lbla.url_depths")
def url_depths(url):
    return static_features.url_depths(url)._asdict()


@golden("lbla.precision_at_percent")
def precision_at_percent(truth, pred, k):
    return prediction_scores.precision_at_percent(floats(truth), floats(pred), k)


@golden("lbla.precision_area")
def precision_area(truth, pred):
    return prediction_scores.precision_area(floats(truth), floats(pred))


@golden("lbla.spearman")
def spearman(a, b):
    return prediction_scores.spearman(floats(a), floats(b))


@golden("lbla.new_counts")
def lbla_new_counts(outlinks):
    return [judged.added_internal for judged in judged_links(outlinks)][1:]


@golden("lbla.targets")
def lbla_targets(counts):
    found = link_targets(floats([counts]))
    return {"NNL": found.number[0], "NL": found.presence[0], "LCR": found.change_rate[0]}


@golden("lbla.features")
def lbla_features(counts, similarity, page, k, history):
    whole, near = floats(counts), floats(similarity)
    np.fill_diagonal(near, -np.inf)
    row = np.argsort(-near, axis=1, kind="stable")[:, :k]
    related = RelatedPages(row, np.take_along_axis(near, row, axis=1), recall=1.0, sampled=0)
    found = look_back_look_around(whole[:, :-1], related, history=history, literal=whole)
    return {
        "back": found.back[page],
        "back_mean": found.back_mean[page],
        "around": found.around[page],
        "around_mean": found.around_mean[page],
        "around_lcr": found.around_change_rate[page],
        "neighbours": row[page],
    }
