"""Captures of sites whose pages have noise: a counter of readers is not what makes a capture incoherent."""

import asyncio

from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.visit.change_classifier import ClassifierRules
from recrawl.model import Verdict

WORDS = "Nothing on this page will ever be another, but for what stands at its end."


def page(readers, *paths, text=WORDS):
    links = "".join(f"<li><a href={path}>To {path}</a></li>" for path in paths)
    body = (
        f"<main><h1>Here</h1><p>{text}</p><ul>{links}</ul></main><div class=end><p>Read by {readers} so far</p></div>"
    )
    return 200, {}, f"<html><body>{body}</body></html>"


def capture(scene, site, **how):
    """Visit and revisit all pages: paths of those that stayed and those that changed, and the visits."""

    async def run():
        async with scene(**how) as stage:
            report = await stage.capture(CaptureOrder(site=site.home, strategy="bfs-lifo"))
            pages = (report.quality.coherent, report.quality.changed)
            stayed, changed = ({f"/{url.split('/', 3)[3]}" for url in stage.urls(some)} for some in pages)
            return stayed, changed, stage.store.visits()

    return asyncio.run(run())


def serve(site, count):
    site.answers["/"] = lambda times: page(100 + times, *(f"/{n}" for n in range(count)))
    for number in range(count):
        site.answers[f"/{number}"] = lambda times, number=number: page(7 * number + 13 * times)


def test_a_counter_does_not_make_a_capture_incoherent(scene, site):
    serve(site, 5)
    stayed, changed, visits = capture(scene, site, classifier=ClassifierRules())
    assert changed == set()
    assert stayed == {"/", *(f"/{number}" for number in range(5))}
    assert not (visits.verdict == Verdict.CHANGED).any()
    asked = {path: site.paths().count(path) for path in stayed}
    # Revisits are made twice until it is known.
    assert sum(count > 2 for count in asked.values()) >= 1
    assert max(asked.values()) == 3


def test_a_change_beside_the_counter_does(scene, site):
    serve(site, 5)
    site.answers["/3"] = lambda times: page(times, text=WORDS if times == 1 else "All is new here now.")
    stayed, changed, visits = capture(scene, site, classifier=ClassifierRules())
    assert changed == {"/3"}
    assert "/2" in stayed
    assert (visits.verdict == Verdict.CHANGED).sum() == 1


def test_at_one_look_the_counter_would(scene, site):
    serve(site, 2)
    _, changed, _ = capture(scene, site, classifier=ClassifierRules(confirm_changes=False))
    assert changed


def test_a_capture_can_be_stopped_between_the_looks(scene, site):
    serve(site, 1)

    async def run():
        async with scene(classifier=ClassifierRules()) as stage:
            begun = await stage.driver.begin(CaptureOrder(site=site.home, strategy="bfs-lifo"))
            site.answers["/0"] = lambda times: stopping(stage, page(13 * times)) if times == 2 else page(13 * times)
            assert await stage.driver.run(begun) is None
            return stage.store.visits(), len(stage.store.site_log(begun.id).steps)

    def stopping(stage, answer):
        stage.driver._slots.stopping = True  # as an interrupt while the answer is on its way
        return answer

    visits, steps = asyncio.run(run())
    assert len(visits) == steps == 3  # the look that was made is kept
