"""T39: generated passwords with symbols survived masking in ``.env``, DSN, YAML and URLs. Here none does, in no carrier."""

from __future__ import annotations

import json
import random
import shlex
import string
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode
from xml.sax.saxutils import escape

import pytest
from tests.core.redact.planted import survivors
from tests.torture.scale import times

from failsoft import classify
from failsoft.core.redact.sanitise import sanitise

PASSWORDS = times(1000, 150)
SEED = 20261117
ALPHABET = string.ascii_letters + string.digits + string.punctuation


def double(text: str, quote: str = "'") -> str:
    """Double the quotes within a text, as SQL, YAML and CSV do."""
    return text.replace(quote, 2 * quote)


CARRIERS: dict[str, Callable[[str], str]] = {
    ".env": lambda p: f"could not load .env\nDB_HOST=db\nDB_PASSWORD={p}\nDEBUG=1",
    "shell": lambda p: f"sh: export DB_PASSWORD={p} failed with exit status 1",
    "raw URL": lambda p: f"cannot connect to postgres://app:{p}@db.example.com:5432/orders",
    "raw URL without a port": lambda p: f'connect failed: "redis://:{p}@cache/0"',
    "encoded URL": lambda p: f"cannot connect to amqp://app:{quote(p, safe='')}@mq.example.com:5672/",
    "DSN of words": lambda p: f"connection failed: host=db user=app password={p} dbname=orders",
    "Go DSN": lambda p: f"dial app:{p}@tcp(db:3306)/orders: refused",
    "YAML": lambda p: f"in config.yml:\n  database:\n    user: app\n    password: {p}\n    port: 5432",
    "JSON": lambda p: "bad body " + json.dumps({"user": "app", "password": p, "retries": 3}),
    "JSON within JSON": lambda p: json.dumps({"error": json.dumps({"password": p}), "code": 400}),
    "raw query": lambda p: f"GET https://api.example.com/login?user=app&password={p}&next=home failed",
    "encoded query": lambda p: f"GET https://api.example.com/login?{urlencode({'password': p, 'next': 'home'})} failed",
    "option": lambda p: f"command failed: mytool --user app --password {p} --verbose",
    "option with =": lambda p: f"command failed: mytool --db-password={p} --verbose",
    "arguments": lambda p: f"command failed: {['mytool', '--password', p, '--verbose']!r}",
    "keyword": lambda p: f"connect(host='db', password={p!r}, port=5432) failed",
    "dict": lambda p: f"bad settings { ({'user': 'app', 'password': p, 'port': 5432})!r}",
    "ADO": lambda p: f"login failed: Server=db;User Id=app;Password={p};Database=orders;Encrypt=true",
    "header": lambda p: f"401 for headers\nHost: x\nX-Db-Password: {p}\nAccept: */*",
    "XML": lambda p: f"<config><user>app</user><password>{escape(p)}</password></config>",
    "raw XML": lambda p: f"<config><password>{p}</password></config>",
    "INI": lambda p: f"[database]\npassword = {p}\nport = 5432",
    "TOML": lambda p: f"[database]\npassword = {json.dumps(p)}\nport = 5432",
    "properties": lambda p: f"spring.datasource.password={p}\nserver.port=80",
    "first and last": lambda p: f"PGPASSWORD={p}",
    "quoted for a shell": lambda p: f"export DB_PASSWORD={shlex.quote(p)}\nexport DEBUG=1",
    "docker -e": lambda p: f"docker run -e POSTGRES_PASSWORD={shlex.quote(p)} postgres:16 exited with 1",
    "psql": lambda p: f"PGPASSWORD={shlex.quote(p)} psql -h db failed",
    "curl": lambda p: f"curl -u app:{shlex.quote(p)} https://api.example.com returned 22",
    "curl, quoted": lambda p: f"curl -u {shlex.quote('app:' + p)} https://api.example.com returned 22",
    "sqlplus": lambda p: f"sqlplus app/{p}@//db:1521/orders failed",
    "form": lambda p: f"POST /token grant_type=password&username=app&password={quote_plus(p)}&scope=all",
    "MongoDB": lambda p: f"mongodb+srv://app:{quote(p, safe='')}@c0.example.net/orders?retryWrites=true",
    "JDBC": lambda p: f"jdbc:postgresql://db:5432/orders?user=app&password={quote(p, safe='')}&ssl=true",
    "libpq": lambda p: "host=db password='" + p.replace("\\", "\\\\").replace("'", "\\'") + "' dbname=orders",
    "debugging f-string": lambda p: f"self.password = {p!r}, retries = 3",
    "repr of an error": lambda p: repr(ValueError(f"bad settings: password={p!r}")),
    "logfmt": lambda p: f'level=error msg="login failed" user=app password={json.dumps(p)} attempt=3',
    "colours": lambda p: f"login: password={p[:6]}\x1b[31m{p[6:]}\x1b[0m was rejected",
    "sentence": lambda p: f"the password {p} is wrong",
    "sentence that begins with it": lambda p: f"password {p} rejected for user app",
    "sentence with a colon": lambda p: f"invalid password: {p}",
    "sentence about a login": lambda p: f"login failed with {p}",
    "sentence about a password used": lambda p: f"could not log in as app using the password {p}",
    "sentence with brackets": lambda p: f"Sorry, the password you gave ({p}) does not match our records",
    "sentence with backticks": lambda p: f"the password `{p}` was rejected",
    "sentence about a secret": lambda p: f"client secret {p} is expired",
    "sentence about a change": lambda p: f"password changed: {p} -> other",
    "comparison": lambda p: f"password mismatch: expected {p!r}, got 'x'",
    "comparison the other way round": lambda p: f"AssertionError: {p!r} != password",
    "credentials": lambda p: f"cannot connect with credentials {('app', p)!r}",
    "CSV": lambda p: f'row 3 is bad: user,password\napp,"{double(p, chr(34))}"',
    "headers as pairs": lambda p: str([("Host", "h"), ("X-Db-Password", p), ("Accept", "*/*")]),
    "Basic in a pair": lambda p: str([("Authorization", f"Basic {b64encode(f'app:{p}'.encode()).decode()}")]),
    "redis-cli": lambda p: f"redis-cli -h cache -a {p} ping failed",
    "redis-cli, quoted": lambda p: f"redis-cli -h cache -a {shlex.quote(p)} ping failed",
    "mysql": lambda p: f"mysql -u root -p{p} shop: failed",
    "mysql, quoted": lambda p: f"mysql -u root -p{shlex.quote(p)} shop: failed",
    "curl, raw": lambda p: f"curl -u app:{p} https://api.example.com returned 22",
    "smbclient": lambda p: f"smbclient //srv/share -U app%{p} failed",
    "sshpass": lambda p: f"sshpass -p {shlex.quote(p)} ssh root@h: exit status 5",
    "ldapsearch": lambda p: f"ldapsearch -x -D cn=admin,dc=x -w {p} -b dc=x failed: 49",
    "htpasswd": lambda p: f"htpasswd -b .htpasswd app {shlex.quote(p)}: exit 1",
    "chpasswd": lambda p: f"echo 'app:{p}' | chpasswd failed",
    "rabbitmqctl": lambda p: f"rabbitmqctl add_user app {shlex.quote(p)} failed",
    "unzip": lambda p: f"unzip -P {shlex.quote(p)} a.zip failed: incorrect password",
    "net use": lambda p: f"net use Z: \\\\srv\\share /user:app {p} : system error 86",
    "PowerShell": lambda p: f"ConvertTo-SecureString -String '{double(p)}' -AsPlainText failed",
    "pgpass": lambda p: f"bad line in .pgpass: db:5432:orders:app:{p}",
    "mongo shell": lambda p: f"db.auth('app', {p!r}) failed: 18",
    "SQL": lambda p: f"CREATE USER app WITH PASSWORD '{double(p)}'; syntax error",
    "YAML with doubled quotes": lambda p: f"in config.yml:\n  user: app\n  password: '{double(p)}'\n  port: 5432",
    "SQL with identified by": lambda p: f"CREATE USER 'app'@'%' IDENTIFIED BY '{double(p)}';",
    "line of a configuration": lambda p: f"Bad directive: requirepass {json.dumps(p)}",
    "curl --user": lambda p: f"curl --user={shlex.quote('app:' + p)} https://api.example.com failed",
    "curl in a list": lambda p: f"{['curl', '-u', 'app:' + p, 'https://h']!r} failed",
    "mongosh": lambda p: f"mongosh mongodb://db -u app -p {shlex.quote(p)} failed",
    "sqlcmd": lambda p: f"sqlcmd -S db -U sa -P {shlex.quote(p)} -Q 'select 1' failed",
    "parameter store": lambda p: f"aws ssm put-parameter --name /db/password --value {shlex.quote(p)} --type x failed",
    "kubectl": lambda p: f"kubectl create secret generic db --from-literal=password={shlex.quote(p)} -n prod failed",
    "terraform": lambda p: f"terraform apply -var={shlex.quote('db_password=' + p)} failed",
    "helm": lambda p: f"helm install x y --set {shlex.quote('auth.password=' + p)} failed",
    "Kubernetes": lambda p: f"env:\n- name: DB_PASSWORD\n  value: '{double(p)}'\n- name: X\n  value: y",
    "ODBC in braces within others": lambda p: f"Driver={{X}};Uid=app;Pwd={{{p}}};Encrypt=yes",
    "kubectl describe": lambda p: f"    Environment:\n      DB_HOST:      db\n      DB_PASSWORD:  {p}\n      TZ:   UTC",
    "systemd": lambda p: f'[Service]\nEnvironment="DB_PASSWORD={p}" "X=y"\nExecStart=/bin/x',
    "JSON in JSON in JSON": lambda p: json.dumps({"e": json.dumps({"d": json.dumps({"password": p, "n": 1})})}),
    "var_dump": lambda p: f'array(1) {{\n  ["password"]=>\n  string({len(p)}) "{p}"\n}}',
    "Basic": lambda p: json.dumps({"Authorization": f"Basic {b64encode(f'app:{p}'.encode()).decode()}"}),
}

# Places in which no name is assigned to the password: only its form and the words around it give it away.
UNNAMED: dict[str, Callable[[str], str]] = {
    "argument of a login": lambda p: f"smtplib.SMTP.login('app', {p!r}) failed: 535",
    "argument of a setter": lambda p: f"user.set_password({p!r}) raised ValueError",
    "arguments without blanks": lambda p: f"client.login('application.user@example.com',{p!r}) failed",
    "short name": lambda p: f"login(username='app', pw={p!r}) raised ValueError",
    "PHP": lambda p: f"#0 PDO->__construct('mysql:host=db', 'app', '{p}')",
    "Redis": lambda p: f"-ERR invalid command: AUTH default {p}",
    "SQL for MySQL": lambda p: f"SET PASSWORD FOR 'app'@'%' = '{double(p)}'",
    "SQL INSERT": lambda p: f"INSERT INTO users (name, password) VALUES ('app', '{double(p)}')",
    "Terraform": lambda p: f'  ~ password = "old" -> {json.dumps(p)}',
    "traceback with values": lambda p: f"    connect(password={p!r})\n            └ {p!r}",
    "CSV with a header": lambda p: f'user,password,role\napp,"{double(p, chr(34))}",admin',
    "Markdown table": lambda p: f"| user | password |\n|---|---|\n| app | {p} |",
    "Markdown list": lambda p: f"- **Password:** `{p}`\n- **User:** app",
    "keytool": lambda p: f"keytool -list -keystore k.jks -storepass {shlex.quote(p)}: failed",
    "snmpget": lambda p: f"snmpget -v3 -u app -A {shlex.quote(p)} h failed",
    "CloudFormation": lambda p: json.dumps([{"ParameterKey": "DbPassword", "ParameterValue": p}]),
    "German": lambda p: f"Passwort: {p}",
    "French": lambda p: f"mot de passe : {p}",
    "Spanish": lambda p: f"contraseña: {p}",
    "German, spoken": lambda p: f"Kennwort {p} falsch",
    "Chinese": lambda p: f"密码：{p}，登录失败",
    "Chinese, spoken": lambda p: f"密码 {p} 错误",
    "Russian, spoken": lambda p: f"пароль {p} неверный",
    "Korean, spoken": lambda p: f"비밀번호 {p} 오류",
    "Japanese, spoken": lambda p: f"パスワード {p} が違います",
    "arguments of a connection": lambda p: f"connect('db', {p!r}) failed",
    "Portuguese": lambda p: f"senha: {p}",
}


def make_passwords() -> list[str]:
    made = random.Random(SEED)
    return ["".join(made.choices(ALPHABET, k=made.randint(12, 32))) for _ in range(PASSWORDS)]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_t39_no_generated_password_survives(carrier: str) -> None:
    whole, parts = [], []
    for password in make_passwords():
        text = CARRIERS[carrier](password)
        masked = sanitise(text)
        encoded = b64encode(f"app:{password}".encode()).decode()
        forms = {
            password,
            encoded,
            json.dumps(password)[1:-1],
            quote(password, safe=""),
            escape(password),
            repr(password)[1:-1],
            double(password),
            double(password, '"'),
        }
        if any(form in masked for form in forms):
            whole.append(password)
        if any(survivors(masked, form) - survivors(CARRIERS[carrier](""), form) for form in forms):
            parts.append((password, masked))
    assert (len(whole), len(parts), parts[:3]) == (0, 0, [])


@pytest.mark.parametrize("carrier", UNNAMED)
def test_t39_99_of_100_generated_passwords_are_masked_without_a_name(carrier: str) -> None:
    """The rest have no sign inside, or look like words."""
    passwords = make_passwords()
    seen = [password for password in passwords if survivors(sanitise(UNNAMED[carrier](password)), password)]
    assert len(seen) <= 0.01 * len(passwords) + 1, seen


# What gives a password away here is its name or its place, whatever it is made of.
PLACES: dict[str, Callable[[str], str]] = {
    "value before its name": lambda p: json.dumps([{"value": p, "name": "DB_PASSWORD"}, {"value": "b", "name": "A"}]),
    "variable with a default": lambda p: f'variable "db_password" {{\n  type = string\n  default = "{p}"\n}}',
    "SQL with a plugin": lambda p: f"CREATE USER 'a'@'%' IDENTIFIED WITH caching_sha2_password BY '{p}'",
    "Dockerfile": lambda p: f"FROM x\nENV DB_PASSWORD {p}\nRUN y",
    "fish": lambda p: f"set -gx DB_PASSWORD {p}",
    "csh": lambda p: f"setenv API_TOKEN {p}",
    "arguments of docker login": lambda p: (
        f"{['docker', 'login', '-u', 'a', '-p', p, 'registry.example.com']!r} failed"
    ),
    "list of headers": lambda p: f"Headers([('host', 'x'), ('x-api-key', {p!r}), ('accept', '*/*')])",
    "list of headers in bytes": lambda p: f"[(b'host', b'x'), (b'x-api-key', {p.encode()!r})]",
    "ODBC in braces": lambda p: f"Driver={{PostgreSQL}};Server=db;Uid=app;Pwd={{{p}}};",
    "Kubernetes secret": lambda p: f"kind: Secret\nmetadata:\n  name: db\ndata:\n  database: {p}\ntype: Opaque",
    "Kubernetes secret, sorted": lambda p: (
        f"apiVersion: v1\ndata:\n  database: {p}\nkind: Secret\nmetadata:\n  name: db"
    ),
    "file of cookies": lambda p: f"bad line in cookies.txt: .example.com\tTRUE\t/\tTRUE\t1799999999\tsession\t{p}",
    "fields without quotes": lambda p: f"auth failed user:app password:{p} ip:10.0.0.1",
}
PLAIN = (
    "hoTGvNvQsBeRjWlz",
    "VCimUjxKLinqVpLY",
    "L3JDzedO1blutZpsE6sNd",
    "correct-horse-battery-staple",
    "purple_planet_garden",
)


@pytest.mark.parametrize("password", PLAIN)
@pytest.mark.parametrize("place", PLACES)
def test_t39_no_password_of_letters_survives_where_its_place_gives_it_away(place: str, password: str) -> None:
    text = PLACES[place](password)
    assert sanitise(text) == text.replace(f"database: {password}", "[redacted]").replace(password, "[redacted]")


def test_t39_values_of_a_kubernetes_secret_in_json_are_masked() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"database": "YXBwbGU="}}
    for text in (json.dumps(secret), json.dumps(secret, sort_keys=True), json.dumps(secret, indent=2)):
        masked = sanitise(text)
        assert "YXBwbGU" not in masked
        assert '"labels"' in masked
        assert sanitise(masked) == masked


def test_t39_values_of_other_manifests_stay_readable() -> None:
    for text in (
        "kind: ConfigMap\ndata:\n  database: orders\n---\nkind: Secret\nmetadata:\n  name: x",
        json.dumps([{"kind": "ConfigMap", "data": {"database": "orders"}}, {"kind": "Secret"}]),
        "kind: SecretStore\nspec:\n  provider: vault",
        "密码错误，请重新输入密码",
        "пароль неверный, повторите попытку",
        "cookies are TRUE or FALSE; the cookie path is /",
    ):
        assert sanitise(text) == text


HARD = (  # a mixed quote and comma, words of letters and a dash, letters that end in a sign, both quotes for a shell
    "(M^Bu#]ga1wOu',\"=mu<wlAd|^JB8",
    "(M^Bu#]ga1wOu\",'=mu<wlAd|^JB8",
    "hPN-TfpBU-SJi",
    "baAhAqRRpUJj*",
    "xZbqKuWdNRpM!",
    "\"&kZ\\n,r@'m_tw(?x7~HqEJ}",
)


@pytest.mark.parametrize("password", HARD)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_t39_no_hard_password_survives(carrier: str, password: str) -> None:
    kept = survivors(sanitise(CARRIERS[carrier](password)), password) - survivors(CARRIERS[carrier](""), password)
    assert kept == set()


def test_t39_text_around_a_password_is_kept() -> None:
    assert sanitise(CARRIERS[".env"]("(kX9m;&'p\"Q<2z")) == CARRIERS[".env"]("[redacted]")
    assert sanitise(UNNAMED["Redis"]("kX9m;&p'Q<2z")) == UNNAMED["Redis"]("[redacted]")
    assert sanitise(UNNAMED["SQL INSERT"]("kX9m;&pQ<2z")) == UNNAMED["SQL INSERT"]("[redacted]")
    assert sanitise(UNNAMED["argument of a login"]("kX9m;&pQ<2z")) == UNNAMED["argument of a login"]("[redacted]")
    assert sanitise(CARRIERS["ADO"]('(kX9m&p"Q2z;x')) == CARRIERS["ADO"]("[redacted]")
    assert sanitise(CARRIERS["raw URL"]("(k/X9@m?p#Q")) == CARRIERS["raw URL"]("[redacted]")
    assert classify(CARRIERS["YAML"]("(kX9m;&'p\"Q<2z")).message == CARRIERS["YAML"]("[redacted]")


def test_t39_300_ordinary_texts_are_unchanged() -> None:
    texts = (
        (Path(__file__).parents[1] / "core" / "redact" / "ordinary_texts.txt").read_text(encoding="utf-8").splitlines()
    )
    assert len(texts) == len(set(texts)) >= 300
    assert [(text, sanitise(text)) for text in texts if sanitise(text) != text] == []
