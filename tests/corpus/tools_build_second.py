"""Add the second set of tools to ``tools.jsonl``: sources that the tables were not written from.

    python tests/corpus/tools_build_second.py DIRECTORY

DIRECTORY holds the unpacked packages that ``README.md`` lists, one directory per package. Nothing is imported from
them: Python files are parsed, JSON files are read. Every label follows from the rule of its source alone; no label was
written by hand.

- ``are``: the ``OperationType`` that the simulated apps declare for each tool.
- ``mcp-python``, ``mcp-node``: the ``readOnlyHint`` annotation in the server's source.
- ``aws-second``: the ``readonly`` trait of service models in which at least 30 % of the operations have it. An operation
  without the trait whose HTTP method is GET is left out.
- ``google-second``, ``azure``, ``datadog``, ``openapi-second``: the HTTP method. GET and HEAD are reads, the others are
  writes. A POST whose path ends in a segment with one of the words in ``ASKS`` is left out: APIs use POST for queries
  that are too long for a URL, so the method is no label there.

Large sources are sampled with a fixed seed.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tools_build import Row, row

HERE = Path(__file__).parent
SEED = 20
ASKS = frozenset(
    """
    search query queries list get fetch read find filter lookup look count aggregate analytics check validate preview
    estimate calculate compute compare test export generate download analyze analyse evaluate resolve render verify
    simulate predict suggest explain retrieve describe batch
    """.split()
)
PER_SOURCE = 120
PER_PACKAGE = 40


def words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)}


def of_method(name: str, description: str, method: str, path: str, source: str) -> Row | None:
    segments = [segment for segment in re.split(r"[/:]", re.sub(r"\{[^}]*\}", "", path)) if segment]
    if method == "POST" and segments and words(segments[-1]) & ASKS:
        return None
    return row(name, description, "read" if method in ("GET", "HEAD") else "write", source, f"{method} {path}"[:120])


def sample(rows: Iterable[Row | None], size: int) -> list[Row]:
    found = {one["name"]: one for one in rows if one is not None}
    names = sorted(found)
    return [found[name] for name in sorted(random.Random(SEED).sample(names, min(size, len(names))))]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def told(fn: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return re.split(r"\n\s*:param|\n\s*\n", ast.get_docstring(fn) or "", maxsplit=1)[0].split("  # noqa")[0]


# Agents -------------------------------------------------------------------------------------------------------------


def are(home: Path) -> Iterator[Row]:
    """The apps of Meta's Agents Research Environments. The agent sees ``App__tool``."""
    apps = home / "meta_agents_research_environments/are/simulation/apps"
    for code in sorted(apps.glob("*.py")):
        for one in parsed(code).body:
            for fn in one.body if isinstance(one, ast.ClassDef) else ():
                if isinstance(fn, ast.FunctionDef):
                    marks = " ".join(ast.unparse(mark) for mark in fn.decorator_list)
                    kind = re.search(r"OperationType\.(READ|WRITE)", marks)
                    if kind and re.search(r"\bapp_tool\b", marks):
                        name = f"{one.name}__{fn.name}"
                        yield row(name, told(fn), kind.group(1).lower(), "are", f"OperationType.{kind.group(1)}")


# MCP ----------------------------------------------------------------------------------------------------------------

_HINT = re.compile(r"""read_?only_?hint['"]?\s*[=:]\s*(True|False)""", re.IGNORECASE)


def mcp_python(home: Path) -> Iterator[Row]:
    """Functions with a decorator ``@….tool(…)`` that has the hint."""
    for server in sorted((home / "mcp").iterdir()):
        for code in sorted(server.rglob("*.py")):
            if "test" in str(code.relative_to(home)):
                continue
            try:
                tree = parsed(code)
            except (SyntaxError, UnicodeDecodeError):
                continue
            for fn in functions(tree):
                for mark in fn.decorator_list:
                    said = ast.unparse(mark)
                    hint = _HINT.search(said)
                    if hint and re.match(r"[\w.]*tool\b", said):
                        name, description = _declared(mark, fn)
                        label = "read" if hint.group(1) == "True" else "write"
                        yield row(
                            name, description, label, "mcp-python", f"{server.name}: readOnlyHint {hint.group(1)}"
                        )


def _declared(mark: ast.expr, fn: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, str]:
    given = {"name": fn.name, "description": ast.get_docstring(fn) or ""}
    for keyword in mark.keywords if isinstance(mark, ast.Call) else ():
        if keyword.arg in given and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            given[keyword.arg] = keyword.value.value
    return given["name"], given["description"]


_NODE_HINT = re.compile(r"""readOnlyHint['"]?\s*:\s*(true|false|!0|!1)""")
_NODE_NAME = re.compile(r"""(?:[tT]ool\(\s*|\bname['"]?\s*:\s*)(['"`])([A-Za-z][\w.-]{2,60})\1""")
_NODE_SAYS = re.compile(r"""\bdescription['"]?\s*:\s*(['"`])((?:(?!\1).|\\.){8,2000}?)(?<!\\)\1""", re.DOTALL)


def mcp_node(home: Path) -> Iterator[Row]:
    """Tools in the JavaScript of servers: the hint, the nearest name before it, and the description between the two."""
    for server in sorted((home / "node").iterdir()):
        for code in sorted(server.rglob("*.*js")):
            text = code.read_text(encoding="utf-8", errors="replace")
            before = 0
            for hint in _NODE_HINT.finditer(text):
                declared = text[max(before, hint.start() - 4000) : hint.start()]
                before = hint.end()
                name = _last(name for name in _NODE_NAME.finditer(declared) if "title" not in name.group())
                says = _NODE_SAYS.search(declared, name.end()) if name else None
                if name and says and re.search(r"[_.-]|[a-z][A-Z]", name.group(2)):
                    label = "read" if hint.group(1) in ("true", "!0") else "write"
                    text_of = says.group(2).replace("\\n", " ")
                    yield row(
                        name.group(2), text_of, label, "mcp-node", f"{server.name}: readOnlyHint {label == 'read'}"
                    )


def _last(found: Iterator[re.Match[str]]) -> re.Match[str] | None:
    last = None
    for last in found:  # noqa: B007
        pass
    return last


# HTTP APIs ----------------------------------------------------------------------------------------------------------


def aws_second(home: Path) -> Iterator[Row]:
    used = {"bedrock", "connect", "iot", "lambda", "location", "s3"}
    found: list[Row | None] = []
    for service in sorted((home / "botocore/botocore/data").iterdir()):
        models = sorted(service.glob("*/service-2.json.gz"))
        if not models or service.name in used:
            continue
        operations = list(json.loads(gzip.decompress(models[-1].read_bytes()))["operations"].values())
        if sum(1 for one in operations if one.get("readonly")) < 0.3 * len(operations):
            continue
        for one in operations:
            reads = bool(one.get("readonly"))
            if reads or one["http"]["method"] != "GET":
                description = re.sub(r"<[^>]+>", "", one.get("documentation", ""))
                said = f"{service.name}: {'readonly' if reads else 'not readonly'}"
                found.append(row(one["name"], description, "read" if reads else "write", "aws-second", said))
    yield from sample(found, PER_SOURCE)


def google_second(home: Path) -> Iterator[Row]:
    used = set("calendar chat classroom docs drive gmail pubsub sheets tasks youtube".split())
    found: list[Row | None] = []
    documents = home / "google_api_python_client/googleapiclient/discovery_cache/documents"
    for document in sorted(documents.glob("*.json")):
        if document.name.split(".")[0] in used or document.name == "index.json":
            continue
        todo = [json.loads(document.read_text())]
        while todo:
            resource = todo.pop()
            todo += resource.get("resources", {}).values()
            for one in resource.get("methods", {}).values():
                described = one.get("description", "")
                found.append(of_method(one["id"], described, one["httpMethod"], one["path"], "google-second"))
    yield from sample(found, PER_SOURCE)


def _azure(package: Path, source: str) -> Iterator[Row | None]:
    """Operation groups: each method builds its request with a function of the module."""
    for code in sorted(package.rglob("operations/*.py")):
        if "/aio/" in str(code):
            continue
        tree = parsed(code)
        requests: dict[str, tuple[str, str]] = {}
        for fn in functions(tree):
            if fn.name.startswith("build_"):
                text = ast.unparse(fn)
                method = re.search(r"HttpRequest\(method='(\w+)'", text)
                path = re.search(r"_url = .*?'(/[^']*)'", text)
                if method and path:
                    requests[fn.name] = method.group(1), path.group(1)
        for one in tree.body:
            if isinstance(one, ast.ClassDef) and one.name.endswith("Operations"):
                yield from _azure_group(one, requests, source)


def _azure_group(one: ast.ClassDef, requests: dict[str, tuple[str, str]], source: str) -> Iterator[Row | None]:
    public = {fn.name: told(fn) for fn in one.body if isinstance(fn, ast.FunctionDef) and fn.name[0] != "_"}
    group = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", one.name.removesuffix("Operations")).lower()
    for fn in one.body:
        if isinstance(fn, ast.FunctionDef):
            request = re.search(r"\b(build_\w+_request)\(", ast.unparse(fn))
            name = re.sub(r"^_(\w+)_initial$", r"begin_\1", fn.name)
            if request and name in public and request.group(1) in requests:
                method, path = requests[request.group(1)]
                yield of_method(f"{group}.{name}", public[name], method, path, source)


def azure(home: Path) -> Iterator[Row]:
    found = [one for package in sorted(home.glob("azure_mgmt_*")) for one in _azure(package, "azure")]
    yield from sample(found, PER_SOURCE)


def datadog(home: Path) -> Iterator[Row]:
    found: list[Row | None] = []
    for code in sorted((home / "datadog_api_client").rglob("api/*_api.py")):
        tree = parsed(code)
        described = {fn.name: told(fn) for fn in functions(tree)}
        text = ast.unparse(tree)
        shape = r"'endpoint_path': '([^']+)', 'operation_id': '([^']+)', 'http_method': '(\w+)'"
        for path, name, method in re.findall(shape, text):
            found.append(of_method(name, described.get(name, ""), method, path, "datadog"))
    yield from sample(found, PER_SOURCE)


_QUOTED_METHOD = re.compile(r"'(GET|HEAD|POST|PUT|PATCH|DELETE)'")
_QUOTED_PATH = re.compile(r"'(/[^']*)'")


def _generated(package: Path) -> Iterator[Row | None]:
    """Clients that an OpenAPI generator wrote: the function that sends the request names the method and the path."""
    for code in sorted(package.rglob("*_api.py")):
        tree = parsed(code)
        described = {fn.name: told(fn) for fn in functions(tree)}
        for fn in functions(tree):
            name = re.sub(r"_with_http_info$|_serialize$", "", fn.name).strip("_")
            text = ast.unparse(fn)
            method, path = _QUOTED_METHOD.search(text), _QUOTED_PATH.search(text)
            if method and path and name in described:
                part = f"{code.stem.removesuffix('_api')}.{name}"
                yield of_method(part, described[name], method.group(1), path.group(1), "openapi-second")


def openapi_second(home: Path) -> Iterator[Row]:
    for package in ("asana", "docusign_esign", "hubspot_api_client", "okta", "xero_python"):
        yield from sample(_generated(home / package), PER_PACKAGE)
    yield from sample(_azure(home / "pydo", "openapi-second"), PER_PACKAGE)


SOURCES: dict[str, Callable[[Path], Iterator[Row]]] = {
    "are": are,
    "mcp-python": mcp_python,
    "mcp-node": mcp_node,
    "aws-second": aws_second,
    "google-second": google_second,
    "azure": azure,
    "datadog": datadog,
    "openapi-second": openapi_second,
}


def main() -> None:
    home = Path(sys.argv[1])
    target = HERE / "tools.jsonl"
    kept = [json.loads(line) for line in target.read_text().splitlines()]
    kept = [one for one in kept if one["source"] not in SOURCES]
    added: dict[tuple[str, str], Row] = {}
    for build in SOURCES.values():
        for one in build(home):
            added.setdefault((one["source"], one["name"]), one)
    lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in [*kept, *added.values()]]
    target.write_text("".join(lines))


if __name__ == "__main__":
    main()
