from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from failsoft.config.manifest import load, parse_option, parse_options, parse_policies, parse_tool
from failsoft.core.model.entrypoint import Command, Function
from failsoft.core.model.fault import Code
from failsoft.core.model.options import (
    BreakerOptions,
    Fallback,
    Isolation,
    Override,
    RetryOptions,
    RetryRule,
    ToolOptions,
    TurnOptions,
)
from failsoft.core.resilience.policy import Policy, Then, When
from failsoft.errors import ManifestError

EXAMPLES = Path(__file__).parent / "examples"


def example_of(name):
    return load((EXAMPLES / f"{name}.yaml").read_bytes(), name=f"{name}.yaml")


def options(text):
    (tool,) = load(text, name="f.yaml").tools.values()
    return tool.options


def problems(source):
    with pytest.raises(ManifestError) as raised:
        load(source, name="f.yaml")
    return list(raised.value.problems)


def only(source):
    (problem,) = problems(source)
    return problem


# --- the documents' own examples ---------------------------------------------------------------------------------------


def test_s_spec_2_2():
    assert example_of("s_spec_2_2").tools["flight_search"].options == ToolOptions(
        id="flight_search",
        retry=RetryOptions(
            initial_delay="50ms",
            max_delay="2s",
            multiplier=2.0,
            jitter_percent=15,
            max_attempts=3,
            max_total_time="5s",
        ),
    )


def test_s_spec_3_2():
    breaker = example_of("s_spec_3_2").tools["flight_search"].options.breaker
    assert breaker == BreakerOptions(failure_threshold=5, success_threshold=2, timeout="30s", count="attempts")


def test_s_spec_4_1():
    assert example_of("s_spec_4_1").tools["flight_search"].options == ToolOptions(id="flight_search", timeout="30s")


def test_s_tests_2_5():
    retry = example_of("s_tests_2_5").tools["custom_api"].options.retry
    assert retry == RetryOptions(initial_delay="50ms", max_delay="2s", max_attempts=3)


def test_s_layers_basic_retry():
    rule = RetryRule(max_attempts=3, handle_errors=(Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.INTERNAL))
    assert example_of("s_layers_1_basic_retry").tools["completion"].options == ToolOptions(
        id="completion", retry=RetryOptions(rules=(rule,)), breaker=BreakerOptions(count="calls")
    )


def test_s_layers_fallback_routing():
    codes = (Code.UNAVAILABLE, Code.INTERNAL, Code.DEADLINE_EXCEEDED)
    assert example_of("s_layers_2_fallback_routing").tools["completion"].options == ToolOptions(
        id="completion",
        fallbacks=(Fallback(tool="fallback_completion", handle_errors=codes),),
        breaker=BreakerOptions(count="calls"),
    )


def test_s_layers_circuit_breaker():
    breaker = example_of("s_layers_3_circuit_breaker_cooldown").tools["completion"].options.breaker
    assert breaker == BreakerOptions(failure_threshold=2, timeout="10s", count="calls")


@pytest.mark.parametrize("spelling", ["s_layers_4_advanced_combined", "s_layers_4_snake_case"])
def test_s_layers_combined_in_both_spellings(spelling):
    assert example_of(spelling).tools["completion"].options == ToolOptions(
        id="completion",
        retry=RetryOptions(
            rules=(
                RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,)),
                RetryRule(max_attempts=3, handle_errors=(Code.DEADLINE_EXCEEDED,)),
            )
        ),
        fallbacks=(
            Fallback(
                tool="primary_fallback",
                handle_errors=(Code.UNAVAILABLE, Code.INTERNAL),
                cooldown=BreakerOptions(failure_threshold=3, timeout="20s", count="calls"),
            ),
            Fallback(
                tool="secondary_fallback", cooldown=BreakerOptions(failure_threshold=2, timeout="30s", count="calls")
            ),
        ),
        breaker=BreakerOptions(failure_threshold=2, timeout="30s", count="calls"),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [("'500ms'", 0.5), ("'10s'", 10), ("'5m'", 300), ("'2h'", 7200), ("500", 0.5), ("300000", 300), ("7200000", 7200)],
)
def test_s_layers_durations_as_text_and_as_milliseconds(written, meant):
    assert options(f"tools: {{a: {{cooldown: {{cooldownDuration: {written}}}}}}}").breaker.timeout == meant


def test_the_example_of_the_design_is_read():
    manifest = example_of("design_3")
    assert manifest.version == 1
    assert manifest.turn == TurnOptions(timeout="5m", on_timeout="leave")
    assert manifest.memory == "advise"
    search, book = manifest.tools.values()
    assert search.entrypoint == Function(path="travel.tools:flight_search")
    assert search.place == "design_3.yaml:6:3"
    assert search.options == ToolOptions(
        id="flight_search",
        read_only=True,
        timeout="30s",
        retry=RetryOptions(
            initial_delay="50ms", max_delay="2s", multiplier=2, jitter_percent=15, max_attempts=3, max_total_time="5s"
        ),
        classification=(
            Override(http_status=503, as_="permanent"),
            Override(exception="acme.QuotaError", as_="permanent", category="tool_misconfigured"),
        ),
        fallbacks=(
            Fallback(
                tool="flight_search_backup",
                handle_errors=(Code.UNAVAILABLE, Code.INTERNAL),
                cooldown=BreakerOptions(failure_threshold=3, timeout="20s", count="calls"),
            ),
            Fallback(tool="cached_flights"),
        ),
    )
    assert book.entrypoint == Command(
        argv=["book-flight", "--json"],
        env=["PATH", "BOOKING_TOKEN"],
        exit_codes={75: Code.UNAVAILABLE},
        max_output=1_000_000,
    )
    assert book.options.isolation == Isolation(kind="process")
    assert book.options.safe_to_repeat is True
    assert manifest.policies == (
        Policy(
            name="payments are never repeated",
            when=When(tool="pay_*", classification="transient"),
            then=Then(strategy="escalate"),
            place="design_3.yaml:23:5",
        ),
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_json_and_mappings_say_the_same_as_yaml(path):
    value = yaml.safe_load(path.read_text())
    as_yaml = load(path.read_text(), name="x")
    for other in (load(json.dumps(value), name="x"), load(json.dumps(value, indent="\t"), name="x"), load(value)):
        assert {id: tool.options for id, tool in other.tools.items()} == {
            id: tool.options for id, tool in as_yaml.tools.items()
        }
        assert other.turn == as_yaml.turn
        assert [policy.when for policy in other.policies] == [policy.when for policy in as_yaml.policies]


# --- what may be written -----------------------------------------------------------------------------------------------


def test_defaults_lie_below_every_tool():
    manifest = load(
        """
        defaults: {timeout: 3s, retry: {max_attempts: 2, multiplier: 3}, breaker: {failure_threshold: 9}, idempotent: false}
        tools:
          a: {}
          b: {timeout: 4s, retry_policy: {maxAttempts: 7}, read_only: true}
        """
    )
    a, b = (tool.options for tool in manifest.tools.values())
    assert (a.timeout, a.retry.max_attempts, a.retry.multiplier, a.safe_to_repeat) == (3, 2, 3, False)
    assert (b.timeout, b.retry.max_attempts, b.retry.multiplier, b.safe_to_repeat) == (4, 7, 3, True)
    assert a.breaker.failure_threshold == b.breaker.failure_threshold == 9
    assert manifest.tools["b"].layer == {"timeout": 4, "retry": {"max_attempts": 7}, "read_only": True}
    assert manifest.defaults["timeout"] == 3


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("label: Flights", "label", "Flights"),
        ("tags: [travel]", "tags", ("travel",)),
        ("timeout: null", "timeout", None),
        ("timeout_ms: 1500", "timeout", 1.5),
        ("timeoutMs: 1500", "timeout", 1.5),
        ("required: false", "required", False),
        ("defaults: {flights: []}", "defaults", {"flights": []}),
        ("idempotent: true", "idempotent", True),
        ("readOnly: true", "read_only", True),
        ("idempotencyKey: key", "idempotency_key", "key"),
        ("concurrency: 3", "concurrency", 3),
        ("queue: 0", "queue", 0),
        ("output: {type: array}", "output", {"type": "array"}),
        ("accept_partial: true", "accept_partial", True),
        ("fallbacks: [b]", "fallbacks", (Fallback(tool="b"),)),
        ("isolation: thread", "isolation", Isolation()),
        ("isolation: process", "isolation", Isolation(kind="process")),
        ("isolation: {process: {}}", "isolation", Isolation(kind="process")),
        ("isolation: {values: json}", "isolation", Isolation(kind="process", values="json")),
        ("isolation: {process: {values: json}}", "isolation", Isolation(kind="process", values="json")),
        (
            'isolation: {process: {max_calls: 100, max_memory: 512MB, context: ["app:tenant"]}}',
            "isolation",
            Isolation(kind="process", max_calls=100, max_memory=512_000_000, context=("app:tenant",)),
        ),
        ("circuitBreaker: {timeoutMs: 500}", "breaker", BreakerOptions(timeout="500ms")),
        ("breaker: {count: calls}", "breaker", BreakerOptions(count="calls")),
        ("cooldown: {min_consecutive_failures: 2}", "breaker", BreakerOptions(failure_threshold=2, count="calls")),
        (
            "retry: {rules: [{max_attempts: 2, handle_errors: [Unavailable]}]}",
            "retry",
            RetryOptions(rules=[RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,))]),
        ),
        (
            "{retry: {multiplier: 3}, errorHandling: {retries: [{maxAttempts: 2, handleErrors: [Unavailable]}]}}",
            "retry",
            RetryOptions(multiplier=3, rules=[RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,))]),
        ),
        (
            "fallbacks: [{tool: b, retry: {max_attempts: 1}}]",
            "fallbacks",
            (Fallback(tool="b", retry=RetryOptions(max_attempts=1)),),
        ),
        (
            "fallbacks: [{nodeId: b, errorHandling: {retries: [{maxAttempts: 2, handleErrors: [Unavailable]}],"
            " cooldown: {minConsecutiveFailures: 1}}}]",
            "fallbacks",
            (
                Fallback(
                    tool="b",
                    retry=RetryOptions(rules=[RetryRule(max_attempts=2, handle_errors=(Code.UNAVAILABLE,))]),
                    cooldown=BreakerOptions(failure_threshold=1, count="calls"),
                ),
            ),
        ),
        (
            "classification: [{httpStatus: 503, toCode: NotFound, effect: none}]",
            "classification",
            (Override(http_status=503, to_code=Code.NOT_FOUND, effect="none"),),
        ),
        (
            "classification: [{code: quota_exceeded, as: permanent}, {pattern: '(?i)quota', as: permanent}]",
            "classification",
            (Override(code="quota_exceeded", as_="permanent"), Override(pattern="(?i)quota", as_="permanent")),
        ),
    ],
)
def test_every_option_reaches_the_tool(written, field, value):
    written = written if written.startswith("{") else f"{{{written}}}"
    read = options(f"tools: {{a: {written}}}")
    assert getattr(read, field) == value
    assert getattr(ToolOptions(id="a"), field) != value or field == "isolation"


def test_a_command_may_have_an_empty_argument():
    (tool,) = load("tools: {a: {entrypoint: {command: [grep, '']}}}").tools.values()
    assert tool.entrypoint == Command(argv=["grep", ""])


def test_the_memory_can_be_off_in_two_spellings():
    assert load("memory: act").memory == "act"
    assert load('memory: "off"').memory == "off"
    assert load("memory: false").memory == "off"


def test_policies_are_read_with_all_conditions():
    manifest = load(
        """
        policies:
          - name: one
            when:
              tool: [a, "b*"]
              tags: x
              category: [tool_transient, tool_validation]
              code: Unavailable
              classification: transient
              attempt: 2
              breaker: half_open
              turn_left: 10s
              effect: [none, unknown]
            then: {strategy: retry, delay: 2s, message: Wait.}
            even_if_effect_unknown: true
          - {name: two, then: {tool: c}}
        """,
        name="f.yaml",
    )
    one, two = manifest.policies
    assert one == Policy(
        name="one",
        when=When(
            tool=("a", "b*"),
            tags="x",
            category=("tool_transient", "tool_validation"),
            code=Code.UNAVAILABLE,
            classification="transient",
            attempt=2,
            breaker="half_open",
            turn_left="10s",
            effect=("none", "unknown"),
        ),
        then=Then(strategy="retry", delay="2s", message="Wait."),
        even_if_effect_unknown=True,
        place="f.yaml:3:13",
    )
    assert two.then == Then(strategy="alternative_tool", tool="c")
    assert two.when == When()


# --- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("version: 2", "1:10: version: 2 is not a version of the manifest: write 1"),
        ("version: true", "1:10: version: True is not a version of the manifest: write 1"),
        ("version: 1.0", "1:10: version: 1.0 is not a version of the manifest: write 1"),
        ("defualts: {}", "1:1: defualts: is not known here; did you mean defaults?"),
        ("zzz: {}", "1:1: zzz: is not known here; known are version, defaults, turn, tools, tool, policies, memory"),
        (
            "tools: {a: {retry: {jitter: 5}}}",
            "1:21: tools.a.retry.jitter: is not known here; did you mean jitter_percent?",
        ),
        ("tools: {a: {retryPolicyy: {}}}", "1:13: tools.a.retryPolicyy: is not known here; did you mean retryPolicy?"),
        ("tools: {a: {timeout: 30}}", '1:22: tools.a.timeout: 30 has no unit: write "30s"'),
        (
            "tools: {a: {timeout: 0s}}",
            "1:22: tools.a.timeout: '0s' is not longer than zero: write a number with a unit",
        ),
        ("tools: {a: {timeout: -1s}}", "1:22: tools.a.timeout: '-1s' is not a duration: write a number with a unit"),
        ("tools: {a: {timeout: ''}}", "1:22: tools.a.timeout: '' is not a duration: write a number with a unit"),
        ("tools: {a: {timeout_ms: 0}}", "1:25: tools.a.timeout_ms: 0 is not longer than zero"),
        ("tools: {a: {timeout_ms: 3s}}", "1:25: tools.a.timeout_ms: '3s' is not a number of milliseconds: write one"),
        ("tools: {a: {timeout_ms: true}}", "1:25: tools.a.timeout_ms: True is not a duration"),
        ("tools: {a: {timeout_ms: -5}}", "1:25: tools.a.timeout_ms: -5 is not a duration"),
        ("tools: {a: {timeout: .inf}}", "1:22: tools.a.timeout: .inf is not a finite number: write a number"),
        (
            "tools: {a: {retry: {max_attempts: 0}}}",
            "1:35: tools.a.retry.max_attempts: 0 is too small: write 1 or more",
        ),
        ("tools: {a: {retry: {max_attempts: '3'}}}", "1:35: tools.a.retry.max_attempts: '3' is not a whole number"),
        ("tools: {a: {retry: {max_attempts: true}}}", "1:35: tools.a.retry.max_attempts: True is not a whole number"),
        ("tools: {a: {retry: {max_attempts: 2.5}}}", "1:35: tools.a.retry.max_attempts: 2.5 is not a whole number"),
        (
            "tools: {a: {retry: {multiplier: 0.5}}}",
            "1:33: tools.a.retry.multiplier: 0.5 is too small: write 1 or more",
        ),
        (
            "tools: {a: {retry: {jitter_percent: 200}}}",
            "tools.a.retry.jitter_percent: 200 is too large: write 100 or less",
        ),
        (
            "tools: {a: {retry: {strategy: linear}}}",
            "tools.a.retry.strategy: 'linear' is not one of exponential_backoff",
        ),
        ("tools: {a: {retry: {initial_delay_ms: -1}}}", "tools.a.retry.initial_delay_ms: -1 is not a duration"),
        ("tools: {a: {retry: 3}}", "1:20: tools.a.retry: 3 is not a mapping: write keys and values"),
        ("tools: {a: {breaker: {count: atempts}}}", "'atempts' is not one of attempts, calls; did you mean attempts?"),
        ("tools: {a: {fallbacks: b}}", "1:24: tools.a.fallbacks: 'b' is not a list: write it in brackets"),
        ("tools: {a: {fallbacks: [{}]}}", "1:25: tools.a.fallbacks[0].tool: is missing"),
        ("tools: {a: {fallbacks: [{tool: b, handle_errors: [UNAVAILBLE]}]}}", "did you mean UNAVAILABLE?"),
        ("tools: {a: {label: 3}}", "1:20: tools.a.label: 3 is not a text: put it in quotes if it is meant as one"),
        ("tools: {a: {label: ''}}", "1:20: tools.a.label: '' is empty"),
        ("tools: {a: {read_only: 1}}", "1:24: tools.a.read_only: 1 is neither true nor false"),
        ("tools: {a: {isolation: fork}}", "1:24: tools.a.isolation: 'fork' is not one of thread, process"),
        ("tools: {a: {isolation: {process: {max_memory: 512}}}}", "isolation.process.max_memory: 512 is too small"),
        ("tools: {a: {isolation: {values: xml}}}", "isolation.process.values: 'xml' is not one of pickle, json"),
        ("tools: {a: {isolation: {}}}", "tools.a.isolation.process: is missing"),
        (
            "tools: {a: {classification: [{as: permanent}]}}",
            "tools.a.classification[0]: expected a condition: http_status",
        ),
        ("tools: {a: {classification: [{http_status: 503}]}}", "tools.a.classification[0]: expected a result: as"),
        (
            "tools: {a: {classification: [{pattern: '(', as: permanent}]}}",
            "classification[0].pattern: '(' is not a regular",
        ),
        ("tools: {a: {output: array}}", "1:21: tools.a.output: 'array' is not a mapping: write keys and values"),
        ("tools: {'': {}}", "1:9: tools.: '' is empty"),
        ("tools: [a]", "1:8: tools: ['a'] is not a mapping: write keys and values"),
        ("tools: {a: 3}", "1:12: tools.a: 3 is not a mapping: write keys and values"),
        ("tool: {timeout: 3s}", "1:1: tool: has no id: write one"),
        ("tool: {id: a}\ntools: {}", "1:1: tool: tools is given too and means the same: keep one"),
        ("tools: {a: {id: b}}", "1:1: tools: a has the id b: drop the id, or use it as the key"),
        ("turn: {on_timeout: kill}", "1:20: turn.on_timeout: 'kill' is not one of leave, cancel"),
        ("turn: {timeout: 5}", '1:17: turn.timeout: 5 has no unit: write "5s"'),
        ("memory: of", "1:9: memory: 'of' is not one of advise, act, off; did you mean off?"),
        ("policies: [{then: retry}]", "1:12: policies[0].name: is missing"),
        ("policies: [{name: a}]", "1:12: policies[0].then: is missing"),
        ("policies: [{name: a, then: escalat}]", "did you mean escalate?"),
        ("policies: [{name: a, then: {}}]", "1:28: policies[0].then: expected an action: retry"),
        (
            "policies: [{name: a, then: retry, when: {tool: 'a[b]'}}]",
            "policies[0].when.tool: 'a[b]' is not a tool's id",
        ),
        (
            "policies: [{name: a, then: retry, when: {turn_left: 3}}]",
            'policies[0].when.turn_left: 3 has no unit: write "3s"',
        ),
        ("policies: [{name: a, then: escalate, even_if_effect_unknown: true}]", "even_if_effect_unknown: only a retry"),
        ("tools: {a: {entrypoint: {}}}", "1:25: tools.a.entrypoint: write either function or command"),
        ("tools: {a: {entrypoint: {function: a}}}", "tools.a.entrypoint.function: 'a' is not an import path: write"),
        (
            "tools: {a: {entrypoint: {function: 'a:b', command: [c]}}}",
            "tools.a.entrypoint: write either function or command",
        ),
        ("tools: {a: {entrypoint: {function: 'a:b', env: [c]}}}", "tools.a.entrypoint.env: belongs to a command"),
        (
            "tools: {a: {entrypoint: {command: ls -l}}}",
            "tools.a.entrypoint.command: 'ls -l' is not a list: write it in",
        ),
        ("tools: {a: {entrypoint: {command: []}}}", "tools.a.entrypoint.command: there is no program"),
        (
            "tools: {a: {entrypoint: {http: {url: x}}}}",
            "entrypoint.http: is not supported yet: write function or command",
        ),
        (
            "tools: {a: {entrypoint: {mcp: {}}}}",
            "1:26: tools.a.entrypoint.mcp: is not supported yet: write function or",
        ),
        (
            "tools: {a: {entrypoint: {command: [a], exit_codes: {x: UNKNOWN}}}}",
            "exit_codes.x: 'x' is not a whole number",
        ),
        (
            "tools: {a: {entrypoint: {command: [a], exit_codes: {0: UNKNOWN}}}}",
            "exit_codes: 0 is not a whole number between",
        ),
        ("a", "1:1: 'a' is not a mapping: write keys and values"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_a_correction(source, said):
    problem = only(source)
    assert problem.startswith("f.yaml:1:")
    assert said in problem


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{timeout: 3s, timeout_ms: 3}", "1:26: tools.a.timeout_ms: timeout is given too and means the same: keep one"),
        ("{timeout: 3s, timeoutMs: 3}", "1:26: tools.a.timeoutMs: timeout is given too and means the same: keep one"),
        (
            "{retry: {}, retry_policy: {}}",
            "1:24: tools.a.retry_policy: retry is given too and means the same: keep one",
        ),
        (
            "{retryPolicy: {}, retry_policy: {}}",
            "1:13: tools.a.retryPolicy: retry_policy is given too and means the same",
        ),
        ("{breaker: {}, cooldown: {}}", "1:26: tools.a.cooldown: breaker is given too and means the same: keep one"),
        (
            "{fallbacks: [], errorHandling: {fallbacks: []}}",
            "errorHandling: it has fallbacks, and fallbacks is given as well",
        ),
        (
            "{breaker: {}, errorHandling: {cooldown: {}}}",
            "errorHandling: it has cooldown, and breaker is given as well: keep",
        ),
        (
            "{retry: {rules: [{max_attempts: 1, handle_errors: [UNKNOWN]}]},"
            " errorHandling: {retries: [{max_attempts: 1, handle_errors: [UNKNOWN]}]}}",
            "tools.a.errorHandling: it has retries, and retry has rules: keep one",
        ),
        ("{read_only: true, idempotent: false}", "1:42: tools.a.idempotent: a read-only tool is idempotent; drop one"),
    ],
)
def test_conflicting_options_are_rejected(block, said):
    assert said in only(f"tools: {{a: {block}}}")


def test_a_circle_of_fallbacks_is_refused_with_its_path():
    source = "tools:\n  a: {fallbacks: [b]}\n  b: {errorHandling: {fallbacks: [{nodeId: c}]}}\n  c: {fallbacks: [{tool: a}]}\n"
    assert only(source) == (
        "f.yaml:2:18: tools.a.fallbacks: these tools are fallbacks of each other in a cycle, a → b → c → a:"
        " drop one of the fallbacks"
    )
    assert "a → a" in only("tools: {a: {fallbacks: [a]}}")
    assert only("tool: {id: a, fallbacks: [a]}").startswith("f.yaml:1:26: tool.fallbacks: ")
    with pytest.raises(ManifestError, match="a → b → a"):
        load({"tools": {"a": {"fallbacks": [Fallback(tool="b")]}, "b": {"fallbacks": ["a"]}}})


def test_all_problems_come_at_once_and_in_the_order_of_the_file():
    said = problems(
        "version: 2\n"
        "tools:\n"
        "  a: {timeout: 3, read_only: no, fallbacks: [b]}\n"
        "  b: {fallbacks: [a], retry: {max_attempts: 0, initial_dely: 3s}}\n"
        "policies: [{name: x, then: escalat}]\n"
        "b: 1\n"
        "b: 2\n"
    )
    assert [problem.split(": ")[0] for problem in said] == [
        "f.yaml:1:10",
        "f.yaml:3:16",
        "f.yaml:3:30",
        "f.yaml:3:45",
        "f.yaml:4:45",
        "f.yaml:4:48",
        "f.yaml:5:28",
        "f.yaml:6:1",
        "f.yaml:7:1",
    ]


def test_a_flood_of_problems_is_cut():
    said = problems("tools:\n" + "".join(f"  t{n}: {{timeout: 3}}\n" for n in range(500)))
    assert len(said) == 101
    assert said[-1] == "... and 400 more"


def test_a_message_cannot_command_a_terminal():
    assert "\x1b" not in only('tools: {a: {"\\e[31mred": 1}}')


def test_an_unreadable_value_is_reported_only_once():
    assert len(problems("tools: {a: {read_only: no}}")) == 1
    assert len(problems("tools: {a: {timeout: *x}}")) == 1


# --- options from Python -----------------------------------------------------------------------------------------------


def test_python_may_write_the_same_names():
    assert parse_tool(
        {"id": "a", "retry_policy": {"maxAttempts": 3}, "timeout_ms": 1500, "tags": ("x",), "fallbacks": ("b",)}
    ) == ToolOptions(id="a", retry=RetryOptions(max_attempts=3), timeout="1500ms", tags=["x"], fallbacks=["b"])


def test_option_objects_are_accepted():
    def classify(error):
        return None

    retry, breaker = RetryOptions(max_attempts=2), BreakerOptions(count="calls")
    override, rule = (
        Override(http_status=503, as_="permanent"),
        RetryRule(max_attempts=2, handle_errors=(Code.UNKNOWN,)),
    )
    read = parse_tool(
        {
            "id": "a",
            "retry": retry,
            "circuitBreaker": breaker,
            "timeout": timedelta(seconds=3),
            "classification": [override, classify],
            "fallbacks": [Fallback(tool="b")],
            "isolation": Isolation(kind="process"),
            "errorHandling": {"retries": [rule]},
            "output": list[str],
        }
    )
    assert read == ToolOptions(
        id="a",
        retry=RetryOptions(max_attempts=2, rules=(rule,)),
        breaker=breaker,
        timeout="3s",
        classification=[override, classify],
        fallbacks=["b"],
        isolation="process",
        output=list[str],
    )


def test_a_layer_holds_only_the_given_options():
    assert parse_options({"retry": {"max_attempts": 3}, "timeoutMs": 500}) == {
        "retry": {"max_attempts": 3},
        "timeout": 0.5,
    }


def test_one_option_may_set_several_fields():
    assert parse_option("retry_policy", {"max_attempts": 3}) == {"retry": RetryOptions(max_attempts=3)}
    assert parse_option(
        "errorHandling", {"fallbacks": [{"nodeId": "b"}], "cooldown": {"minConsecutiveFailures": 2}}
    ) == {
        "fallbacks": (Fallback(tool="b"),),
        "breaker": BreakerOptions(failure_threshold=2, count="calls"),
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id": "a", "retry": {"max_attempts": 0}}, "here: retry.max_attempts: 0 is too small: write 1 or more"),
        ({"id": "a", "timeout": 30}, 'here: timeout: 30 has no unit: write "30s"'),
        ({"id": "a", "retrys": {}}, "here: retrys: is not known here; did you mean retry"),
        ({"id": "a", "entrypoint": {"command": ["rm"]}}, "here: entrypoint: is not known here"),
        ({"timeout": "3s"}, "here: id: is missing"),
    ],
)
def test_a_mistake_in_python_is_reported_with_its_place(options, said):
    with pytest.raises(ManifestError) as raised:
        parse_tool(options, place="here")
    assert str(raised.value).startswith(said)


def test_a_policy_book_in_python():
    ready = Policy(name="b", then=Then(strategy="escalate"))
    first, second = parse_policies([{"name": "a", "when": {"tool": "x"}, "then": "retry"}, ready], place="here")
    assert first == Policy(name="a", when=When(tool="x"), then=Then(strategy="retry"), place="here")
    assert second.then == ready.then
    with pytest.raises(ManifestError, match=r"policies\[0\].then: is missing"):
        parse_policies([{"name": "a"}])


# --- whatever is thrown at it ------------------------------------------------------------------------------------------

TEXTS = [path.read_text() for path in sorted(EXAMPLES.glob("*.yaml"))]
WORDS = "[ ] { } : - *x &x !!str no null 3 -1 1e999 ' \" tool tools retry timeout é 😀 << {{}} %s {0} .nan [] {}"
PIECES = st.sampled_from([*WORDS.split(" "), ": ", "- ", "\n", "  ", "\t", "\x00"])


def refusal(source):
    """The problems found by loading, if any; any other error fails the test."""
    try:
        load(source, name="f")
    except ManifestError as error:
        return error.problems
    return None


@given(st.binary(max_size=200))
@example(b"")
def test_arbitrary_bytes_raise_nothing_but_manifest_errors(source):
    assert refusal(source) != ()


@given(st.data())
def test_mutated_manifests_raise_nothing_but_manifest_errors(data):
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 6)) :]
    assert all(problem.startswith("f:") for problem in refusal(text) or ())


VALUES = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "30s", [], {}, [[]], {"a": 1}, "{x}", "UNAVAILABLE", 10**400]
)


@given(st.data())
def test_values_of_the_wrong_kind_raise_nothing_but_manifest_errors(data):
    value = yaml.safe_load(data.draw(st.sampled_from(TEXTS)))
    at = value
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not (isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans())):
            break
        at = at[key]
    at[key] = data.draw(VALUES)
    assert refusal(value) != ()
