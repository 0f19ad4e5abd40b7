"""Build ``tools.jsonl``, the corpus of real tools labelled as reads and writes.

    python tests/corpus/tools_build.py DIRECTORY

DIRECTORY holds the unpacked packages that ``README.md`` lists, and in ``lists/`` the answers of MCP servers to
``tools/list``. Nothing is imported from them: Python files are parsed, JSON files are read.

Every label comes from its source and is written before any recognition table is consulted:

- ``bfcl``: the methods of the stateful API classes. A method that assigns to or mutates the object's state is a write.
- ``agentdojo``: the tool functions, by what their bodies do to the environment.
- ``mcp-*``: the ``readOnlyHint`` annotation.
- ``langchain``: what the tool's ``_run`` does.
- ``github``, ``google``, ``kubernetes``, ``stripe``, ``aws``: the HTTP method. GET and HEAD are reads, the others are
  writes unless the documentation says that the operation only answers.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, str]
HERE = Path(__file__).parent

# Where the syntax alone misleads: state is changed through another object, or only to pad the prompt of a long test.
BFCL = {
    "echo": ("write", "writes the file it is given"),
    "mkdir": ("write", "adds a directory"),
    "touch": ("write", "adds a file"),
    "get_order_details": ("read", "changes only the padding of long-context tests"),
    "get_stock_info": ("read", "changes only the padding of long-context tests"),
    "get_watchlist": ("read", "changes only the padding of long-context tests"),
    "get_flight_cost": ("read", "fills its own lookup table"),
}
AGENTDOJO_WRITES = """set_balance set_iban send_money schedule_transaction update_scheduled_transaction
create_calendar_event cancel_calendar_event reschedule_calendar_event add_calendar_event_participants create_file
delete_file share_file append_to_file send_email delete_email add_user_to_channel send_direct_message
send_channel_message invite_user_to_slack remove_user_from_slack reserve_hotel reserve_restaurant reserve_car_rental
update_password update_user_info post_webpage download_file"""
AGENTDOJO_READS_THAT_CHANGE = {"get_unread_emails": ("write", "marks the emails as read")}
LANGCHAIN_WRITES = """AINappOps AINtransfer cogniswitch_knowledge_source_file cogniswitch_knowledge_source_url copy_file
file_delete move_file write_file create_gmail_draft send_gmail_message memorize close_multion_session
create_multion_session update_multion_session create_email_draft send_event send_email click_element navigate_browser
previous_webpage requests_post requests_patch requests_put requests_delete schedule_message send_message
comment_on_issue create_pull_request create_file update_file delete_file set_active_branch create_branch
create_review_request create_issue create_confluence_page create_task create_list create_folder update_task
update_task_assignees"""
LANGCHAIN_NEITHER = """AINownerOps AINruleOps AINvalueOps bearly_interpreter cassandra_db_query e2b_data_analysis
query_graphql human riza_exec_python riza_exec_javascript terminal sleep query_sql_db sql_db_query catch_all_jira_api
nuclia_understanding_api generate_image openai_dalle openai_text_to_speech azure_ai_services_text_to_speech
azure_cognitive_services_text2speech edenai_text_to_speech eleven_labs_text2speech google_cloud_texttospeech"""
FAMILIES = {"reference": "mcp-reference", "second": "mcp-second"}
GOOGLE = """calendar.v3 chat.v1 classroom.v1 docs.v1 drive.v3 gmail.v1 pubsub.v1 sheets.v4 tasks.v1 youtube.v3"""
AWS = """bedrock connect iot lambda location s3"""
# POST operations whose documentation says that they only answer, with its words.
HTTP_READS = {
    "markdown/render": "Render a Markdown document",
    "markdown/render-raw": "Render a Markdown document in raw mode",
    "apps/check-token": "Check a token",
    "repos/generate-release-notes": "The generated release notes are not saved anywhere",
    "calendar.freebusy.query": "Returns free/busy information",
    "pubsub.projects.schemas.testIamPermissions": "Returns permissions that a caller has",
    "pubsub.projects.snapshots.testIamPermissions": "Returns permissions that a caller has",
    "pubsub.projects.subscriptions.testIamPermissions": "Returns permissions that a caller has",
    "pubsub.projects.topics.testIamPermissions": "Returns permissions that a caller has",
    "pubsub.projects.schemas.validateMessage": "Validates a message against a schema",
    "pubsub.projects.schemas.validate": "Validates a schema",
    "invoice.create_preview": "you can preview the upcoming invoice",
    "chat.spaces.messages.search": "Searches for messages",
    "sheets.spreadsheets.getByDataFilter": "Returns the spreadsheet",
    "BatchDescribeDataTableValue": "Retrieves multiple values",
    "GetMetricDataV2": "Gets metric data",
    "ListDataTableAttributes": "Returns all attributes",
    "ListDefaultVocabularies": "Lists the default vocabularies",
    "SearchContactFlowModules": "Searches the flow modules",
    "SearchEmailAddresses": "Searches email address",
    "SearchMetrics": "Searches for metrics",
    "SearchQueues": "Searches queues",
    "SearchRules": "Searches rules",
    "SearchUsers": "Searches users",
    "SearchWorkspaces": "Searches workspaces",
    "ListAuditFindings": "Lists the findings",
    "SearchIndex": "Searches the specified index",
    "TestAuthorization": "Tests if a specified principal is authorized",
    "BatchGetDevicePosition": "Lists the latest device positions",
    "CalculateRouteMatrix": "Calculates a route matrix",
    "ListGeofenceCollections": "Lists geofence collections",
    "ListMaps": "Lists map resources",
    "ListTrackerConsumers": "Lists geofence collections",
    "SearchPlaceIndexForSuggestions": "Generates suggestions for addresses and points of interest",
    "SelectObjectContent": "filters the contents of an Amazon S3 object",
}


def row(name: str, description: str, label: str, source: str, label_from: str) -> Row:
    text = " ".join(description.split())
    text = text.split("Tool description: ")[-1]  # the same preamble before every BFCL description
    return {"name": name, "description": text[:240], "label": label, "source": source, "label_from": label_from}


def of_http(name: str, description: str, method: str, source: str) -> Row:
    said = method.upper()
    label = "read" if said in ("GET", "HEAD") else "write"
    if name in HTTP_READS:
        label, said = "read", f"{said}, but: {HTTP_READS[name]}"
    return row(name, description, label, source, said)


# BFCL ---------------------------------------------------------------------------------------------------------------

_MUTATORS = set("append pop remove update clear insert extend setdefault add popitem".split())


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _changes_state(fn: ast.FunctionDef, methods: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    seen.add(fn.name)
    own = {"self"}
    for node in ast.walk(fn):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _root(node.value) == "self":
            own.add(node.targets[0].id)
    for node in ast.walk(fn):
        if isinstance(node, ast.Delete):
            return True
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Attribute | ast.Subscript) and _root(t) in own for t in targets):
                return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _root(node.func) in own:
            if node.func.attr in _MUTATORS:
                return True
            inner = methods.get(node.func.attr)
            if inner is not None and inner.name not in seen and _changes_state(inner, methods, seen):
                return True
    return False


def bfcl(home: Path) -> Iterator[Row]:
    base = home / "bfcl_eval/bfcl_eval"
    for doc in sorted((base / "data/multi_turn_func_doc").glob("*.json")):
        code = base / "eval_checker/multi_turn_eval/func_source_code" / f"{doc.stem}.py"
        classes = [node for node in ast.parse(code.read_text()).body if isinstance(node, ast.ClassDef)]
        methods = {fn.name: fn for one in classes for fn in one.body if isinstance(fn, ast.FunctionDef)}
        for line in doc.read_text().splitlines():
            tool = json.loads(line)
            name = tool["name"]
            if name in BFCL:
                label, why = BFCL[name]
            else:
                changes = _changes_state(methods[name], methods, set())
                label, why = ("write", "changes the state") if changes else ("read", "leaves the state alone")
            yield row(name, tool["description"], label, "bfcl", f"{doc.stem}: {why}")


# AgentDojo, LangChain -----------------------------------------------------------------------------------------------


def agentdojo(home: Path) -> Iterator[Row]:
    helpers = {"next_id", "standardize_url", "set_balance", "set_iban"}  # not offered to the agent
    for code in sorted((home / "agentdojo/agentdojo/default_suites/v1/tools").glob("*.py")):
        for fn in ast.parse(code.read_text()).body:
            if not isinstance(fn, ast.FunctionDef) or fn.name in helpers:
                continue
            if fn.name in AGENTDOJO_READS_THAT_CHANGE:
                label, why = AGENTDOJO_READS_THAT_CHANGE[fn.name]
            elif fn.name in AGENTDOJO_WRITES.split():
                label, why = "write", "changes the environment"
            else:
                label, why = "read", "leaves the environment alone"
            yield row(
                fn.name, (ast.get_docstring(fn) or "").split(":param")[0], label, "agentdojo", f"{code.stem}: {why}"
            )


def _fields(one: ast.ClassDef, constants: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in one.body:
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)) or node.value is None:
            continue
        if node.target.id in ("name", "description"):
            try:
                said = ast.literal_eval(node.value)
            except ValueError:
                said = constants.get(getattr(node.value, "id", ""), "")
            found[node.target.id] = said if isinstance(said, str) else ""
    return found


def _langchain_label(name: str) -> tuple[str, str]:
    if name in LANGCHAIN_NEITHER.split():
        return "neither", "does what it is given, or only produces something new"
    if name in LANGCHAIN_WRITES.split():
        return "write", "changes something"
    return "read", "only asks"


def langchain(home: Path) -> Iterator[Row]:
    base = home / "langchain_community/langchain_community"
    for code in sorted((base / "tools").rglob("*.py")):
        constants = _constants(code)
        for one in ast.parse(code.read_text()).body:
            fields = _fields(one, constants) if isinstance(one, ast.ClassDef) else {}
            name = fields.get("name", "")
            if name:
                label, why = _langchain_label(name)
                where = code.relative_to(base / "tools").with_suffix("")
                yield row(name, fields.get("description", ""), label, "langchain", f"{where}: {why}")
    for toolkit in ("github", "gitlab", "jira", "clickup"):
        prompts = _constants(base / "tools" / toolkit / "prompt.py")
        code = (base / "agent_toolkits" / toolkit / "toolkit.py").read_text()
        pairs = re.findall(r'"mode": "(\w+)",\s*"name": "([^"]+)",.*?"description": (\w+)', code, re.DOTALL)
        for mode, shown, prompt in pairs:
            name = shown if " " not in shown else mode
            label, why = _langchain_label(name)
            yield row(name, prompts.get(prompt, ""), label, "langchain", f"{toolkit} toolkit: {why}")


def _constants(code: Path) -> dict[str, str]:
    found = {}
    for node in ast.parse(code.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


# MCP ----------------------------------------------------------------------------------------------------------------


def mcp(home: Path) -> Iterator[Row]:
    for listed in sorted((home / "lists").glob("*.json")):
        family = FAMILIES.get(listed.stem.split("-")[0], "mcp-vendors")
        for tool in json.loads(listed.read_text()):
            hint = (tool.get("annotations") or {}).get("readOnlyHint")
            if isinstance(hint, bool):
                server = listed.stem.split("-")[-1]
                said = f"{server}: readOnlyHint {str(hint).lower()}"
                yield row(tool["name"], tool.get("description") or "", "read" if hint else "write", family, said)


# HTTP APIs ----------------------------------------------------------------------------------------------------------


def github(home: Path) -> Iterator[Row]:
    document = json.loads((home / "octokit-openapi/package/generated/api.github.com.json").read_text())
    operations = [(m, o) for path in document["paths"].values() for m, o in path.items() if "operationId" in o]
    for method, operation in operations[::7]:
        yield of_http(operation["operationId"], operation.get("summary", ""), method, "github")


def google(home: Path) -> Iterator[Row]:
    documents = home / "google_api_python/googleapiclient/discovery_cache/documents"

    def methods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from resource.get("methods", {}).values()
        for inner in resource.get("resources", {}).values():
            yield from methods(inner)

    for api in GOOGLE.split():
        document = json.loads((documents / f"{api}.json").read_text())
        for method in list(methods(document))[::3]:
            yield of_http(method["id"], method.get("description", ""), method["httpMethod"], "google")


def kubernetes(home: Path) -> Iterator[Row]:
    found = []
    for api in ("core_v1_api", "apps_v1_api", "batch_v1_api"):
        code = (home / "kubernetes/kubernetes/client/api" / f"{api}.py").read_text()
        for fn in ast.walk(ast.parse(code)):
            if isinstance(fn, ast.FunctionDef) and fn.name.endswith("_serialize"):
                method = re.search(r"method='(\w+)'", ast.unparse(fn))
                name = fn.name.strip("_").removesuffix("_serialize")
                if method and not name.startswith("connect_"):  # a tunnel: the method says nothing
                    found.append((name, method.group(1)))
    for name, method in found[::6]:
        yield of_http(name, name.replace("_", " "), method, "kubernetes")


def stripe(home: Path) -> Iterator[Row]:
    found: list[tuple[str, str, str]] = []
    for code in sorted((home / "stripe/stripe").glob("_*_service.py")):
        for one in ast.parse(code.read_text()).body:
            for fn in one.body if isinstance(one, ast.ClassDef) else ():
                if isinstance(fn, ast.FunctionDef) and not fn.name.startswith("_"):
                    request = re.search(r"self\._request\('(\w+)'", ast.unparse(fn))
                    if request:
                        name = f"{code.stem.strip('_').removesuffix('_service')}.{fn.name}"
                        found.append((name, ast.get_docstring(fn) or "", request.group(1)))
    for name, description, method in found[::3]:
        yield of_http(name, description, method, "stripe")


def aws(home: Path) -> Iterator[Row]:
    for service in AWS.split():
        model = max((home / "botocore/botocore/data" / service).glob("*/service-2.json.gz"))
        operations = list(json.loads(gzip.decompress(model.read_bytes()))["operations"].values())
        for operation in operations[::4]:
            description = re.sub(r"<[^>]+>", "", operation.get("documentation", ""))
            yield of_http(operation["name"], description, operation["http"]["method"], "aws")


def main() -> None:
    home = Path(sys.argv[1])
    rows: dict[tuple[str, str], Row] = {}
    for source in (bfcl, agentdojo, langchain, mcp, github, google, kubernetes, stripe, aws):
        for one in source(home):
            rows.setdefault((one["source"], one["name"]), one)
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows.values())
    (HERE / "tools.jsonl").write_text(text)


if __name__ == "__main__":
    main()
