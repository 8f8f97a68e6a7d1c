"""The visit machine: every state with every event, and the order of every visit."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from recrawl.crawl.visit import visit_machine
from recrawl.crawl.visit.visit_machine import (
    ENDS,
    TRANSITIONS,
    VisitAction,
    VisitEvent,
    VisitMachine,
    VisitOrderError,
    VisitState,
    VisitTarget,
)

REQUESTS = {VisitAction.FETCH, VisitAction.FETCH_ROBOTS}
HANDED_OVER = {
    VisitState.DEFERRED,
    VisitState.RULES,
    VisitState.UNDERWAY,
    VisitState.UNCONFIRMED,
    VisitState.READ,
    VisitState.VISITED,
    VisitState.BROKEN,
    VisitState.BLOCKED,
}
ALL_STEPS = [
    (state, event, *TRANSITIONS[state][event])
    for state in VisitState
    for event in VisitEvent
    if event in TRANSITIONS[state]
]


def machine_in(state):
    machine = VisitMachine()
    machine.state = state
    return machine


@pytest.mark.parametrize("state", VisitState)
def test_every_state_takes_an_event_or_says_that_it_cannot(state):
    for event in VisitEvent:
        machine = machine_in(state)
        if event in TRANSITIONS[state]:
            after, action = TRANSITIONS[state][event]
            assert machine.feed(event) is action
            assert machine.state is after
            assert machine.has_ended == (after in ENDS)
        else:
            with pytest.raises(VisitOrderError, match=state.value) as raised:
                machine.feed(event)
            assert event.value in str(raised.value)
            assert machine.state is state


def test_a_visit_that_has_ended_takes_no_event():
    assert all(not TRANSITIONS[state] for state in ENDS)
    assert all(TRANSITIONS[state] for state in VisitState if state not in ENDS)


def test_an_end_comes_with_the_action_that_says_so():
    assert all((after in ENDS) == (action is VisitAction.END) for _, _, after, action in ALL_STEPS)


def test_every_state_event_and_action_is_used():
    assert {after for _, _, after, _ in ALL_STEPS} == set(VisitState)
    assert {event for _, event, _, _ in ALL_STEPS} == set(VisitEvent)
    assert {action for _, _, _, action in ALL_STEPS} == set(VisitAction)


def test_a_fault_is_possible_until_the_end():
    for state in set(VisitState) - ENDS:
        assert TRANSITIONS[state][VisitEvent.FAULT][0] is VisitState.BROKEN
        assert TRANSITIONS[state][VisitEvent.DROP][0] is VisitState.GIVEN_UP


def test_the_result_of_every_turn_is_handed_over_and_can_be_asked_for_again():
    assert {after for _, _, after, action in ALL_STEPS if action is VisitAction.HAND_OVER} == HANDED_OVER
    for state in HANDED_OVER:
        assert VisitEvent.BELIEVED in TRANSITIONS[state]
        assert TRANSITIONS[state][VisitEvent.AGAIN] == (VisitState.WAITING, VisitAction.WAIT)


@pytest.mark.parametrize("end", sorted(ENDS, key=lambda state: state.value))
def test_every_end_can_be_reached_from_the_lease(end):
    reached, grown = {VisitState.WAITING}, True
    while grown:
        more = {after for state, _, after, _ in ALL_STEPS if state in reached}
        grown = not more <= reached
        reached |= more
    assert end in reached


def test_a_request_is_sent_from_an_open_gate_only():
    before = {(state, event) for state, event, _, action in ALL_STEPS if action in REQUESTS}
    assert before == {(VisitState.ADDRESS, VisitEvent.OPEN), (VisitState.ROBOTS_ADDRESS, VisitEvent.OPEN)}
    assert {state for state, _, after, _ in ALL_STEPS if after is VisitState.ADDRESS} == {VisitState.ROBOTS}


def test_a_commit_follows_an_archived_visit_only():
    commits = [(state, event) for state, event, after, _ in ALL_STEPS if after is VisitState.COMMIT]
    assert commits == [(VisitState.ARCHIVE, VisitEvent.ARCHIVED)]
    ends = [(state, event) for state, event, after, _ in ALL_STEPS if after is VisitState.RESCHEDULED]
    assert ends == [(VisitState.COMMIT, VisitEvent.COMMITTED)]


def test_the_tables_at_the_top_name_every_state_and_event():
    text = visit_machine.__doc__ or ""
    assert [one.name for one in (*VisitState, *VisitEvent) if one.name not in text] == []


def test_the_machine_touches_nothing_outside():
    code = Path(visit_machine.__file__).read_text(encoding="utf-8")
    assert not [name for name in ("asyncio", "socket", "time.time", "Clock", "recrawl.store", "open(") if name in code]


def test_all_forms_of_a_target_share_their_visit():
    target = VisitTarget(1, 1, "http://a.example/", 0.0)
    moved = target.at_host(2)
    moved.machine.feed(VisitEvent.TURN)
    assert target.machine.state is VisitState.ROBOTS
    assert target == VisitTarget(1, 1, "http://a.example/", 0.0)
    assert pickle.loads(pickle.dumps(target)).machine.state is VisitState.ROBOTS
    assert copy.deepcopy(target).machine is not target.machine


class AnyVisit(RuleBasedStateMachine):
    """Feeds any possible event, and checks the order of what the machine asks for."""

    def __init__(self):
        super().__init__()
        self.machine = VisitMachine()
        self.allowed = self.open = self.archived = False
        self.ends = 0

    @precondition(lambda self: not self.machine.has_ended)
    @rule(data=st.data())
    def feed(self, data):
        before = self.machine.state
        event = data.draw(st.sampled_from(sorted(TRANSITIONS[before], key=lambda event: event.name)))
        if event is VisitEvent.TURN:
            self.allowed = self.open = False
        if before is VisitState.ROBOTS:
            self.allowed = event is VisitEvent.ALLOWED
        if event in {VisitEvent.OPEN, VisitEvent.BUSY}:
            self.open = event is VisitEvent.OPEN
        if before is VisitState.ARCHIVE:
            self.archived = event is VisitEvent.ARCHIVED
        action = self.machine.feed(event)
        if action is VisitAction.FETCH:
            assert self.allowed
        if action in REQUESTS:
            assert self.open
        if action is VisitAction.COMMIT or self.machine.state is VisitState.RESCHEDULED:
            assert self.archived
        self.ends += action is VisitAction.END

    @precondition(lambda self: self.machine.has_ended)
    @rule(event=st.sampled_from(list(VisitEvent)))
    def feed_after_the_end(self, event):
        with pytest.raises(VisitOrderError):
            self.machine.feed(event)

    @invariant()
    def it_ends_once(self):
        assert self.ends == self.machine.has_ended

    def teardown(self):
        if not self.machine.has_ended:  # from wherever it is
            self.machine.feed(VisitEvent.DROP)
        assert self.machine.state in ENDS


AnyVisit.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
test_any_visit = AnyVisit.TestCase


def test_a_visit_as_it_goes_without_trouble():
    machine = VisitMachine()
    events = ["TURN", "ALLOWED", "OPEN", "ANSWERED", "CLASSIFIED", "BELIEVED", "ARCHIVED", "COMMITTED"]
    actions = ["CHECK_ROBOTS", "ENTER_GATE", "FETCH", "CLASSIFY", "HAND_OVER", "ARCHIVE", "COMMIT", "END"]
    assert [machine.feed(VisitEvent[event]).name for event in events] == actions
    assert machine.state is VisitState.RESCHEDULED


def test_a_visit_that_needs_its_rules_and_a_confirmation():
    machine = VisitMachine()
    for event in (
        *("TURN", "UNKNOWN", "BUSY", "BELIEVED"),  # its address is taken
        *("TURN", "UNKNOWN", "OPEN", "RULES_READ", "BELIEVED", "ALLOWED"),
        *("TURN", "ALLOWED", "OPEN", "ANSWERED", "DOUBTFUL", "BELIEVED"),
        *("TURN", "ALLOWED", "OPEN", "ANSWERED", "CLASSIFIED", "AGAIN"),  # we were offline
        *("TURN", "EXPIRED", "BELIEVED", "ARCHIVED", "UNRECORDED", "ARCHIVED", "COMMITTED"),
    ):
        machine.feed(VisitEvent[event])
    assert machine.state is VisitState.RESCHEDULED
