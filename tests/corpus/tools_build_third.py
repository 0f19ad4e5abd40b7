"""Add the third set of tools to ``tools.jsonl``: sources that the tables were not written from.

    python tests/corpus/tools_build_third.py DIRECTORY

DIRECTORY holds the unpacked packages that ``README.md`` lists, Python packages below ``py/`` and those of npm below
``node/``. Nothing is imported from them: Python files are parsed, JSON files are read. Every label follows from the rule of
its source alone; only the labels in ``POSTS`` were written by hand.

- ``mcp-third``: the ``readOnlyHint`` annotation in the server's source.
- ``graphql``: a field of the type ``Query`` is a read, one of the type ``Mutation`` a write.
- ``msgraph``, ``openapi-third``: the HTTP method, by the same rule as in ``tools_build_second.py``.
- ``agent-kits``: toolkits for agents. A method that calls ``requests.get`` and nothing else of that library is a read; one
  that calls ``requests.post``, ``put``, ``patch`` or ``delete`` is a write, except those in ``POSTS``, which were labelled
  by what the service does: it answers, or only makes a picture, a sound or a film.

Large sources are sampled with a fixed seed.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tools_build import Row, row
from tools_build_second import HERE, functions, of_method, parsed, sample, told

PER_PACKAGE = 20
PER_SERVER = 45

_POSTMAN = re.compile(
    r"export const method = '(\w+)'.*?export const description =\s*(['\"`])(.*?)(?<!\\)\2;", re.DOTALL
)
_KEYED = re.compile(
    r"\b([a-z]+(?:_[a-z0-9]+)+):\{(?:[^{}]|\{[^{}]*\})*?description:(['\"`])(.*?)(?<!\\)\2"
    r"(?:(?!description:).){0,600}?readOnlyHint:(!0|!1|true|false)",
    re.DOTALL,
)


def mcp_third(home: Path) -> Iterator[Row]:
    """Two servers of npm, which write the name in their own way."""
    found: dict[str, list[Row]] = {}
    for code in sorted(home.glob("node/postman*/package/dist/src/tools/*.js")):
        text = code.read_text(encoding="utf-8")
        named, hint = _POSTMAN.search(text), re.search(r"readOnlyHint: (true|false)", text)
        if named and hint:
            found.setdefault("postman", []).append(_hinted(named.group(1), named.group(3), hint.group(1), "postman"))
    for code in sorted(home.glob("node/supabase*/package/dist/**/*.js")):
        for one_match in _KEYED.finditer(code.read_text(encoding="utf-8")):
            name, _, description, hint_text = one_match.groups()
            found.setdefault("supabase", []).append(_hinted(name, description, hint_text, "supabase"))
    for rows in found.values():
        yield from sample(rows, PER_SERVER)


def _hinted(name: str, description: str, hint: str, server: str) -> Row:
    reads = hint in ("true", "!0")
    return row(
        name,
        description.replace("\\n", " "),
        "read" if reads else "write",
        "mcp-third",
        f"{server}: readOnlyHint {reads}",
    )


def graphql(home: Path) -> Iterator[Row]:
    """GitHub's schema and Shopify's two: every query, and as many mutations as fit."""
    files = {"GitHub": "octokit-graphql-schema*/package/schema.json"}
    files |= {"storefront": "shopify-hydrogen*/package/storefront.schema.json"}
    files |= {"customer": "shopify-hydrogen*/package/customer-account.schema.json"}
    for schema, pattern in files.items():
        content = json.loads(next((home / "node").glob(pattern)).read_text())
        types = (content.get("data") or content)["__schema"]["types"]
        for kind, label in (("Query", "read"), ("Mutation", "write")):
            fields = next((one["fields"] for one in types if one["name"] in (kind, f"{kind}Root")), [])
            rows = [row(f["name"], f["description"] or "", label, "graphql", f"{schema}: {kind}") for f in fields]
            yield from sample(rows, PER_SERVER)


def msgraph(home: Path) -> Iterator[Row]:
    endpoints = json.loads(next((home / "node").glob("softeria*/package/dist/endpoints.json")).read_text())
    yield from sample(
        (
            of_method(
                one["toolName"],
                one.get("descriptionOverride", ""),
                one["method"].upper(),
                one["pathPattern"],
                "msgraph",
            )
            for one in endpoints
        ),
        90,
    )


# HTTP APIs ----------------------------------------------------------------------------------------------------------

_SENDS = (
    re.compile(
        r"\bself\._(get|post|put|patch|delete)(?:_api_list)?\(.{0,40}?f?['\"](?P<path>/[^'\"]*)['\"]", re.DOTALL
    ),
    re.compile(r"\bself\._session\.(get|post|put|patch|delete)\w*\("),
    re.compile(r"\bmethod=['\"](GET|POST|PUT|PATCH|DELETE)['\"]"),
)
_PATH = re.compile(r"f?['\"](/?[a-z][^'\" ]*/[^'\" ]*|/[^'\" ]*)['\"]")
_CALLS = re.compile(r":calls: `(GET|POST|PUT|PATCH|DELETE) (\S+)")


def _client(package: Path, prefixed: bool) -> Iterator[Row | None]:
    """Functions that send one kind of request. ``prefixed``: the name needs the file's to say what it is about."""
    for code in sorted(package.rglob("*.py")):
        place = str(code.relative_to(package))
        if re.search(r"\baio\b|async|/batch/|_test|types/", place):
            continue
        for fn in functions(parsed(code)):
            if fn.name.startswith("_") or isinstance(fn, ast.AsyncFunctionDef):
                continue
            text = ast.unparse(fn)
            methods = {
                (m.group(1).upper(), m.groupdict().get("path")) for sends in _SENDS for m in sends.finditer(text)
            }
            said = _CALLS.search(ast.get_docstring(fn) or "")
            if said:
                methods = {(said.group(1), said.group(2))}
            if len({method for method, _ in methods}) != 1:
                continue
            method, path = methods.pop()
            found = _PATH.search(text)
            path = path or (found.group(1) if found else "")
            description = told(fn)
            if said:
                description = ""  # its first line names the request
            where = [part for part in code.relative_to(package).with_suffix("").parts if part not in _PLACES][-2:]
            name = f"{'.'.join(dict.fromkeys(where))}.{fn.name}" if prefixed else fn.name
            made = of_method(name, description, method, path, "openapi-third")
            listed = re.search(r"method='(post|put|patch|delete)'", text)  # "_get_api_list" sends any method
            yield (
                {**made, "label": "write", "label_from": f"{listed.group(1).upper()} {path}"}
                if made and listed
                else made
            )


CLIENTS = (
    *("cloudflare/cloudflare", "increase/increase", "lithic/lithic", "modern_treasury/modern_treasury"),
    *("finch_api/finch", "squareup/square", "elevenlabs/elevenlabs", "python_intercom/intercom", "auth0_python/auth0"),
    *("zep_cloud/zep_cloud", "pygithub/github"),
)
_PLACES = frozenset("resources management client raw_client __init__".split())


def _mailchimp(package: Path) -> Iterator[Row | None]:
    for code in sorted(package.rglob("*_api.py")):
        for fn in functions(parsed(code)):
            text = ast.unparse(fn)
            sent = re.search(r"call_api\(\s*'(/[^']*)', '(\w+)'", text)
            if sent and fn.name.endswith("_with_http_info"):
                name = f"{code.stem.removesuffix('_api')}.{fn.name.removesuffix('_with_http_info')}"
                yield of_method(name, told(fn), sent.group(2), sent.group(1), "openapi-third")


def _launchdarkly(package: Path) -> Iterator[Row | None]:
    for code in sorted(package.rglob("api/*_api.py")):
        tree = parsed(code)
        described = {fn.name: told(fn) for fn in functions(tree)}
        for fn in functions(tree):
            text = ast.unparse(fn)
            method = re.search(r"method='(\w+)'", text)
            path = re.search(r"resource_path='(/[^']*)'", text)
            name = fn.name.removesuffix("_serialize").strip("_")
            if method and path and name in described:
                yield of_method(name, described[name], method.group(1), path.group(1), "openapi-third")


def openapi_third(home: Path) -> Iterator[Row]:
    clients = home / "py"
    for package in CLIENTS:
        yield from sample(_client(clients / package, True), PER_PACKAGE)
    yield from sample(_client(clients / "meraki/meraki/api", False), PER_PACKAGE)
    yield from sample(_mailchimp(clients / "mailchimp_marketing"), PER_PACKAGE)
    yield from sample(_launchdarkly(clients / "launchdarkly_api"), PER_PACKAGE)


# Toolkits for agents ------------------------------------------------------------------------------------------------

POSTS = {
    **dict.fromkeys(("fetch_recommended_papers", "get_screenshot", "preview_action", "search", "search_pages"), "read"),
    **dict.fromkeys(("search_query", "web_data_feed", "web_search"), "read"),
    **dict.fromkeys(("execute_action", "generate_3d_preview", "generate_media", "generate_video"), "neither"),
    **dict.fromkeys(("refine_3d_model", "text_to_speech"), "neither"),
}
_REQUESTS = re.compile(r"\b(?:requests|httpx|self\.session|session)\.(get|post|put|patch|delete)\(")
_URL = re.compile(r"https?://[^'\"\s]+|/[a-z{][^'\"\s]*")


def agent_kits(home: Path) -> Iterator[Row]:
    places = {
        "camel": "camel_ai/camel/toolkits",
        "agno": "agno/agno/tools",
        "crewai": "crewai_tools/crewai_tools/tools",
    }
    found: list[Row | None] = []
    for kit, place in places.items():
        for code in sorted((home / "py" / place).rglob("*.py")):
            for one in parsed(code).body:
                if isinstance(one, ast.ClassDef):
                    found += [
                        _kit_method(fn, f"{kit}: {code.stem}") for fn in one.body if isinstance(fn, ast.FunctionDef)
                    ]
    yield from sample(found, 120)


def _kit_method(fn: ast.FunctionDef, where: str) -> Row | None:
    if fn.name.startswith("_") or fn.name in ("run", "invoke"):
        return None
    text = ast.unparse(fn)
    methods = {match.group(1).upper() for match in _REQUESTS.finditer(text)}
    if not methods:
        return None
    method = next(iter(methods)) if len(methods) == 1 else next(iter(sorted(methods - {"GET"})))
    url = _URL.search(text.replace(ast.get_docstring(fn, clean=False) or "\0", ""))
    made = of_method(fn.name, told(fn), method, url.group() if url else "", "agent-kits")
    if made is None or method != "POST" or fn.name not in POSTS:
        return made and {**made, "label_from": f"{where}: {method}"}
    return {**made, "label": POSTS[fn.name], "label_from": f"{where}: POST, but what the service does"}


SOURCES: dict[str, Callable[[Path], Iterable[Row]]] = {
    "mcp-third": mcp_third,
    "graphql": graphql,
    "msgraph": msgraph,
    "openapi-third": openapi_third,
    "agent-kits": agent_kits,
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
