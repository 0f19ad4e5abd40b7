from __future__ import annotations

import pytest

from failsoft.config.manifest import check, load, load_plan


def found(manifest, plan=None, **options):
    loaded = load(manifest, name="f.yaml")
    plan = None if plan is None else load_plan(plan, name="p.yaml")
    return [f"{problem.severity} {problem}" for problem in check(loaded, plan, **options)]


def test_a_sound_manifest_has_no_findings():
    assert found("tools: {a: {read_only: true, fallbacks: [b]}, b: {idempotent: false}}") == []


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (
            "{}",
            "warning f.yaml:1:9: tools.a: its effects are not declared: write read_only: true, or idempotent: true or false",
        ),
        (
            "{read_only: true, required: false, defaults: {x: 1}}",
            "warning f.yaml:1:9: tools.a.defaults: required: false skips the call before a default is used: drop one",
        ),
        (
            "{read_only: true, retry: {initial_delay: 1s}}",
            "warning f.yaml:1:9: tools.a.retry.initial_delay: 1s is cut to the max_delay of 800ms: raise max_delay too",
        ),
        (
            "{read_only: true, retry: {max_total_time: 50ms}}",
            "warning f.yaml:1:9: tools.a.retry.max_total_time: 50ms is shorter than the delay of the first retry, 100ms:"
            " no retry is made",
        ),
        (
            "{read_only: true, retry: {rules: [{max_attempts: 2, handle_errors: [UNKNOWN]},"
            " {max_attempts: 2, handle_errors: [INTERNAL, UNKNOWN]}]}}",
            "warning f.yaml:1:9: tools.a.retry.rules[1]: an earlier rule lists UNKNOWN already",
        ),
        (
            "{read_only: true, fallbacks: [nowhere]}",
            "error f.yaml:1:9: tools.a.fallbacks: nowhere is not in the manifest: add it, without an entrypoint if code registers it",
        ),
    ],
)
def test_warnings_about_a_tool(tool, said):
    assert found(f"tools: {{a: {tool}}}") == [said]


def test_a_name_that_is_nearly_right():
    assert found("tools: {flights: {read_only: true, fallbacks: [flihgts]}}") == [
        "error f.yaml:1:9: tools.flights.fallbacks: flihgts is not in the manifest; did you mean flights?"
    ]


def test_a_reference_that_is_misspelt_is_an_argument():
    tools = "tools: {a: {read_only: true}}"
    plan = "calls: [{id: x, tool: a, args: {v: [{$rf: y}, {$ref: y}, {$gt: 3}, {$reff: 1, b: 2}]}}, {id: y, tool: a}]"
    assert found(tools, plan) == [
        "warning p.yaml:1:9: calls[0].args.v[0].$rf: is passed to the tool unchanged; did you mean $ref?"
    ]


def test_no_effects_need_to_be_declared_if_nothing_is_repeated():
    assert found("tools: {a: {retry: {max_attempts: 1}}}") == []
    assert found("tools: {a: {idempotency_key: key}}") == []


@pytest.mark.parametrize(
    ("options", "turn", "said"),
    [
        ("timeout: 5s", "5s", "retries of this tool can take 12s but its turn has 5s"),
        ("timeout: 5s", "12s", None),
        ("timeout: 6s", "5s", "an attempt of this tool can take 6s but its turn has 5s"),
        ("timeout: 6s, retry: {max_attempts: 1}", "6s", None),
        ("timeout: 1s, retry: {max_attempts: 2, jitter_percent: 0}", "2s", "can take 2.1s but its turn has 2s"),
        ("timeout: 1s, retry: {max_attempts: 2, jitter_percent: 0}", "2100ms", None),
        ("timeout: 1s, retry: {max_attempts: 2, jitter_percent: 100}", "2100ms", "can take 2.2s"),
        (
            "timeout: 1s, retry: {max_attempts: 1000000000, max_total_time: 2h}",
            "1h",
            "can take 2h2s but its turn has 1h",
        ),
        ("timeout: 1s, retry: {rules: [{max_attempts: 3, handle_errors: [UNKNOWN]}]}", "3s", "can take 3.3s"),
        ("timeout: null", "1s", None),
        ("timeout: 1h", "null", None),
    ],
)
def test_retries_that_outlast_their_turn(options, turn, said):
    problems = found(f"turn: {{timeout: {turn}}}\ntools: {{a: {{read_only: true, {options}}}}}")
    assert len(problems) == (said is not None)
    assert said is None or said in problems[0]


def test_the_defaults_fit_into_a_turn():
    assert found("tools: {a: {read_only: true}}") == []


def test_an_undefined_tool_is_an_error_if_the_tools_in_code_are_known():
    source = "tools: {a: {read_only: true, fallbacks: [cached_flight]}}"
    assert found(source, known=["a", "cached_flight"]) == []
    assert found(source, known=["cached_flights"]) == [
        "error f.yaml:1:9: tools.a: it has no entrypoint: add one, or register the tool in code",
        "error f.yaml:1:9: tools.a.fallbacks: there is no tool cached_flight; did you mean cached_flights?",
    ]
    assert found("tools: {a: {read_only: true, entrypoint: {function: 'x:y'}}}", known=[]) == []


def policies(*rows, **options):
    return found("policies:\n" + "".join(f"  - {row}\n" for row in rows), **options)


def test_a_policy_that_is_never_reached():
    assert policies(
        "{name: all payments, when: {tool: 'pay_*'}, then: escalate}",
        "{name: other, when: {tool: 'book_*'}, then: retry}",
        "{name: cards, when: {tool: 'pay_card*', code: INTERNAL}, then: retry}",
    ) == [
        "warning f.yaml:4:5: policies[2]: is never reached: 'all payments' (f.yaml:2:5) comes first and matches"
        " everything that this one matches"
    ]


def test_policies_that_contradict_each_other():
    assert policies(
        "{name: one, when: {classification: transient}, then: escalate}",
        "{name: two, when: {category: tool_transient}, then: retry}",
    ) == [
        "error f.yaml:3:5: policies[1]: contradicts 'one' (f.yaml:2:5), which has the same conditions and comes first:"
        " keep one"
    ]
    (said,) = policies("{name: one, then: escalate}", "{name: two, then: escalate}")
    assert "is never reached" in said


def test_a_policy_that_matches_nothing():
    impossible = "{name: one, when: {classification: transient, category: tool_validation}, then: escalate}"
    (said,) = policies(impossible, "{name: two, then: escalate}")
    assert said.startswith("error f.yaml:2:5: policies[0].when: matches nothing")


def test_a_retry_policy_for_unknown_effects_without_consent_is_warned_about():
    rule = "name: one, when: {effect: [none, unknown]}, then: retry"
    assert policies(f"{{{rule}}}") == [
        "warning f.yaml:2:5: policies[0].then: a call that may have taken effect is retried only with even_if_effect_unknown: true"
    ]
    assert policies(f"{{{rule}, even_if_effect_unknown: true}}") == []


def test_tools_that_policies_name():
    row = "{name: one, when: {tool: 'a*'}, then: {tool: b}}"
    assert policies(row) == [
        "warning f.yaml:2:5: policies[0].then.tool: b is not in the manifest: add it, without an entrypoint if code registers it"
    ]
    assert policies(row, known=["b"]) == ["warning f.yaml:2:5: policies[0].when.tool: a* matches no tool"]
    assert policies(row, known=["a1", "b"]) == []


MANIFEST = "tools: {a: {read_only: true, timeout: 5s}}"


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("calls: [{tool: a}]", []),
        (
            "calls: [{tool: b}]",
            [
                "error p.yaml:1:9: calls[0].tool: b is not in the manifest: add it, without an entrypoint if code registers it"
            ],
        ),
        (
            "{timeout: 5s, calls: [{tool: a}]}",
            ["warning p.yaml:1:23: calls[0]: retries of this tool can take 12s but its turn has 5s"],
        ),
        ("{timeout: 5s, calls: [{tool: a, timeout: 1s}]}", []),
        ("{timeout: 5s, calls: [{tool: a, retry: {max_attempts: 1}}]}", []),
        (
            "calls: [{tool: a, defaults: {x: 1}}]",
            [
                "warning p.yaml:1:9: calls[0].defaults.x: no other call fills this argument, so the default is never used"
            ],
        ),
        (
            "calls: [{id: b, tool: a}, {tool: a, args: {x: {$ref: b}}, required: false, defaults: {x: 1}}]",
            [
                "warning p.yaml:1:27: calls[1].defaults: required: false skips the call before a default is used:"
                " drop one"
            ],
        ),
    ],
)
def test_a_plan_with_its_manifest(plan, said):
    assert found(MANIFEST, plan) == said


def test_a_plan_with_the_tools_of_code():
    assert found(MANIFEST, "calls: [{tool: b}]", known=["a", "b"]) == []
    assert found(MANIFEST, "calls: [{tool: b}]", known=["a"]) == ["error p.yaml:1:9: calls[0].tool: there is no tool b"]
