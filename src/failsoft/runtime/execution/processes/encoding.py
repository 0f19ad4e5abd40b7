"""Encode the values and errors of a worker: as pickles, or as JSON (``values: json``).

Rules
-----
- A worker always uses the same encoding. The reader knows which, and never infers it from the content.
- With JSON, nothing that a worker sends is unpickled, imported or run. Errors become ``RemoteError``.
- With JSON, a value arrives as it was returned, except that tuples become lists. Anything else that JSON would change or
  does not have (bytes, sets, dates, keys that are not text, NaN) is refused in the worker; the error says where it is.
- A fault from the worker is checked here: its texts are sanitised again, and its code and effect must be known ones.
- Writing raises only ``wire.Unsendable``, reading only ``wire.Unloadable``.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import pickle
from types import SimpleNamespace
from typing import Any, Final, Literal, get_args

from failsoft.core.model.fault import Category, Classification, Code, Effect, Fault, Source
from failsoft.core.model.options import Values
from failsoft.core.model.partial import Partial
from failsoft.core.redact.sanitise import sanitise
from failsoft.runtime.execution.processes import wire
from failsoft.runtime.execution.processes.remote_error import Described

_DEEPEST: Final = 500  # levels of lists and mappings
_TAG: Final = "$type"  # marks types that JSON does not have, in the attributes of an error
_LOG_FIELDS: Final = {"name": str, "msg": str, "levelno": int, "levelname": str, "lineno": int, "pathname": str}
_WORDS: Final[dict[str, Any]] = {
    "classification": Classification,
    "category": Category,
    "effect": Effect,
    "source": Source,
    "hint_source": Source,
}

Content = Literal["value", "error", "text"]


def pack_answer(
    values: Values, kind: int, number: int, ended: float | None, heavy: bool, content: Any, what: Content
) -> bytes:
    """Pack the answer to a call as one frame. Raises ``wire.Unsendable``."""
    try:
        written = (ended, heavy, content)
        data = pickle.dumps(written, 5) if values == "pickle" else _json([ended, heavy, _WRITE[what](content)])
    except wire.Unsendable:
        raise
    except BaseException as error:  # the tool's own code may run here
        how = "pickled" if values == "pickle" else "written as JSON"
        why = f"the result ({type(content).__qualname__}) cannot be {how}: {wire.name_of(error)}"
        raise wire.Unsendable(why) from error
    if len(data) > wire.LIMIT:
        size, most = wire.megabytes(len(data)), wire.megabytes(wire.LIMIT)
        raise wire.Unsendable(f"the result has {size}, more than the {most} that can be sent")
    return wire.frame(kind, data, number)


def read_answer(values: Values, data: bytes, what: Content) -> tuple[float | None, bool, Any]:
    """Return when the tool ended, whether its worker is too large, and the content. Raises ``wire.Unloadable``."""
    if values == "pickle":
        ended, heavy, content = _three(wire.unpickle(data))
    else:
        ended, heavy, content = _three(_parse(data))
        content = _checked(_READ[what], content)
    if not (ended is None or isinstance(ended, float)) or (what == "error" and not isinstance(content, Described)):
        raise wire.Unloadable("it is not an answer")
    return ended, bool(heavy), content


def pack_ready(values: Values, number: int, module: str | None, problem: Described | None) -> bytes:
    """Pack a worker's message that it is ready, or has tried to load a module."""
    if values == "pickle":
        return wire.pack(wire.READY, (module, problem), number)
    return wire.frame(wire.READY, _json([module, None if problem is None else _write_error(problem)]), number)


def read_ready(values: Values, data: bytes) -> tuple[str | None, Described | None]:
    """Return the module that a worker has tried to load, and the problem. Raises ``wire.Unloadable``."""
    if values == "pickle":
        module, problem = wire.unpickle(data)
        return module, problem
    message = _parse(data)
    if not isinstance(message, list) or len(message) != 2 or not isinstance(message[0], str | None):
        raise wire.Unloadable("it is not a greeting")
    return message[0], None if message[1] is None else _checked(_read_error, message[1])


def pack_log(values: Values, fields: dict[str, Any]) -> bytes:
    """Pack a log record as one frame. Values that cannot be sent are sent as text."""
    plain = (str, int, float, type(None))
    try:
        if values == "pickle":
            return wire.frame(wire.LOG, pickle.dumps(fields, 5))
        _refuse_what_is_not_json(fields)
        return wire.frame(wire.LOG, _json(fields))
    except Exception:  # a value in ``extra`` cannot be sent
        shown = {str(key): v if isinstance(v, plain) else repr(v) for key, v in fields.items()}
        return wire.frame(wire.LOG, pickle.dumps(shown, 5) if values == "pickle" else _json(shown))


def read_log(values: Values, data: bytes) -> dict[str, Any]:
    """Return the fields of a log record. Raises ``wire.Unloadable``."""
    fields = wire.unpickle(data) if values == "pickle" else _parse(data)
    if not isinstance(fields, dict):
        raise wire.Unloadable("it is not a log record")
    if values == "json":
        if not all(isinstance(fields.get(name), type_) for name, type_ in _LOG_FIELDS.items()):
            raise wire.Unloadable("it is not a log record")
        fields |= {"args": None, "exc_info": None}
    return fields


# --- JSON -----------------------------------------------------------------------------------------------------------


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _parse(data: bytes) -> Any:
    return _checked(json.loads, data)


def _checked(read: Any, given: Any) -> Any:
    """Read data of a worker, which may be anything. Raises ``wire.Unloadable``."""
    try:
        return read(given)
    except wire.Unloadable:
        raise
    except Exception as error:
        raise wire.Unloadable(f"it is not what a worker writes: {wire.name_of(error)}") from None


def _three(content: Any) -> tuple[Any, Any, Any]:
    if not isinstance(content, tuple | list) or len(content) != 3:
        raise wire.Unloadable("it is not an answer")
    return content[0], content[1], content[2]


def _write_value(value: Any) -> dict[str, Any]:
    if isinstance(value, Partial):
        _refuse_what_is_not_json(value.value)
        _refuse_what_is_not_json(value.missing, "missing")
        return {"partial": value.value, "missing": value.missing}
    _refuse_what_is_not_json(value)
    return {"value": value}


def _read_value(written: Any) -> Any:
    if "partial" in written:
        return Partial(written["partial"], written["missing"])
    return written["value"]


def _refuse_what_is_not_json(value: Any, name: str = "the result") -> None:
    """Raise ``wire.Unsendable`` for the first value that JSON does not have, or would change."""
    todo: list[tuple[Any, str, int]] = [(value, name, 0)]
    while todo:
        one, place, depth = todo.pop()
        if one is None or isinstance(one, str | int):
            continue
        if isinstance(one, float):
            if not math.isfinite(one):
                raise wire.Unsendable(f"{place} is {one}, and this tool has values: json")
        elif depth == _DEEPEST:
            raise wire.Unsendable(f"{name} is nested more than {_DEEPEST} deep, or contains itself")
        elif isinstance(one, list | tuple):
            todo += [(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(one)]
        elif isinstance(one, dict):
            for key, item in one.items():
                if not isinstance(key, str):
                    kind = type(key).__qualname__
                    raise wire.Unsendable(f"{place} has a key of type {kind}, and this tool has values: json")
                todo.append((item, f"{place}[{key[:50]!r}]", depth + 1))
        else:
            kind = type(one).__qualname__
            raise wire.Unsendable(f"{place} is of type {kind}, and this tool has values: json")


def _write_error(error: Described) -> dict[str, Any]:
    return {
        **error._asdict(),
        "attributes": {name: _write_attribute(value) for name, value in error.attributes.items()},
        "fault": None if error.fault is None else {**error.fault._asdict(), "cause": None},
        "pickled": None,
        "cause": None if error.cause is None else _write_error(error.cause),
        "context": None if error.context is None else _write_error(error.context),
        "leaves": [_write_error(leaf) for leaf in error.leaves],
    }


def _read_error(written: Any) -> Described:
    types = tuple(_name(name) for name in written["types"][:100])
    cause, context, fault = written["cause"], written["context"], written["fault"]
    return Described(
        types=types or ("builtins.Exception",),
        text=_text(written["text"]),
        attributes={
            _text(name): _read_attribute(value)
            for name, value in written["attributes"].items()
            if not name.startswith("__") and name not in ("fault", "remote_fault", "remote_types")
        },
        traceback=_text(written["traceback"]),
        fault=None if fault is None else _read_fault(fault),
        pickled=None,
        cause=None if cause is None else _read_error(cause),
        context=None if context is None else _read_error(context),
        suppress_context=bool(written["suppress_context"]),
        leaves=tuple(_read_error(leaf) for leaf in written["leaves"]),
    )


def _read_fault(written: Any) -> Fault:
    fields = {name: written[name] for name in Fault._fields}
    fields["code"] = Code(fields["code"])
    for name, known in _WORDS.items():
        if fields[name] not in get_args(known):
            raise wire.Unloadable(f"{fields[name]!r} is not a valid {name}")
    fields["message"], fields["reason"] = sanitise(_text(fields["message"])), sanitise(_text(fields["reason"]))
    for name in ("retry_after", "http_status"):
        if isinstance(fields[name], bool) or not isinstance(fields[name], int | float | None):
            raise wire.Unloadable(f"{fields[name]!r} is not a valid {name}")
    return Fault(**{**fields, "cause": None})


def _write_attribute(value: Any) -> Any:
    """Encode an attribute of an error: plain data, or one of the few other types that ``describe`` keeps."""
    if isinstance(value, dt.datetime):
        return {_TAG: "datetime", "is": value.isoformat()}
    if isinstance(value, dt.timedelta):
        return {_TAG: "timedelta", "is": value.total_seconds()}
    if isinstance(value, bytes):
        return {_TAG: "bytes", "is": base64.b64encode(value).decode()}
    if isinstance(value, SimpleNamespace):
        return {_TAG: "response", "is": {name: _write_attribute(part) for name, part in vars(value).items()}}
    if isinstance(value, dict):
        plain = {name: _write_attribute(part) for name, part in value.items()}
        return {_TAG: "mapping", "is": plain} if _TAG in plain else plain
    if isinstance(value, list):
        return [_write_attribute(item) for item in value]
    return value


def _read_attribute(written: Any) -> Any:
    if isinstance(written, list):
        return [_read_attribute(item) for item in written]
    if not isinstance(written, dict):
        return written
    match written.get(_TAG):
        case None | "mapping":
            plain = written if _TAG not in written else written["is"]
            return {name: _read_attribute(part) for name, part in plain.items()}
        case "datetime":
            return dt.datetime.fromisoformat(written["is"])
        case "timedelta":
            return dt.timedelta(seconds=written["is"])
        case "bytes":
            return base64.b64decode(written["is"])
        case "response":
            return SimpleNamespace(**{name: _read_attribute(part) for name, part in written["is"].items()})
    raise wire.Unloadable("an attribute of an error has a type that is not known here")


def _text(written: Any) -> str:
    if not isinstance(written, str):
        raise wire.Unloadable(f"a text is of type {type(written).__qualname__}")
    return written


def _name(written: Any) -> str:
    """Check the qualified name of a class, because a class of this name is made here."""
    name = _text(written)[:500]
    return name if all(part and part.isprintable() for part in name.split(".")) else "builtins.Exception"


_WRITE: Final[dict[Content, Any]] = {"value": _write_value, "error": _write_error, "text": str}
_READ: Final[dict[Content, Any]] = {"value": _read_value, "error": _read_error, "text": _text}
