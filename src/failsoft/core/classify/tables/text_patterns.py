"""Text patterns: pattern -> code space. The first group that matched is the code.

``hint`` is a piece of text, in lower case, that must occur before the pattern is tried. Names in capitals (``EPIPE``,
``SQLITE_BUSY``) and names of exceptions (``KeyError:``, ``httpx.ReadTimeout``) need no pattern: all capitalised words of
a text are looked up.
"""

from __future__ import annotations

from failsoft.core.startup.named_tuple import NamedTuple


class TextPattern(NamedTuple):
    """A way in which text states a code."""

    hint: str
    pattern: str
    space: str
    source: str


_STATUS = "|".join(
    "CANCELLED INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split()
)
_TITLED = (
    "(?:InvalidArgument|DeadlineExceeded|PermissionDenied|FailedPrecondition|Aborted|OutOfRange|Internal|DataLoss)"
)
_SQL_ERROR = r"\b(?:Operational|Programming|Integrity|Internal|Data|Database|NotSupported)Error"  # PEP 249

TEXT_PATTERNS: tuple[TextPattern, ...] = (
    TextPattern("<", r"(token '?\"?<|<!doctype html|<!DOCTYPE html|<html)", "page", "a web page where data was due"),
    TextPattern(
        "text/html",
        r"(?i)(?:mime-? ?type|content[- ]?type|received|returned|got|unexpected)\W{1,4}(text/html)",
        "page",
        "a web page where data was due",
    ),
    TextPattern("spawn", r"\bspawn(?:Sync)? \S{1,80} (ENOENT)\b", "program", "Node.js child_process"),
    TextPattern("[ssl: ", r"\[SSL: ([A-Z0-9_]{4,60})\]", "provider", "Python ssl"),
    TextPattern("errno", r"\[Errno (-?\d{1,3})\]|e(?<=\be)rrno[ :=]{1,2}(-?\d{1,3})\b", "errno_number", "Python"),
    TextPattern(
        "error(",
        r"\b(?:OS|IO|Connection\w*|BrokenPipe|BlockingIO|Timeout|Permission|File\w+|gai)[Ee]rror\((-?\d{1,3}), ['\"]",
        "errno_number",
        "Python: repr of an OSError",
    ),
    TextPattern("os error", r"\(os error (\d{1,5})\)", "errno_number", "Rust"),
    TextPattern("winerror", r"\[WinError (\d{1,5})\]", "winsock", "Python on Windows"),
    TextPattern("socketexception (", r"\bSocketException \((?:0x[0-9a-fA-F]{8}\): )?(\d{5})\b", "winsock", ".NET"),
    TextPattern("sqlstate", r"(?i:sqlstate)\W{0,3}([0-9A-Z]{5})\b", "sqlstate", "psql, Go pgx, PHP PDO, JDBC"),
    TextPattern("error ", r"\bE(?:RROR|rror) (\d{4}) ?[(:]", "mysql", "mysql(1), Go"),
    TextPattern("(", r"^\W{0,3}\(([12345]\d{3}), ['\"]", "mysql", "PyMySQL, mysqlclient"),
    TextPattern("error(", rf"{_SQL_ERROR}\(([1-5]\d{{3}}), ['\"]", "mysql", "PyMySQL, mysqlclient: repr"),
    TextPattern("error: (", rf"{_SQL_ERROR}: \(([1-5]\d{{3}}), ['\"]", "mysql", "PyMySQL, mysqlclient"),
    TextPattern(" - ", r"\((\d{3}), ['\"][A-Z_]{5,40} - ", "amqp", "pika"),
    TextPattern("close(code=", r"\bClose\(code=(\d{4})\b", "websocket", "websockets"),
    TextPattern("received", r"\breceived (\d{4}) \(", "websocket", "websockets"),
    TextPattern("processerror(", r"\bCalledProcessError\((-?\d{1,3}),", "exit", "subprocess"),
    TextPattern("ora-", r"\b(ORA-\d{5})\b", "oracle", "Oracle"),
    TextPattern("dpy-", r"\b(DPY-\d{4})\b", "oracle", "python-oracledb"),
    TextPattern("statuscode.", r"\bStatusCode\.([A-Z_]{5,20})\b", "grpc", "grpcio"),
    TextPattern("errorstatuscode.", r"\bErrorStatusCode\.([A-Z][A-Za-z_]{4,20})\b", "grpc", "S-layers"),
    TextPattern(
        "",
        rf"^\W{{0,2}}({_STATUS}|{_TITLED}(?=:|\W?$))(?:\W{{0,2}}$|: |\] )",
        "grpc",
        "a code alone, or before its message",
    ),
    *(
        TextPattern(
            word,
            rf"[{word[0]}{word[0].upper()}](?<=\b.)(?i:{word[1:]}\W{{1,3}})({_STATUS}|{_TITLED}(?=[:,;]|\W?$))(?![\w-]| [A-Z])",
            "grpc",
            "a code in running text",
        )
        for word in ("failed", "error", "status", "code", "codes", "grpc", "with", "returned")
    ),
    TextPattern("code = ", r"\bcode = ([A-Z][A-Za-z]{4,20}) desc\b", "grpc", "Go gRPC"),
    TextPattern(": ", r"^(?:[\w.]+: )?\d{1,2} ([A-Z_]{5,20}): ", "grpc", "Node.js gRPC"),
    TextPattern("-32", r"(?<![\w-])(-32[067]\d\d)\b", "jsonrpc", "JSON-RPC"),
    TextPattern("error occurred (", r"error occurred \((\w{3,80})\)", "provider", "botocore"),
    TextPattern("db::exception", r"\bCode: (\d{1,4})\. DB::Exception\b", "clickhouse", "ClickHouse"),
    TextPattern(
        " ",
        r"^((?!SQLITE_|EAI_)(?:[A-Z]{6,30}|[A-Z]{2,30}(?:_[A-Z]{2,30}){1,6}))(?=: | \()",
        "provider",
        "codes before their message",
    ),
    TextPattern("kafkaerror{", r"\bKafkaError\{(?:FATAL,)?code=\w+,val=(-?\d{1,3})\b", "kafka", "librdkafka"),
    TextPattern(
        "error(", r"\b\w+(?:Error|Exception)\([45]\d\d, '([a-z][a-z_]{5,80})'", "provider", "Elasticsearch, OpenSearch"
    ),
    TextPattern("error_", r"\berror_(?:perm|temp)\W{1,3}(\d{3})\b", "ftp", "ftplib"),
    TextPattern(
        " ",
        r"^(?:(?:smtp|ftp)\w*\W{1,3})?(421(?= (?!Misdirected|Client Error))|55[0-6])[ -][A-Za-z0-9]",
        "smtp",
        "RFC 5321, RFC 959: no HTTP status",
    ),
    TextPattern("full error: {", r"full error: \{[^\n]{0,600}?'code': (\d{1,5})\b", "mongodb", "PyMongo"),
    TextPattern("neo.", r"\b(Neo\.[A-Z]\w+\.\w+\.\w+)", "provider", "Neo4j"),
    TextPattern(" ", r"^(?:[\w. ]{0,40}: )?([A-Z]{3,12}) [A-Za-z0-9@']", "redis", "Redis error prefixes"),
    TextPattern("5.", r"\b[45]\d\d(?:[ -]|, b?['\"])(5\.\d{1,2}\.\d{1,3})\b", "enhanced", "RFC 3463"),
    TextPattern("4.", r"\b([45]\d\d)(?:[ -]|, b?['\"])4\.\d{1,2}\.\d{1,3}\b", "smtp", "SMTP replies"),
    TextPattern("5.", r"\b([45]\d\d)(?:[ -]|, b?['\"])5\.\d{1,2}\.\d{1,3}\b", "smtp", "SMTP replies"),
    TextPattern(", b", r"\(([45]\d\d), b['\"]", "smtp", "smtplib"),
    TextPattern("curl", r"\b[Cc](?:url|URL):?(?: error)? \(?(\d{1,2})\b(?![.\d])", "curl", "curl(1), git, PHP"),
    TextPattern(
        "curl ",
        r"\bcurl [^\n]{0,300}\bexit (?:status|code) (\d{1,2})\b|\bexit(?:ed)? (?:with )?(?:status|code) (\d{1,2}): curl ",
        "curl",
        "curl(1): as whoever ran it tells",
    ),
    TextPattern(
        "exit",
        r"\bexit(?:ed)?(?: with)?(?: non-zero)?(?: exit)?(?: status| code)?[ :=]{1,2}(-?\d{1,3})\b",
        "exit",
        "shells",
    ),
    TextPattern(
        "'",
        r"^('[^' ]{1,60}(?: [^' ]{1,60}){0,2}')$",
        "key",
        "str() of Python's KeyError",
    ),
)
