from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.config.manifest import Plan, PlannedCall, Ref, load_plan
from failsoft.config.manifest.plan import read_ref
from failsoft.core.model.options import RetryOptions
from failsoft.core.turn.machine import Node, TurnMachine
from failsoft.errors import ManifestError

TRAVEL = """
timeout: 5m
thread: chat-42
calls:
  - {id: flights, tool: flight_search, args: {destination: PAR}}
  - id: prices
    tool: compare_prices
    args: {flights: {$ref: flights}, options: [{hotel: {$ref: hotels}}, {$ref: flights}], style: {$literal: {$ref: x}}}
    depends_on: [weather]
    required: true
    defaults: {flights: []}
    timeout: 3s
    retry: {max_attempts: 2}
    idempotency_key: order-7
  - {id: hotels, tool: hotel_search}
  - {id: weather, tool: weather}
"""


def problems(source, **options):
    with pytest.raises(ManifestError) as raised:
        load_plan(source, name="p.yaml", **options)
    return list(raised.value.problems)


def only(source, **options):
    (problem,) = problems(source, **options)
    return problem


def calls(*written):
    return load_plan({"calls": list(written)}).calls


def test_a_plan_is_read_with_its_references_and_places():
    flights, prices, hotels, weather = Ref("flights"), "prices", Ref("hotels"), "weather"
    plan = load_plan(TRAVEL, name="p.yaml")
    assert plan == Plan(
        name="p.yaml",
        timeout=300.0,
        thread="chat-42",
        calls=(
            PlannedCall(id="flights", tool="flight_search", args={"destination": "PAR"}, place="p.yaml:5:5"),
            PlannedCall(
                id=prices,
                tool="compare_prices",
                args={"flights": flights, "options": [{"hotel": hotels}, flights], "style": {"$ref": "x"}},
                needs={"weather": (), "flights": ("flights", "options"), "hotels": ("options",)},
                required=True,
                defaults={"flights": []},
                timeout=3.0,
                retry={"max_attempts": 2},
                idempotency_key="order-7",
                place="p.yaml:6:5",
            ),
            PlannedCall(id="hotels", tool="hotel_search", place="p.yaml:15:5"),
            PlannedCall(id=weather, tool="weather", place="p.yaml:16:5"),
        ),
    )


def test_references_are_filled_with_values_and_nothing_else_is_touched():
    prices = load_plan(TRAVEL).calls[1]
    values = {"flights": 1, "hotels": {"$ref": "kept"}}
    assert prices.fill(lambda ref: values[ref.id]) == {
        "flights": 1,
        "options": [{"hotel": {"$ref": "kept"}}, 1],
        "style": {"$ref": "x"},
    }


def test_plans_may_be_json_or_mappings():
    written = {"timeout": "5m", "calls": [{"id": "a", "tool": "x", "args": {"n": 1e3, "no": "no"}}]}
    assert load_plan(json.dumps(written)).calls[0].args == load_plan(written).calls[0].args == {"n": 1000.0, "no": "no"}
    assert load_plan({"timeoutMs": 500, "calls": [{"tool": "x", "dependsOn": []}]}).timeout == 0.5
    retry = RetryOptions(max_attempts=1)
    assert calls({"tool": "x", "retry": retry})[0].retry is retry
    live = object()
    assert calls({"tool": "x", "args": {"live": live}})[0].args["live"] is live


def test_calls_without_an_id_are_numbered_past_the_ids_that_are_taken():
    named = calls({"tool": "a"}, {"tool": "b"}, {"tool": "a", "id": "a-2"}, {"tool": "a"}, {"tool": "a"})
    assert [call.id for call in named] == ["a-1", "b-1", "a-2", "a-3", "a-4"]
    assert calls({"tool": "b", "args": {"x": {"$ref": "a-1"}}}, {"tool": "a"})[0].needs == {"a-1": ("x",)}


def test_the_turn_machine_takes_what_a_plan_needs():
    plan = load_plan(TRAVEL)
    machine: TurnMachine[Node] = TurnMachine()
    machine.add_all([Node(call.id, call.needs, call.required, call.defaults) for call in plan.calls])
    assert {id: call.state for id, call in machine.calls.items()} == {
        "flights": "running",
        "prices": "waiting",
        "hotels": "running",
        "weather": "running",
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "calls: [{id: a, tool: x, depends_on: [a]}]",
            "1:9: calls[0]: these calls wait for each other in a cycle, a → a: drop one of the references",
        ),
        (
            "calls:\n- {id: a, tool: x, args: {v: {$ref: b}}}\n- {id: b, tool: x, depends_on: [c]}\n"
            "- {id: c, tool: x, args: {v: [{$ref: a}]}}",
            "2:3: calls[0]: these calls wait for each other in a cycle, a → b → c → a: drop one of the references",
        ),
        (
            "calls: [{id: flights, tool: x}, {id: b, tool: x, args: {v: {$ref: flight}}}]",
            "1:60: calls[1].args.v: b depends on flight, which is not a call of this plan; did you mean flights?",
        ),
        (
            "calls: [{id: b, tool: x, depends_on: [z]}]",
            "1:38: calls[0].depends_on: b depends on z, which is not a call of this plan: name the id of one",
        ),
        (
            "calls: [{id: a, tool: x}, {id: a, tool: y}]",
            "1:32: calls[1].id: a is used twice: give each call its own id",
        ),
        ("calls: [{tool: x, args: {v: {$ref: 3}}}]", "calls[0].args.v.$ref: is not the id of a call: write a text"),
        ("calls: [{tool: x, args: {v: {$ref: a, b: 1}}}]", "calls[0].args.v: $ref stands alone: drop the other keys"),
        ("calls: [{tool: x, args: {v: {$literal: a, b: 1}}}]", "calls[0].args.v: $literal stands alone"),
        (
            "calls: [{tool: x, args: {$literal: 1}}]",
            "1:26: calls[0].args.$literal: is not an argument: args maps names to values",
        ),
        ("calls: [{id: a}]", "1:9: calls[0].tool: is missing"),
        ("calls: [{tool: x, arg: {}}]", "1:19: calls[0].arg: is not known here; did you mean args?"),
        ("calls: [{tool: x, args: [1]}]", "1:25: calls[0].args: [1] is not a mapping: write keys and values"),
        ("calls: [{tool: x, required: 1}]", "calls[0].required: 1 is neither true nor false"),
        ("calls: [{tool: x, timeout: 3}]", 'calls[0].timeout: 3 has no unit: write "3s"'),
        ("calls: {a: x}", "1:8: calls: {'a': 'x'} is not a list: write it in brackets"),
        ("timeout: 5m", "1:1: calls: is missing"),
        ("timeout: null\ncalls: []", "1:10: timeout: None is not a duration"),
        ("calls: [{tool: x, args: {answer: no}}]", "calls[0].args.answer: no is true or false to some readers"),
        ("- a", "1:1: ['a'] is not a mapping: write keys and values"),
    ],
)
def test_a_plan_that_cannot_run_is_rejected_with_the_line_and_column(source, said):
    problem = only(source)
    assert problem.startswith("p.yaml:")
    assert said in problem


def test_all_problems_come_at_once():
    source = "calls: [{id: a, tool: x, args: {v: {$ref: 3}}}, {id: a, tool: y, depends_on: [z]}, {id: c, tool: x, depends_on: [c]}]"
    assert len(problems(source)) == 4


def test_arguments_that_contain_themselves_are_refused():
    endless = {}
    endless["again"] = endless
    assert "args.v: is nested more than 64 deep" in only({"calls": [{"tool": "x", "args": {"v": endless}}]})


def test_a_long_chain_does_not_hit_the_recursion_limit():
    chain = [{"id": str(n), "tool": "x", "depends_on": [str(n + 1)]} for n in range(5000)]
    assert len(calls(*chain, {"id": "5000", "tool": "x"})) == 5001
    with pytest.raises(ManifestError, match="in a cycle, 0 → 1 → 2"):
        calls(*chain, {"id": "5000", "tool": "x", "depends_on": ["0"]})


def test_a_plan_without_calls_is_a_plan():
    assert load_plan("calls: []").calls == ()


PIECES = st.sampled_from(
    ["$ref", "$literal", "{", "}", "[", "]", ": ", ", ", "a", "flights", "*x", "no", "\n", " ", "3", "'"]
)


@given(st.data())
def test_mutated_plans_raise_nothing_but_manifest_errors(data):
    text = TRAVEL
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 6)) :]
    try:
        plan = load_plan(text, name="f")
    except ManifestError:
        return
    ids = [call.id for call in plan.calls]
    assert len(ids) == len(set(ids))
    assert all(need in ids for call in plan.calls for need in call.needs)


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("a", Ref("a")),
        ("a.price", Ref("a", ("price",))),
        ("a[0].id", Ref("a", (0, "id"))),
        ("a[-1]", Ref("a", (-1,))),
        ("a['x.y'][\"z\"]", Ref("a", ("x.y", "z"))),
        ("b.c", Ref("b.c")),  # an exact id comes first
        ("b.c.d", Ref("b.c", ("d",))),  # and then the longest
        ("b.x", Ref("b", ("x",))),
        ("a[", None),
        ("a[price]", None),
        ("a.", None),
        ("a..b", None),
        ("q.price", Ref("q", ("price",))),  # no call: its id is what the mistake is about
    ],
)
def test_a_reference_may_lead_into_a_value(text, ref):
    assert read_ref(text, {"a", "b.c", "b"}) == ref


def test_all_mistakes_of_a_plan_are_reported_at_once():
    plan = {
        "calls": [
            {"id": "a", "tool": "x", "timeout": 3},
            {"id": "a", "tool": "y", "args": {"v": {"$ref": "b.price"}, "w": {"$ref": "a[x]"}}},
            {"id": "c", "tool": "y", "argz": {}, "dependsOn": ["nowhere"]},
        ]
    }
    with pytest.raises(ManifestError) as caught:
        load_plan(plan)
    said = "\n".join(caught.value.problems)
    for part in (
        "timeout: 3 has no unit",
        "a is used twice",
        "depends on b,",
        "is not a path",
        "argz: is not known",
        "nowhere",
    ):
        assert part in said
    assert len(caught.value.problems) == 6
