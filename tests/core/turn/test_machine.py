"""The turn machine: when calls start, and how the others end."""

from __future__ import annotations

import pytest
from tests.core.turn.turn_by_id import Cancel, Leave, RecordLate, Skip, Start, TurnById

from failsoft.core.model.outcome import Status
from failsoft.core.turn.machine import Node, TurnMachine
from failsoft.errors import TurnError

BAD_ENDS: tuple[Status, ...] = ("failed", "skipped", "timed_out", "cancelled")


@pytest.fixture
def turn() -> TurnById:
    return TurnById()


# --- starting -----------------------------------------------------------------------------------------------------


def test_a_call_that_needs_nothing_starts_at_once(turn: TurnById) -> None:
    assert list(turn.add("a")) == [Start("a", {})]
    assert list(turn.add("b")) == [Start("b", {})]
    assert turn.statuses == {"a": "running", "b": "running"}


def test_a_call_waits_for_what_it_needs(turn: TurnById) -> None:
    turn.add("a")
    assert list(turn.add("b", {"a": ["x"]})) == []
    assert turn.statuses["b"] == "waiting"
    assert list(turn.finish("a", "succeeded")) == [Start("b", {})]
    assert turn.statuses == {"a": "succeeded", "b": "running"}
    assert list(turn.finish("b", "succeeded")) == []


def test_a_call_waits_for_all_that_it_needs(turn: TurnById) -> None:
    for id in "abc":
        turn.add(id)
    turn.add("d", {"a": ["x"], "b": ["x"], "c": []})
    assert list(turn.finish("b", "succeeded")) == []
    assert list(turn.finish("c", "succeeded")) == []
    assert list(turn.finish("a", "succeeded")) == [Start("d", {})]


def test_calls_do_not_wait_for_dependencies_that_have_succeeded(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.finish("a", "succeeded")
    assert list(turn.add("c", {"a": ["x"]})) == [Start("c", {})]
    assert list(turn.add("d", {"a": ["x"], "b": ["y"]})) == []
    assert list(turn.finish("b", "succeeded")) == [Start("d", {})]


def test_several_start_in_the_order_of_submission(turn: TurnById) -> None:
    turn.add("a")
    for id in ("z", "m", "b"):
        turn.add(id, {"a": []})
    assert [command.id for command in turn.finish("a", "succeeded")] == ["z", "m", "b"]
    assert list(turn.statuses) == ["a", "z", "m", "b"]


# --- cascades -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", BAD_ENDS)
def test_dependants_of_a_call_without_a_value_are_skipped_and_name_the_root(turn: TurnById, end: Status) -> None:
    turn.add("a")
    turn.add("other")
    turn.add("b", {"a": ["x"]})
    turn.add("c", {"b": ["x"]})
    assert list(turn.finish("a", end)) == [Skip("b", "a", "a", False), Skip("c", "a", "b", False)]
    assert turn.statuses == {"a": end, "other": "running", "b": "skipped", "c": "skipped"}


@pytest.mark.parametrize("end", BAD_ENDS)
def test_a_call_that_comes_after_the_failure_is_judged_alike(turn: TurnById, end: Status) -> None:
    turn.add("a")
    turn.finish("a", end)
    assert list(turn.add("b", {"a": ["x"]})) == [Skip("b", "a", "a", False)]
    assert list(turn.add("c", {"b": ["x"]})) == [Skip("c", "a", "b", False)]
    assert list(turn.add("d", {"c": ["x"]}, defaults={"x": 0})) == [Start("d", {"x": 0})]


def test_a_required_call_escalates_and_is_skipped(turn: TurnById) -> None:
    turn.add("a")
    turn.add("optional", {"a": ["x"]}, required=False)
    turn.add("needed", {"a": ["x"]}, required=True)
    turn.add("after", {"needed": ["x"]}, required=True)
    assert list(turn.finish("a", "failed")) == [
        Skip("optional", "a", "a", False),
        Skip("needed", "a", "a", True),
        Skip("after", "a", "needed", True),
    ]


def test_a_default_replaces_the_failed_argument_it_names(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b", {"a": ["x", "y"]}, defaults={"x": 1, "y": None, "z": 3})
    assert list(turn.finish("a", "failed")) == [Start("b", {"x": 1, "y": None})]
    assert turn.statuses["b"] == "running"


def test_a_default_does_not_start_a_call_that_waits_for_others(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("c", {"a": ["x"], "b": ["y"]}, defaults={"x": 1})
    assert list(turn.finish("a", "failed")) == []
    assert turn.statuses["c"] == "waiting"
    assert list(turn.finish("b", "succeeded")) == [Start("c", {"x": 1})]


def test_all_failed_arguments_must_be_covered(turn: TurnById) -> None:
    for id in "abc":
        turn.add(id)
    turn.add("both", {"a": ["x"], "b": ["y"]}, defaults={"x": 1, "y": 2})
    turn.add("half", {"a": ["x"], "b": ["y"]}, defaults={"x": 1})
    turn.add("order", {"a": ["x"], "b": []}, defaults={"x": 1})
    assert list(turn.finish("a", "failed")) == []
    assert list(turn.finish("b", "failed")) == [
        Start("both", {"x": 1, "y": 2}),
        Skip("half", "b", "b", False),
        Skip("order", "b", "b", False),
    ]


def test_a_call_is_skipped_once_at_the_first_failure(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("c", {"a": ["x"], "b": ["y"]})
    assert list(turn.finish("b", "failed")) == [Skip("c", "b", "b", False)]
    assert list(turn.finish("a", "failed")) == []
    assert turn.statuses["c"] == "skipped"


def test_a_skipped_call_does_not_start_when_its_other_need_ends_well(turn: TurnById) -> None:
    for id in "abc":
        turn.add(id)
    turn.add("d", {"a": ["x"], "b": ["y"], "c": ["z"]})
    turn.finish("a", "failed")
    assert list(turn.finish("b", "succeeded")) == []
    assert list(turn.finish("c", "succeeded")) == []
    assert turn.statuses["d"] == "skipped"


def test_a_call_skipped_before_does_not_shield_others(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("c", {"a": ["x"], "b": ["y"]})
    turn.add("d", {"b": ["y"]})
    turn.finish("a", "failed")
    assert list(turn.finish("b", "failed")) == [Skip("d", "b", "b", False)]


def test_every_failed_need_is_judged_before_a_new_call_starts(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.finish("a", "failed")
    turn.finish("b", "failed")
    assert list(turn.add("c", {"a": ["x"], "b": ["y"]}, defaults={"x": 1})) == [Skip("c", "b", "b", False)]
    assert list(turn.add("d", {"a": ["x"], "b": ["y"]}, defaults={"x": 1, "y": 2})) == [Start("d", {"x": 1, "y": 2})]


def test_a_thousand_calls_can_fall_in_one_cascade(turn: TurnById) -> None:
    turn.add("0")
    for number in range(1, 1000):
        turn.add(str(number), {str(number - 1): ["x"]})
    skips = turn.finish("0", "failed")
    assert [command.id for command in skips] == [str(number) for number in range(1, 1000)]
    assert all(isinstance(skip, Skip) and skip.root == "0" for skip in skips)


# --- the deadline -------------------------------------------------------------------------------------------------


def test_at_the_deadline_running_calls_are_abandoned_and_waiting_calls_are_skipped(turn: TurnById) -> None:
    turn.add("done")
    turn.add("slow")
    turn.add("next", {"slow": ["x"]}, required=True)
    turn.add("last", {"next": ["x"]}, defaults={"x": 1})
    turn.finish("done", "succeeded")
    assert list(turn.expire()) == [
        Leave("slow"),
        Skip("next", "slow", "slow", False),  # R23: the deadline does not escalate
        Skip("last", "slow", "next", False),  # nor does it start anything
    ]
    assert turn.statuses == {"done": "succeeded", "slow": "timed_out", "next": "skipped", "last": "skipped"}


def test_a_call_that_waits_for_two_running_ones_is_skipped_once(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("c", {"b": ["x"], "a": ["y"]})
    assert list(turn.expire()) == [Leave("a"), Skip("c", "a", "a", False), Leave("b")]


def test_calls_added_after_the_deadline_are_skipped_at_once(turn: TurnById) -> None:
    turn.add("a")
    turn.expire()
    assert list(turn.add("b")) == [Skip("b", None, None, False)]
    assert list(turn.add("c", {"b": ["x"]}, required=True)) == [Skip("c", None, None, False)]
    assert list(turn.add_all([Node("d"), Node("e", {"d": []})])) == [
        Skip("d", None, None, False),
        Skip("e", None, None, False),
    ]
    assert list(turn.statuses.values()) == ["timed_out", "skipped", "skipped", "skipped", "skipped"]


@pytest.mark.parametrize("late", ["succeeded", "failed"])
def test_a_late_result_is_recorded_once_and_changes_nothing(turn: TurnById, late: Status) -> None:
    turn.add("a")
    turn.add("b", {"a": ["x"]})
    turn.expire()
    assert list(turn.finish("a", late)) == [RecordLate("a")]
    assert turn.statuses == {"a": "timed_out", "b": "skipped"}
    with pytest.raises(TurnError, match="call 'a' cannot finish: it is timed_out"):
        turn.finish("a", late)


def test_the_cancellation_of_an_abandoned_call_is_not_a_late_result(turn: TurnById) -> None:
    turn.add("a")
    turn.expire()
    assert list(turn.finish("a", "cancelled")) == []
    with pytest.raises(TurnError):
        turn.finish("a", "succeeded")


@pytest.mark.parametrize("end", ["expire", "cancel"])
def test_a_turn_is_quiet_once_its_abandoned_calls_have_reported(turn: TurnById, end: str) -> None:
    turn.add("a")
    turn.add("b", {"a": ["x"]})
    assert turn.machine.is_quiet()
    getattr(turn, end)()
    assert not turn.machine.is_quiet()
    turn.finish("a", "succeeded")
    assert turn.machine.is_quiet()


def test_the_deadline_comes_once(turn: TurnById) -> None:
    turn.add("a")
    turn.expire()
    assert list(turn.expire()) == []


def test_a_deadline_that_finds_nothing_open_still_ends_the_turn(turn: TurnById) -> None:
    turn.add("a")
    turn.finish("a", "succeeded")
    assert list(turn.expire()) == []
    assert list(turn.add("b")) == [Skip("b", None, None, False)]


# --- cancelling ---------------------------------------------------------------------------------------------------


def test_cancelling_ends_everything_that_is_open(turn: TurnById) -> None:
    turn.add("done")
    turn.add("a")
    turn.add("b", {"a": ["x"]}, defaults={"x": 1})
    turn.finish("done", "succeeded")
    assert list(turn.cancel()) == [Cancel("a", True), Cancel("b", False)]
    assert turn.statuses == {"done": "succeeded", "a": "cancelled", "b": "cancelled"}
    assert list(turn.finish("a", "cancelled")) == []
    assert list(turn.cancel()) == []
    assert list(turn.expire()) == []


def test_a_result_after_cancelling_is_late(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b", {"a": ["x"]})
    turn.cancel()
    assert list(turn.finish("a", "succeeded")) == [RecordLate("a")]
    assert turn.statuses == {"a": "cancelled", "b": "cancelled"}


def test_a_cancelled_turn_takes_no_more_calls(turn: TurnById) -> None:
    turn.cancel()
    turn.expire()
    with pytest.raises(TurnError, match="^the turn has been cancelled: it takes no more calls$"):
        turn.add("a")
    with pytest.raises(TurnError, match="takes no more calls"):
        turn.add_all([Node("a")])
    assert turn.statuses == {}


def test_after_the_deadline_cancelling_finds_nothing_open(turn: TurnById) -> None:
    turn.add("a")
    turn.expire()
    assert list(turn.cancel()) == []
    assert turn.statuses == {"a": "timed_out"}


# --- plans --------------------------------------------------------------------------------------------------------


def test_a_plan_may_name_later_calls(turn: TurnById) -> None:
    commands = turn.add_all([Node("c", {"b": ["x"]}), Node("b", {"a": ["x"]}), Node("a"), Node("free")])
    assert list(commands) == [Start("a", {}), Start("free", {})]
    assert list(turn.statuses) == ["c", "b", "a", "free"]
    assert list(turn.finish("a", "succeeded")) == [Start("b", {})]
    assert list(turn.finish("b", "failed")) == [Skip("c", "b", "b", False)]


def test_a_plan_may_name_calls_that_have_ended(turn: TurnById) -> None:
    turn.add("old")
    turn.add("bad")
    turn.finish("old", "succeeded")
    turn.finish("bad", "failed")
    assert list(
        turn.add_all(
            [
                Node("last", {"first": ["x"]}),
                Node("first", {"bad": ["x"]}),
                Node("fine", {"old": ["x"]}),
                Node("filled", {"bad": ["x"], "first": ["y"]}, None, {"x": 1, "y": 2}),
            ]
        )
    ) == [
        Start("fine", {}),
        Skip("first", "bad", "bad", False),
        Skip("last", "bad", "first", False),
        Start("filled", {"x": 1, "y": 2}),
    ]


def test_an_empty_plan_does_nothing(turn: TurnById) -> None:
    assert list(turn.add_all([])) == []


# --- refusals -----------------------------------------------------------------------------------------------------


def test_an_id_is_taken_once(turn: TurnById) -> None:
    turn.add("a")
    with pytest.raises(TurnError, match="call id 'a' is taken: give each call its own"):
        turn.add("a")
    turn.expire()
    with pytest.raises(TurnError, match="call id 'a' is taken"):
        turn.add("a")
    with pytest.raises(TurnError, match="call id 'b' is taken"):
        turn.add_all([Node("b"), Node("b")])


def test_an_unknown_dependency_is_refused_by_name(turn: TurnById) -> None:
    turn.add("flights")
    with pytest.raises(TurnError) as refused:
        turn.add("prices", {"flights": ["x"], "flihgts": ["x"]})
    assert str(refused.value) == (
        "call 'prices' depends on 'flihgts', which is not in this turn; did you mean flights?"
    )
    assert turn.statuses == {"flights": "running"}
    assert list(turn.add("prices", {"flights": ["x"]})) == []
    assert list(turn.finish("flights", "succeeded")) == [Start("prices", {})]


def test_a_plans_mistakes_come_all_at_once_and_nothing_is_added(turn: TurnById) -> None:
    turn.add("old")
    with pytest.raises(TurnError) as refused:
        turn.add_all([Node("a"), Node("old"), Node("a", {"zzz": []}), Node("c", {"yyy": []})])
    assert str(refused.value).splitlines() == [
        "call id 'old' is taken: give each call its own",
        "call id 'a' is taken: give each call its own",
        "call 'a' depends on 'zzz', which is not in this turn",
        "call 'c' depends on 'yyy', which is not in this turn",
    ]
    assert turn.statuses == {"old": "running"}


def test_a_cycle_is_refused_with_its_path(turn: TurnById) -> None:
    turn.add("old")
    with pytest.raises(TurnError) as refused:
        turn.add_all(
            [Node("in", {"a": []}), Node("a", {"old": [], "b": []}), Node("b", {"c": []}), Node("c", {"a": []})]
        )
    assert str(refused.value) == "calls depend on each other in a cycle: a → b → c → a"
    assert turn.statuses == {"old": "running"}


def test_each_cycle_has_its_line(turn: TurnById) -> None:
    with pytest.raises(TurnError) as refused:
        turn.add_all([Node("a", {"b": []}), Node("b", {"a": []}), Node("c", {"c": []})])
    assert str(refused.value).splitlines() == [
        "calls depend on each other in a cycle: a → b → a",
        "calls depend on each other in a cycle: c → c",
    ]


def test_a_call_cannot_need_itself(turn: TurnById) -> None:
    with pytest.raises(TurnError, match="in a cycle: a → a"):
        turn.add("a", {"a": ["x"]})
    assert turn.statuses == {}


def test_only_a_running_call_can_finish(turn: TurnById) -> None:
    with pytest.raises(TurnError, match="call 'a' cannot finish: it is not in this turn$"):
        turn.finish("a", "succeeded")
    turn.add("a")
    turn.add("b", {"a": []})
    with pytest.raises(TurnError, match="call 'b' cannot finish: it is waiting"):
        turn.finish("b", "succeeded")
    turn.finish("a", "succeeded")
    with pytest.raises(TurnError, match="call 'a' cannot finish: it is succeeded"):
        turn.finish("a", "failed")


def test_the_calls_cannot_be_changed_from_outside(turn: TurnById) -> None:
    with pytest.raises(TypeError):
        turn.machine.calls["a"] = Node("a")  # type: ignore[index]


# --- the short way of a success ------------------------------------------------------------------------------------


def test_a_success_names_the_calls_that_start_in_the_order_of_submission(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("both", {"a": ["x"], "b": ["y"]})
    turn.add("second", {"a": ["x"]})
    turn.add("third", {"a": ["x"]})
    assert turn.succeed("a") == ["second", "third"]
    assert turn.statuses["both"] == "waiting"
    assert turn.succeed("b") == ["both"]
    assert turn.succeed("both") == []
    assert turn.statuses == dict.fromkeys(("a", "b", "both"), "succeeded") | dict.fromkeys(
        ("second", "third"), "running"
    )


def test_a_success_does_not_start_skipped_calls_and_keeps_substituted_defaults(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b")
    turn.add("skipped", {"a": ["x"], "b": ["y"]})
    turn.add("filled", {"a": ["x"], "b": ["y"]}, defaults={"x": 1})
    turn.finish("a", "failed")
    assert turn.succeed("b") == ["filled"]
    assert turn["filled"].substitutes == {"x": 1}


@pytest.mark.parametrize("end", ["succeed", "expire"])
def test_only_what_runs_can_succeed(turn: TurnById, end: str) -> None:
    turn.add("a")
    turn.add("b", {"a": []})
    with pytest.raises(TurnError, match="call 'b' cannot finish: it is waiting"):
        turn.succeed("b")
    turn.succeed("a") if end == "succeed" else turn.expire()
    with pytest.raises(TurnError, match="call 'a' cannot finish: it is"):
        turn.succeed("a")


# --- calls that are taken, and entered when it is their turn ---------------------------------------------------------


def test_an_enqueued_call_runs_once_activated_and_sees_earlier_successes(turn: TurnById) -> None:
    turn.enqueue("a")
    turn.enqueue("b", {"a": ["x"]})
    assert turn.statuses == {"a": "new", "b": "new"}
    turn.activate("a")
    assert turn.succeed("a") == []
    turn.activate("b")
    assert turn.statuses == {"a": "succeeded", "b": "running"}


def test_a_call_activated_before_its_dependency_succeeds_waits(turn: TurnById) -> None:
    turn.enqueue("a")
    turn.enqueue("b", {"a": ["x"]})
    turn.activate("a")
    turn.activate("b")
    assert turn.statuses == {"a": "running", "b": "waiting"}
    assert turn.succeed("a") == ["b"]


def test_a_call_may_depend_on_an_enqueued_one(turn: TurnById) -> None:
    turn.enqueue("a")
    assert turn.add("b", {"a": ["x"]}) == []
    turn.activate("a")
    assert turn.finish("a", "failed") == [Skip("b", "a", "a", False)]


def test_the_first_failure_activates_enqueued_calls_and_skips_dependants(turn: TurnById) -> None:
    turn.enqueue("a")
    turn.enqueue("b", {"a": ["x"]}, required=True)
    turn.enqueue("c", {"a": ["x"]}, defaults={"x": 1})
    turn.enqueue("d")
    turn.enqueue("e", {"d": ["x"]})
    turn.enqueue("f", {"b": ["x"]})
    turn.activate("a")
    assert turn.finish("a", "failed") == [
        Start("d", {}),
        Skip("b", "a", "a", True),
        Start("c", {"x": 1}),
        Skip("f", "a", "b", False),
    ]
    assert turn.statuses["e"] == "waiting"
    assert turn.finish("c", "failed") == []
    assert turn.succeed("d") == ["e"]


def test_at_the_deadline_enqueued_calls_are_abandoned_or_skipped(turn: TurnById) -> None:
    turn.enqueue("a")
    turn.enqueue("b", {"a": ["x"]}, required=True)
    turn.enqueue("c", {"a": ["x"]}, defaults={"x": 1})
    turn.enqueue("d")
    assert turn.expire() == [Leave("a"), Skip("b", "a", "a", False), Skip("c", "a", "a", False), Leave("d")]


def test_an_enqueued_call_is_cancelled_as_not_started(turn: TurnById) -> None:
    turn.add("a")
    turn.enqueue("b")
    assert turn.cancel() == [Cancel("a", True), Cancel("b", False)]
    assert turn.finish("a", "cancelled") == []
    assert turn.machine.is_quiet()


def test_the_id_of_an_enqueued_call_cannot_be_used_again(turn: TurnById) -> None:
    turn.enqueue("a")
    with pytest.raises(TurnError, match="call id 'a' is taken"):
        turn.enqueue("a")
    with pytest.raises(TurnError, match="call id 'a' is taken"):
        turn.add("a")


@pytest.mark.parametrize("trouble", [*BAD_ENDS, "expire", "cancel"])
def test_a_turn_has_no_failure_until_a_call_or_the_turn_ends_badly(turn: TurnById, trouble: str) -> None:
    turn.add("a")
    turn.add("b")
    turn.finish("a", "succeeded")
    assert turn.machine.no_failure_yet
    getattr(turn, trouble)() if trouble in ("expire", "cancel") else turn.finish("b", trouble)  # type: ignore[arg-type]
    assert not turn.machine.no_failure_yet


# --- for the trace -------------------------------------------------------------------------------------------------


def test_a_call_reports_the_grounds_of_its_cascade(turn: TurnById) -> None:
    turn.add("a")
    turn.add("b", {"a": ["y", "x"]}, required=True, defaults={"z": 1, "x": 2})
    assert turn["b"].grounds() == {"required": True, "defaults": ["x", "z"]}
    assert turn["b"].grounds(turn["a"]) == {"required": True, "defaults": ["x", "z"], "arguments": ["x", "y"]}


def test_a_dependency_named_twice_is_waited_for_once(turn: TurnById) -> None:
    turn.add("a")
    first, second = Node("b"), Node("c")
    first.needs, second.needs = ("a", "a"), ("a", "a", "nowhere")
    assert not turn.machine.add(first)
    with pytest.raises(TurnError, match="'c' depends on 'nowhere'"):
        turn.machine.add(second)
    assert turn.finish("a", "succeeded") == [Start("b", {})]
    assert turn.statuses == {"a": "succeeded", "b": "running"}


def test_a_call_without_a_known_value_fails_those_that_need_it_and_starts_those_that_wait_for_its_end() -> None:
    machine: TurnMachine[Node] = TurnMachine()
    first, needs, waits = Node("first"), Node("needs", {"first": ["x"]}), Node("waits", {"first": []})
    machine.add_all([first, needs, waits])
    commands = machine.finish(first, "succeeded", value_known=False)
    assert [(type(command).__name__, command.call.id) for command in commands] == [
        ("Skip", "needs"),
        ("Start", "waits"),
    ]
    later, after = Node("later", {"first": ["x"]}), Node("after", {"first": []})
    assert [type(command).__name__ for command in machine.add(later)] == ["Skip"]
    assert [type(command).__name__ for command in machine.add(after)] == ["Start"]
    assert machine.valueless == 1
