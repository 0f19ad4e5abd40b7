"""Returned failures: decide whether a value that a tool returned is a failure, and of what kind.

Rules
-----
- A returned exception counts as if it had been raised. A returned ``Outcome`` counts as its call: a failed one raises, a
  successful one gives its value.
- The results of MCP (``isError``) and LangChain (``status="error"``, also of a message in a ``Command``) say themselves
  whether they failed. They are recognised by the names of their classes, so neither library is imported.
- ``failed_if`` comes next. A structured flag wins over text, whether it says success or failure: a field that a pattern
  compares, or a flag that the tool has set. Text counts only if there is no flag.
- A failure keeps its text, and the value it was read from (``ReturnedFailure.returned``).
- Only a status or a code in it proves that nothing happened. A refusal in words ("connection refused") may concern the
  last of several requests.
- Reading a value is bounded, compares only plain values, and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from failsoft.core.model.failed_if import ANY_VALUE, FailurePattern, FieldMatch
from failsoft.core.model.fault import Fault
from failsoft.core.model.json_values import plain, shown
from failsoft.core.model.misspelt import find_meant
from failsoft.core.model.outcome import CallFailed, Outcome
from failsoft.core.model.partial import Partial
from failsoft.core.model.verified import Verified

MOST_TYPES: Final = 1000  # remembered as plain; programs that make classes must not fill the memory
MOST_JSON: Final = 100_000  # characters of a text that is read as JSON
MOST_SEARCHED: Final = 8192  # characters in which ``text`` is searched
MOST_PARTS: Final = 100  # of a result's content
_LENGTH: Final = 2000  # characters of a value that is shown because it has no text
_OUTCOMES: Final = 8  # nested in each other
_ABSENT: Final = object()
_MESSAGE_FIELDS: Final = ("message", "error", "detail", "details", "reason", "description", "msg", "text", "title")
_MAY_BE_EMPTY: Final = (bool, int, float, str, bytes, list, tuple, dict)
_UPDATE: Final = ("update",)
_CLIENTS = frozenset({"httpx", "requests", "aiohttp", "urllib3"})
_RESPONSES = frozenset({"Response", "ClientResponse", "HTTPResponse"})
_FAILED_STATUS = 400
_FLAGS: Final = {"CallToolResult": ("is_error", "isError"), "ToolMessage": ("status",), "Command": _UPDATE}
_UNSAID: Final = "The tool reported a failure without a text"


class ReturnedFailure(Exception):
    """A failure that a tool returned instead of raising it. ``returned`` is the value."""

    def __init__(self, message: str = _UNSAID, returned: Any = None) -> None:
        super().__init__(message if message.strip() else _UNSAID)
        self.returned = returned
        structured = next((form for form in (returned, *_structured(returned)) if isinstance(form, Mapping)), None)
        if structured is not None:
            self.body = structured  # where the classifier looks for codes and statuses

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0],)


# --- types ------------------------------------------------------------------------------------------------------------

_READ: Final = (BaseException, Outcome, Partial, Verified, Fault)
PLAIN_TYPES: set[type] = {type(None), str, bytes, bool, int, float, list, tuple, dict, set}


def is_plain(kind: type) -> bool:
    """True if values of this type are not failures unless ``failed_if`` says so.

    ``PLAIN_TYPES`` collects these types, except awaitables and async iterators, which a plain function must not return.
    """
    try:
        if kind in PLAIN_TYPES:
            return True
        if issubclass(kind, _READ) or flags_of(kind) or is_response(kind):
            return False
        if hasattr(kind, "__await__"):  # a coroutine or a task is looked at, and logged
            return not (hasattr(kind, "send") or hasattr(kind, "add_done_callback"))
        if len(PLAIN_TYPES) < MOST_TYPES and not hasattr(kind, "__aiter__"):
            PLAIN_TYPES.add(kind)
    except Exception:  # a metaclass may raise anything
        return False
    return True


def is_response(kind: type) -> bool:
    """True for the responses of HTTP clients, which do not raise by themselves when a request failed."""
    return kind.__module__.partition(".")[0] in _CLIENTS and kind.__name__ in _RESPONSES


def failed_status(value: Any) -> int | None:
    """The status of a response that says that its request failed; None for everything else."""
    if not is_response(type(value)):
        return None
    status: object = getattr(value, "status_code", None) or getattr(value, "status", None)
    return status if type(status) is int and status >= _FAILED_STATUS else None


def flags_of(kind: type) -> tuple[str, ...]:
    """Return the names of the attributes that say whether a result of this type failed; empty if there are none."""
    try:
        for base in kind.__mro__:
            if base.__name__ in _FLAGS and str(base.__module__).partition(".")[0] in _LIBRARIES:
                return _FLAGS[base.__name__]
    except Exception:  # a metaclass may raise anything
        return ()
    return ()


_LIBRARIES: Final = frozenset({"mcp", "mcp_types", "fastmcp", "langchain_core", "langgraph"})


# --- values -----------------------------------------------------------------------------------------------------------


def find_returned(value: Any) -> BaseException | None:
    """Return the exception that a value is or represents; None if its type does not make it a failure."""
    value = value_inside(value)
    if isinstance(value, BaseException):
        return value
    if isinstance(value, Outcome):
        return _failure_of(value)
    for said in _messages_of(value) or (value,):
        if read_flag(said):
            return ReturnedFailure(text_of(said), said)
    return None


def _messages_of(value: Any) -> list[Any]:
    """Return the messages that a ``Command`` of LangGraph writes, if it does nothing else; empty for other values.

    A command that goes to a node or changes the state as well must reach the graph, whatever its messages say.
    """
    if flags_of(type(value)) != _UPDATE or any(_read(value, name) for name in ("goto", "resume", "graph")):
        return []
    update = _read(value, "update")
    if type(update) is not dict or {*update} != {"messages"}:
        return []
    messages = update["messages"]
    return messages[:MOST_PARTS] if type(messages) is list else []


def _failure_of(outcome: Outcome[Any]) -> BaseException:
    try:
        outcome.unwrap()
    except CallFailed as failed:
        return failed.with_traceback(None)
    return ReturnedFailure(returned=outcome)


def value_inside(value: Any) -> Any:
    """Return the value of a successful ``Outcome``, also of one inside another, and any other value unchanged."""
    for _ in range(_OUTCOMES):
        if not isinstance(value, Outcome) or value.status != "succeeded":
            break
        value = value.value if value.missing is None else Partial(value.value, value.missing)
    return value


def read_flag(value: Any) -> bool | None:
    """Return whether a result says that it failed; None if it does not say, or only by default."""
    for name in flags_of(type(value)):
        said = _read(value, name)
        if said is _ABSENT:
            continue
        if said is True or (name == "status" and _same(said, "error")):
            return True
        set_by_tool = _read(value, "model_fields_set")
        return False if isinstance(set_by_tool, set | frozenset) and name in set_by_tool else None
    return None


def match_pattern(pattern: FailurePattern, readings: Iterable[Any]) -> ReturnedFailure | None:
    """Match a pattern against the forms in which a value can be read; None if it shows no failure."""
    values = [*readings][:MOST_PARTS]
    for value in values:
        for form in _forms(value):
            found = [(_find(form, field.path), field) for field in pattern.fields]
            if all(one is _ABSENT for one, _ in found):
                continue
            if not all(any(_same(one, wanted) for wanted in field.values) for one, field in found):
                return None
            text = None if pattern.message is None else _find(form, pattern.message)
            return ReturnedFailure(text_of(form) if text is None or text is _ABSENT else text_of(text), form)
    if pattern.text is None or any(read_flag(value) is False for value in values):
        return None
    for value in values:
        text = _own_text(value)
        if text is not None and re.search(pattern.text, text[:MOST_SEARCHED]):
            return ReturnedFailure(text, value)
    return None


def doubt_pattern(pattern: FailurePattern, readings: Iterable[Any]) -> str:
    """Explain why a pattern that did not match a value is probably a mistake; empty if it looks right.

    A field that only failures have is not a mistake. A field that the value has under a similar name, with the same
    kind of value, is.
    """
    for value in [*readings][:MOST_PARTS]:
        for form in _forms(value):
            for field in pattern.fields:
                if _find(form, field.path) is _ABSENT and (meant := _meant_field(form, field)):
                    return f"the tool's value has no field {field.path}; did you mean {meant}?"
        text = _own_text(value)
        if pattern.text is None and text is not None and re.match(_ERROR_TEXT, text):
            names = ", ".join(field.path for field in pattern.fields)
            return (
                f"the tool returned a text that reads like an error and has no field {names}, so it counts as a success: "
                'add a regular expression for texts, like text: "^Error"'
            )
    return ""


_ERROR_TEXT = (
    r"(?i)\s{0,9}(?:(?:error|failed|failure|exception|[a-z.]{1,60}(?:error|exception))(?: \w{1,20}){0,3}:|failed to\b)"
)


def _meant_field(form: Any, field: FieldMatch) -> str | None:
    """Return the field of a value that a path probably means: a field of a similar name, with the same kind of value."""
    at, path = form, field.path.split(".")
    for number, part in enumerate(path):
        inside = _field(at, part)
        if inside is _ABSENT:
            if not isinstance(at, dict) or len(at) > MOST_PARTS:
                return None
            last = number == len(path) - 1
            like = [
                name for name, value in at.items() if isinstance(name, str) and (not last or _comparable(value, field))
            ]
            meant = find_meant(part, like)
            return None if meant is None else ".".join([*path[:number], meant, *path[number + 1 :]])
        at = inside
    return None


def _comparable(value: Any, field: FieldMatch) -> bool:
    return any(type(value) is type(wanted) for wanted in field.values)


def _forms(value: Any) -> Iterator[Any]:
    """Yield the forms in which a value's fields may be: the value itself, its structured content, its text as JSON."""
    yield value
    yield from _structured(value)
    text = _own_text(value)
    if text is not None and len(text) <= MOST_JSON and text.lstrip()[:1] in ("{", "["):
        import json  # most values are not texts

        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            return


def _structured(value: Any) -> list[Mapping[str, Any]]:
    """Return the structured content of a result."""
    if not flags_of(type(value)):
        return []
    found = [_read(value, name) for name in ("structured_content", "structuredContent", "artifact")]
    return [one for one in found if isinstance(one, Mapping)]


def _find(value: Any, path: str) -> Any:
    """Follow a path through mappings, lists and attributes. A key that is the whole path wins."""
    whole = _field(value, path)
    if whole is not _ABSENT or "." not in path:
        return whole
    for part in path.split("."):
        value = _field(value, part)
        if value is _ABSENT:
            break
    return value


def _field(value: Any, name: str) -> Any:
    try:
        if isinstance(value, dict):
            return dict.get(value, name, _ABSENT)
        if isinstance(value, Mapping):
            return value.get(name, _ABSENT)
        if isinstance(value, list | tuple) and name.isdecimal():
            return value[int(name)] if int(name) < len(value) else _ABSENT
    except Exception:  # a value's own methods may raise anything
        return _ABSENT
    return _ABSENT if isinstance(value, str | bytes | int | float | type | None) else _read(value, name)


def _read(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, _ABSENT)
    except Exception:  # a foreign property may raise anything
        return _ABSENT


def _same(found: Any, wanted: str | float | bool | None) -> bool:
    """Compare plain values. True and 1 differ; an object's own ``__eq__`` is never called. ``"*"`` is any value."""
    if wanted == ANY_VALUE:
        empty = found is None or found is _ABSENT or (type(found) in _MAY_BE_EMPTY and not found)
        return not empty
    if found is None or wanted is None or isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, str) and isinstance(wanted, str):
        return str.__str__(found) == wanted
    if type(found) in (int, float) and isinstance(wanted, int | float):
        return bool(found == wanted)
    return False


# --- texts ------------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """Return the error text in a value: the text itself, its usual fields, or the value in short."""
    if value is None:
        return _UNSAID
    text = _own_text(value)
    if text is None:
        for name in _MESSAGE_FIELDS:
            inside = _field(value, name)
            text = str.__str__(inside) if isinstance(inside, str) else None
            if text is None and isinstance(inside, Mapping):
                text = next((one for key in _MESSAGE_FIELDS if isinstance(one := _field(inside, key), str)), None)
            if text:
                break
    if text is None:
        text = _shorten(value)
    return text if text.strip() else _UNSAID


def _shorten(value: Any) -> str:
    import json  # most failures have a text

    try:
        return json.dumps(plain(value), ensure_ascii=False)[:_LENGTH]
    except (TypeError, ValueError, RecursionError):
        return shown(value)


def _own_text(value: Any) -> str | None:
    """Return the value if it is a text, or the text in a result; None for other values."""
    if isinstance(value, str):
        return str.__str__(value)
    if not flags_of(type(value)):
        return None
    content = _read(value, "content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    texts = [part if isinstance(part, str) else _field(part, "text") for part in content[:MOST_PARTS]]
    return "\n".join([text for text in texts if isinstance(text, str)])
