"""BFCL v4, multi-turn: stateful tasks over eight API classes (`bfcl-eval`, Apache-2.0).

The check is BFCL's own: after each turn it compares the state with that of a gold run and looks for the gold answers. A
read's answer counts if it arrived. A write's answer counts if the service gave it, or if the write was reported as done:
the state shows whether that is true.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bfcl_eval
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, STATELESS_CLASSES
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker

from bench.yardstick.benchmarks.base import Answer, GoldCall, World

DATA = Path(bfcl_eval.__file__).parent / "data"
CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
NOT_STATE = {  # attributes that are no effect of a call
    "_random",  # the source of drawn ids
    "_api_description",
    "_flight_cost_lookup",  # a cache that `get_flight_cost` fills
    "parent",  # of a directory: a way back up
}


def make_services(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Make the services of a task in their initial state."""
    services = {}
    for name in entry["involved_classes"]:
        service = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
        if name not in STATELESS_CLASSES:
            config = copy.deepcopy(entry["initial_config"].get(name, {}))
            service._load_scenario(config, long_context="long_context" in entry["id"])
        services[name] = service
    return services


def find_methods(services: Mapping[str, Any]) -> dict[str, Any]:
    members = [inspect.getmembers(service, predicate=inspect.ismethod) for service in services.values()]
    return {name: method for found in members for name, method in found if not name.startswith("_")}


def perform(method: Any, arguments: Mapping[str, Any]) -> str:
    """Call a method and write its answer as BFCL does."""
    try:
        value = method(**arguments)
    except Exception as error:
        return f"Error during execution: {error}"
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except TypeError:
            return str(value)
    return str(value)


class BfclWorld:
    """The services of one run, beside those of a gold run."""

    def __init__(self, entry: Mapping[str, Any], gold: Sequence[GoldCall], writes: frozenset[str]) -> None:
        self.services = make_services(entry)
        self._methods = find_methods(self.services)
        self._gold_services = make_services(entry)
        self._gold_methods = find_methods(self._gold_services)
        self._gold = gold
        self._writes = writes
        self._seen: list[str] = []
        self._valid = True

    def perform(self, tool: str, arguments: Mapping[str, Any]) -> str:
        return perform(self._methods[tool], arguments)

    def fingerprint(self) -> str:
        return repr(_plain(self.services))

    def end_turn(self, turn: int, answers: Sequence[Answer]) -> None:
        gold = [call for call in self._gold if call.turn == turn]
        expected = {call.id: perform(self._gold_methods[call.tool], call.arguments) for call in gold}
        for answer in answers:
            if answer.call.tool not in self._writes:
                self._seen += [answer.value] * answer.arrived
            else:
                self._seen += answer.performed or [expected[answer.call.id]] * answer.arrived
        if expected:
            state = state_checker(self.services, self._gold_services)
            said = response_checker(self._seen, list(expected.values()), turn)
            self._valid = self._valid and state["valid"] and said["valid"]

    def reached(self) -> bool:
        return self._valid


@dataclass(frozen=True)
class BfclTask:
    """One entry of BFCL's data with its gold calls."""

    id: str
    entry: Mapping[str, Any]
    calls: Sequence[GoldCall]
    turns: int
    descriptions: Mapping[str, str]

    def start(self, writes: frozenset[str]) -> World:
        return BfclWorld(self.entry, self.calls, writes)


class Bfcl:
    """BFCL as installed."""

    name = "BFCL"
    home = "https://gorilla.cs.berkeley.edu/leaderboard.html"
    simulated_writes = frozenset({"contact_customer_support"})  # sends a message, which no state shows

    def __init__(self, categories: Sequence[str] = CATEGORIES[:1]) -> None:
        self.version = version("bfcl-eval")
        self._categories = categories

    def tasks(self) -> list[BfclTask]:
        return [_make_task(entry, gold) for category in self._categories for entry, gold in _entries(category)]


def _entries(category: str) -> list[tuple[dict[str, Any], list[list[str]]]]:
    def lines(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]

    file = f"BFCL_v4_{category}.json"
    gold = {one["id"]: one["ground_truth"] for one in lines(DATA / "possible_answer" / file)}
    return [(entry, gold[entry["id"]]) for entry in lines(DATA / file)]


def _make_task(entry: dict[str, Any], gold: list[list[str]]) -> BfclTask:
    methods = find_methods(make_services(entry))
    texts = [(turn, text) for turn, calls in enumerate(gold) for text in calls]
    calls = [_read_call(f"{entry['id']}/{number}", turn, text, methods) for number, (turn, text) in enumerate(texts)]
    descriptions = {name: inspect.getdoc(method) or "" for name, method in methods.items()}
    return BfclTask(entry["id"], entry, calls, len(gold), descriptions)


def _read_call(id: str, turn: int, text: str, methods: Mapping[str, Any]) -> GoldCall:
    """Read a gold call, which is written as Python."""
    node = ast.parse(text.strip(), mode="eval").body
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise TypeError(f"{id}: {text!r} is not a call of a tool")
    names = list(inspect.signature(methods[node.func.id]).parameters)
    arguments = {name: ast.literal_eval(value) for name, value in zip(names, node.args, strict=False)}
    arguments |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    return GoldCall(id, node.func.id, arguments, turn)


def _plain(value: Any) -> Any:
    """Return the state of a service as plain data that shows every difference."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set):
        return sorted(map(repr, value))
    if hasattr(value, "__dict__"):
        return {name: _plain(item) for name, item in vars(value).items() if name not in NOT_STATE}
    return value
