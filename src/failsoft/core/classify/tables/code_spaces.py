"""Code spaces: the attributes that are read, and the space of each package's own codes."""

from __future__ import annotations

# package -> (path, space): a library's own codes. Only gRPC's paths end in ``()``: no other method is called.
SPACES: dict[str, tuple[tuple[str, str], ...]] = {
    "grpc": (("code()", "grpc"),),
    "google": (("reason", "provider"),),
    "grpclib": (("status", "grpc"),),
    "pymongo": (("code", "mongodb"),),
    "pymysql": (("args[0]", "mysql"),),
    "MySQLdb": (("args[0]", "mysql"),),
    "aiomysql": (("args[0]", "mysql"),),
    "asyncmy": (("args[0]", "mysql"),),
    "mysql": (("errno", "mysql"),),
    "pyodbc": (("args[0]", "sqlstate"),),
    "postgrest": (("code", "sqlstate"),),
    "pika": (("reply_code", "amqp"),),
    "aiormq": (("errno", "amqp"),),
    "amqp": (("reply_code", "amqp"),),
    "mcp": (("error.code", "jsonrpc"),),
    "fastmcp": (("error.code", "jsonrpc"),),
    "jsonrpc": (("code", "jsonrpc"),),
    "xmlrpc": (("faultCode", "jsonrpc"),),
    "kafka": (("errno", "kafka"),),
    "aiokafka": (("errno", "kafka"),),
    "ldap3": (("result", "ldap"),),
    "ftplib": (("args[0][:3]", "ftp"),),
    "twilio": (("code", "twilio"),),
    "subprocess": (("returncode", "exit"),),
    "docker": (("exit_status", "exit"),),
    "clickhouse_driver": (("code", "clickhouse"),),
    "clickhouse_connect": (("code", "clickhouse"),),
    "oracledb": (("args[0].full_code", "oracle"),),
    "websockets": (("rcvd.code", "websocket"),),
    "asyncssh": (("code", "ssh"),),
    "curl_cffi": (("code", "curl"),),
    "pycurl": (("args[0]", "curl"),),
}

# attribute -> space: codes that any library may carry
CODES: tuple[tuple[str, str], ...] = (
    ("sqlstate", "sqlstate"),
    ("pgcode", "sqlstate"),
    ("sqlite_errorname", "sqlite"),
    ("grpc_status_code", "grpc"),
    ("code", "provider"),
    ("error_code", "provider"),
    ("errorCode", "provider"),
    ("status_code", "provider"),
    ("error_name", "provider"),
    ("error_type", "provider"),
    ("type", "provider"),
    ("status", "provider"),
    ("error", "provider"),
)

STATUSES = ("status_code", "status", "statusCode", "http_status", "code", "response_code", "http_code", "errcode")
RESPONSES = ("response", "resp", "raw_response", "meta")
BODIES = (
    "body",
    "json_body",
    "response_body",
    "data",
    "error",
    "content",
    "details",
    "errors",
    "extensions",
    "text",
    "stderr",
)
INNER = (
    "reason",  # urllib3, urllib
    "orig",  # SQLAlchemy
    "_os_error",  # aiohttp
    "inner_exception",  # azure-core
    "original_exception",  # PyMySQL, litellm
    "original_error",  # graphql-core
    "_cause",  # google-api-core
    "last_exception",
    "exc",  # celery
    "exceptions",  # pika
    "errors",  # elastic-transport, paramiko, cassandra-driver
)
# an error's own statements: a retry may succeed (Kafka's clients), or never will (Temporal)
AGAIN = ("retriable", "retryable", "is_retryable")
NEVER = ("non_retryable",)
# packages whose ``Response.json`` parses a response
CLIENTS = frozenset({"httpx", "httpx2", "requests", "aiohttp", "urllib3", "niquests", "curl_cffi"})
# packages that parse nothing but responses
SDKS = frozenset(
    "anthropic azure botocore cohere docker elastic_transport elasticsearch github gitlab google gql groq huggingface_hub"
    " hvac jira kubernetes litellm minio mistralai notion_client ollama openai opensearchpy pinecone python_http_client"
    " qdrant_client replicate sendgrid slack_sdk stripe telegram tweepy twilio weaviate".split()
)
_OTHERS = (
    "headers",
    "response_headers",
    "retry_after",
    "doc",
    "last_attempt",
    "kwargs",
    "smtp_code",
    "smtp_error",
    "recipients",
    "message",
)

WANTED = frozenset((*STATUSES, *RESPONSES, *BODIES, *INNER, *AGAIN, *NEVER, *_OTHERS, *(name for name, _ in CODES)))

# attributes that are not read: they mean something else, or emit a deprecation warning
UNREAD: dict[str, frozenset[str]] = {
    "builtins": frozenset({"code"}),  # SystemExit's code is not a status
    "aiohttp": frozenset({"code"}),
    "websockets": frozenset({"code", "reason"}),
    "modal": frozenset({"status", "message", "details"}),
}
