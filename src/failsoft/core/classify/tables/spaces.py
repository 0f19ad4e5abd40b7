"""Where libraries keep their codes: package -> (attribute, space). Under "" stands what any library may carry.

A path may end in ``()``: those are gRPC's, the only methods that are called.
"""

from __future__ import annotations

SPACES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("sqlstate", "sqlstate"),
        ("pgcode", "sqlstate"),
        ("sqlite_errorname", "sqlite"),
        ("grpc_status_code", "grpc"),
        ("code", "provider"),
        ("error_code", "provider"),
        ("type", "provider"),
        ("status", "provider"),
        ("error", "provider"),
    ),
    "grpc": (("code()", "grpc"),),
    "grpclib": (("status", "grpc"),),
    "pymongo": (("code", "mongodb"),),
    "pymysql": (("args[0]", "mysql"),),
    "MySQLdb": (("args[0]", "mysql"),),
    "aiomysql": (("args[0]", "mysql"),),
    "asyncmy": (("args[0]", "mysql"),),
    "mysql": (("errno", "mysql"),),
    "pika": (("reply_code", "amqp"),),
    "aiormq": (("errno", "amqp"),),
    "amqp": (("reply_code", "amqp"),),
    "mcp": (("error.code", "jsonrpc"),),
    "fastmcp": (("error.code", "jsonrpc"),),
    "jsonrpc": (("code", "jsonrpc"),),
    "kafka": (("errno", "kafka"),),
    "aiokafka": (("errno", "kafka"),),
    "ldap3": (("result", "ldap"),),
    "twilio": (("code", "twilio"),),
    "subprocess": (("returncode", "exit"),),
    "docker": (("exit_status", "exit"),),
    "clickhouse_driver": (("code", "clickhouse"),),
    "oracledb": (("args[0].full_code", "oracle"),),
    "websockets": (("rcvd.code", "websocket"),),
    "asyncssh": (("code", "ssh"),),
}
