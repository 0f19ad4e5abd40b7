"""Secrets of every format that failsoft knows, made up on the spot: none of them is real, none stands in the source.

``PLANTED`` maps a format's name to ``Planted(text, secret)``: the text as it would be met, and the part of it that
must not survive. ``survivors(text, secret)`` are the runs of eight characters that did.
"""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple
from urllib.parse import quote

RUN = 8
_RANDOM = random.Random(20251105)
_MIXED = string.ascii_letters + string.digits
_SMALL = string.ascii_lowercase + string.digits


class Planted(NamedTuple):
    text: str
    secret: str


def survivors(text: str, secret: str) -> set[str]:
    return {secret[i : i + RUN] for i in range(len(secret) - RUN + 1) if secret[i : i + RUN] in text}


def mixed(length: int, alphabet: str = _MIXED) -> str:
    body = "".join(_RANDOM.choices(alphabet, k=length))
    return body if any(c.isdigit() for c in body) or not set(alphabet) & set(string.digits) else "7" + body[1:]


def hexa(length: int) -> str:
    return mixed(length, "0123456789abcdef")


def url_safe(length: int) -> str:
    return mixed(length - 1, _MIXED + "-_") + "x"  # ends in a letter: what follows the secret is not part of it


def base64ish(length: int) -> str:
    return mixed(length, _MIXED + "+/")


def uuid() -> str:
    return "-".join(hexa(n) for n in (8, 4, 4, 4, 12))


def jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"Jane Doe","iat":1516239022}')
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), url_safe(43)])


def pem(kind: str) -> str:
    body = "\n".join(base64ish(64) for _ in range(6))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


def _prefixed() -> dict[str, Planted]:
    tokens = {
        "OpenAI (legacy)": ("sk-", mixed(48)),
        "OpenAI project": ("sk-" + "proj-", url_safe(120)),
        "OpenAI service account": ("sk-" + "svcacct-", url_safe(80)),
        "Anthropic": ("sk-" + "ant-api03-", url_safe(95)),
        "OpenRouter": ("sk-" + "or-v1-", hexa(64)),
        "DeepSeek": ("sk-", hexa(32)),
        "Groq": ("gs" + "k_", mixed(52)),
        "Replicate": ("r" + "8_", mixed(37)),
        "xAI": ("xa" + "i-", mixed(80)),
        "Perplexity": ("pp" + "lx-", mixed(48)),
        "Tavily": ("tv" + "ly-", mixed(32)),
        "Hugging Face": ("h" + "f_", mixed(34, string.ascii_letters)),
        "NVIDIA": ("nv" + "api-", url_safe(64)),
        "LangSmith": ("lsv2_" + "pt_", hexa(32) + "_" + hexa(10)),
        "GitHub personal": ("gh" + "p_", mixed(36)),
        "GitHub OAuth": ("gh" + "o_", mixed(36)),
        "GitHub server": ("gh" + "s_", mixed(36)),
        "GitHub user": ("gh" + "u_", mixed(36)),
        "GitHub fine-grained": ("github_" + "pat_", mixed(22) + "_" + mixed(59)),
        "GitLab": ("gl" + "pat-", url_safe(20)),
        "AWS access key id": ("AK" + "IA", mixed(16, string.ascii_uppercase + "234567")),
        "AWS temporary key id": ("AS" + "IA", mixed(16, string.ascii_uppercase + "234567")),
        "Slack bot": ("xo" + "xb-", f"{mixed(12, string.digits)}-{mixed(12, string.digits)}-{mixed(24)}"),
        "Slack user": ("xo" + "xp-", f"{mixed(12, string.digits)}-{mixed(12, string.digits)}-{hexa(32)}"),
        "Slack app": ("xa" + "pp-", f"1-A{mixed(10)}-{mixed(13, string.digits)}-{hexa(64)}"),
        "Google API key": ("AI" + "za", url_safe(35)),
        "Google OAuth": ("ya" + "29.", "a0" + url_safe(100)),
        "Google client secret": ("GOC" + "SPX-", url_safe(28)),
        "npm": ("np" + "m_", mixed(36)),
        "PyPI": ("py" + "pi-", "AgEIcH" + url_safe(150)),
        "Docker": ("dckr_" + "pat_", url_safe(27)),
        "SendGrid": ("S" + "G.", url_safe(22) + "." + url_safe(43)),
        "Mailgun": ("ke" + "y-", hexa(32)),
        "Stripe secret": ("sk_" + "live_", mixed(24)),
        "Stripe restricted": ("rk_" + "live_", mixed(24)),
        "Stripe webhook": ("wh" + "sec_", mixed(32)),
        "Shopify": ("shp" + "at_", hexa(32)),
        "Square": ("sq0" + "atp-", url_safe(22)),
        "Facebook": ("EA" + "A", "CEdEose0cBA" + mixed(100)),
        "Twilio key": ("S" + "K", hexa(32)),
        "Twilio account": ("A" + "C", hexa(32)),
        "DigitalOcean": ("dop_" + "v1_", hexa(64)),
        "Heroku": ("HR" + "KU-", "AA" + mixed(58)),
        "Fly": ("fo" + "1_", url_safe(43)),
        "Supabase": ("sb" + "p_", hexa(40)),
        "PlanetScale": ("pscale_" + "tkn_", url_safe(43)),
        "Vault": ("hv" + "s.", url_safe(90)),
        "Databricks": ("da" + "pi", hexa(32)),
        "Databricks OAuth": ("do" + "se", hexa(32)),
        "Snyk": ("snyk_" + "uat.", hexa(8) + "." + url_safe(80)),
        "Honeycomb": ("hc" + "aik_", "01" + mixed(56, _SMALL)),
        "Inngest": ("sign" + "key-prod-", hexa(64)),
        "Composio": ("a" + "k_", "aB3" + mixed(17)),
        "Trigger.dev": ("tr_" + "prod_", "aB3" + mixed(17)),
        "Modal": ("a" + "s-", "aB3" + mixed(19)),
        "Warp": ("wk" + "-1.", hexa(64)),
        "AWS session": ("IQoJb3Jp" + "Z2luX2Vj", base64ish(300)),
        "PayPal": ("A2" + "1AA", url_safe(90)),
        "Confluent": ("cf" + "lt", "7" + base64ish(59)),
        "Infisical": ("s" + "t.", f"{hexa(24)}.{hexa(32)}.{hexa(32)}"),
        "Grafana Cloud": ("gl" + "c_", base64ish(100)),
        "Age, post-quantum": ("AGE-SECRET-" + "KEY-PQ-1", mixed(58, string.ascii_uppercase + string.digits)),
        "New Relic license": ("", hexa(36) + "FFFF" + "NRAL"),
        "Azure DevOps": ("", mixed(76) + "AZ" + "DO" + mixed(4)),
        "Mailgun (new)": ("", f"{hexa(32)}-{hexa(8)}-{hexa(8)}"),
        "JWE": ("eyJ", f"hbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..{url_safe(16)}.{url_safe(120)}.{url_safe(22)}"),
        "Asana": ("", f"2/{mixed(16, '123456789')}/{mixed(16, '123456789')}:{hexa(32)}"),
        "Doppler": ("dp." + "st.", "dev." + mixed(43)),
        "Age": ("AGE-SECRET-" + "KEY-1", mixed(58, string.ascii_uppercase + string.digits)),
        "Grafana": ("gl" + "sa_", mixed(32) + "_" + hexa(8)),
        "Sentry": ("sn" + "trys_", "eyJ" + mixed(120) + "_" + mixed(43)),
        "New Relic": ("NR" + "AK-", mixed(27, string.ascii_uppercase + string.digits)),
        "Linear": ("lin_" + "api_", mixed(40)),
        "Notion (old)": ("sec" + "ret_", mixed(43)),
        "Notion": ("nt" + "n_", mixed(46)),
        "Postman": ("PM" + "AK-", hexa(24) + "-" + hexa(34)),
        "Bedrock": ("AB" + "SK", base64ish(120)),
        "GitLab runner": ("GR" + "1348941", url_safe(20)),
        "Brave Search": ("BS" + "A", "7" + url_safe(27)),
        "Gemini": ("AQ" + ".Ab8", "RN6" + url_safe(44)),
        "Figma": ("fi" + "gd_", url_safe(40)),
        "Atlassian": ("ATA" + "TT3", url_safe(180)),
        "HubSpot": ("pat-" + "na1-", uuid()),
        "Telegram bot": (f"{mixed(9, '123456789')}:" + "AA", url_safe(33)),
        "Discord bot": ("M", url_safe(23) + "." + url_safe(6) + "." + url_safe(27)),
        "Terraform Cloud": ("", mixed(14) + ".at" + "lasv1." + url_safe(67)),
        "Airtable": ("pa" + "t", mixed(14) + "." + hexa(64)),
        "Mailchimp": ("", hexa(32) + "-us" + "21"),
        "AWS secret key": ("", "wJ7" + base64ish(36) + "Q"),
        "Azure storage key": ("", base64ish(86) + "=="),
        "Azure client secret": ("abc" + "8Q~", url_safe(34)),
        "JWT": ("", jwt()),
        "Braintree": ("access_token" + "$production$", f"{mixed(16, _SMALL)}${hexa(32)}"),
        "OpenAI session": ("se" + "ss-", mixed(40)),
        "Anthropic OAuth": ("sk-" + "ant-oat01-", url_safe(90)),
        "Tailscale": ("ts" + "key-auth-", f"{mixed(12)}-{mixed(32)}"),
        "Apify": ("apify_" + "api_", mixed(36)),
        "Browserbase": ("bb_" + "live_", "aB3" + url_safe(27)),
        "Cal": ("cal_" + "live_", hexa(32)),
        "Mongo service account": ("mdb_sa_" + "sk_", "aB3" + mixed(40)),
        "Vercel": ("vc" + "p_", "aB3" + mixed(53)),
        "Logfire": ("pylf_" + "v1_us_", "aB3" + mixed(40)),
        "Firecrawl": ("f" + "c-", hexa(32)),
        "MailerSend": ("ml" + "sn.", hexa(64)),
        "Amazon MWS": ("amzn." + "mws.", uuid()),
        "Amazon login": ("At" + "za|", "7" + url_safe(60)),
        "NuGet": ("oy" + "2", "7" + mixed(42, _SMALL)),
        "Trello": ("AT" + "TA", hexa(60)),
        "Resend": ("r" + "e_", f"7{mixed(7)}_{mixed(24)}"),
        "ClickUp": ("pk" + "_", f"{mixed(8, '123456789')}_{mixed(32, string.ascii_uppercase + string.digits)}"),
        "Fernet": ("gA" + "AAAA", "7" + url_safe(100)),
        "a vendor that nobody has heard of": ("acme" + "_", "aB3" + mixed(37)),
    }
    return {name: Planted(prefix + body, body) for name, (prefix, body) in tokens.items()}


TOKENS = _prefixed()  # secrets that are one word, whatever stands around them


def _around(name: str, form: str, secret: str) -> tuple[str, Planted]:
    return name, Planted(form.replace("SECRET", secret), secret)


OTHERS = dict(
    [
        _around("Bearer header", "Authorization: Bearer SECRET", mixed(30)),
        _around("Basic header", "Authorization: Basic SECRET", base64.b64encode(b"jane:hunter2-is-long").decode()),
        _around("Digest header", 'Authorization: Digest username="jane", response="SECRET"', hexa(32)),
        _around("header of no known scheme", "authorization: Acme SECRET", mixed(20)),
        _around("Bearer in a sentence", "the server said no to Bearer SECRET", mixed(20)),
        _around("API key header", "x-api-key: SECRET", mixed(32)),
        _around("Datadog header", "DD-API-KEY: SECRET", hexa(32)),
        _around("Azure subscription", "Ocp-Apim-Subscription-Key: SECRET", hexa(32)),
        _around("Cookie", "Cookie: theme=dark; sessionid=SECRET; lang=en", mixed(32)),
        _around("Set-Cookie", "Set-Cookie: sid=SECRET; Path=/; HttpOnly", mixed(32)),
        _around("URL password", "https://jane:SECRET@example.com/x", "hunter2hunter3"),
        _around("URL password with marks", "https://jane:SECRET@example.com/x", "p@ss:w0rd/77"),
        _around("Postgres address", "postgresql+asyncpg://app:SECRET@db.internal:5432/shop?sslmode=require", mixed(16)),
        _around("Mongo address", "mongodb+srv://app:SECRET@cluster0.example.net/shop", mixed(16)),
        _around("Redis address", "redis://:SECRET@cache:6379/0", mixed(16)),
        _around("AMQP address", "amqp://guest:SECRET@queue:5672/%2F", mixed(16)),
        _around("MySQL address", "app:SECRET@tcp(db:3306)/shop", mixed(16)),
        _around("Oracle address", "jdbc:oracle:thin:scott/SECRET@db:1521/shop", mixed(16)),
        _around("libpq address", "host=db user=app password=SECRET dbname=shop", mixed(16)),
        _around("ODBC address", "Driver={SQL};Server=db;Uid=app;Pwd=SECRET;", mixed(16)),
        _around("encoded URL", "next=https%3A%2F%2Fjane%3ASECRET%40example.com%2Fx", mixed(16)),
        _around("key as user of a URL", "https://SECRET@git.example.com/x.git", hexa(40)),
        _around("query api_key", "https://example.com/v1?api_key=SECRET&page=2", mixed(32)),
        _around("query token", "https://example.com/v1?page=2&token=SECRET", mixed(32)),
        _around(
            "query sig", "https://x.blob.example.net/c?sv=2024-11-04&se=2025&sig=SECRET", "a%2Bb" + mixed(40) + "%3D"
        ),
        _around(
            "query X-Amz-Signature", "https://b.s3.example.com/k?X-Amz-Expires=60&X-Amz-Signature=SECRET", hexa(64)
        ),
        _around("query key", "https://maps.example.com/api?address=x&key=SECRET", "short-one"),
        _around("assigned api_key", "api_key='SECRET'", mixed(20)),
        _around("assigned password", "password=SECRET", "swordfish"),
        _around("assigned client_secret", "client_secret=SECRET", mixed(24)),
        _around("assigned with blanks", "DB_PASSWORD = SECRET", mixed(24)),
        _around("assigned encoded", "redirect=x%3Fclient_secret%3DSECRET", mixed(24)),
        _around("in a hash of Ruby", ":password => 'SECRET'", "correct horse battery"),
        _around("JSON password", '{"user": "jane", "password": "SECRET", "retries": 3}', "correct horse battery"),
        _around("JSON with an escaped quote", '{"password": "SECRET", "x": 1}', 'abcdefgh\\"ijklmnopq'),
        _around("JSON in JSON", '{"body": "{\\"password\\": \\"SECRET\\", \\"x\\": 1}"}', "swordfish-and-more"),
        _around("JSON token", '{"token": "SECRET"}', "plainletters"),
        _around("YAML password", "user: jane\npassword: SECRET\nretries: 3", "swordfish"),
        _around("camel case", "dbPassword: 'SECRET', accessToken: x", "swordfish"),
        _around("AWS secret assigned", "aws_secret_access_key = SECRET", base64ish(40)),
        _around(
            "Azure account key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SECRET;", base64ish(86) + "=="
        ),
        _around("Azure service bus", "SharedAccessKeyName=Root;SharedAccessKey=SECRET", base64ish(43) + "="),
        _around("Heroku API key", "HEROKU_API_KEY=SECRET", uuid()),
        _around("Cohere API key", "CO_API_KEY: SECRET", mixed(40)),
        _around("Cloudflare API key", "X-Auth-Key: SECRET", hexa(37)),
        _around("Twilio with its secret", f"SK{hexa(32)} auth_token=SECRET", hexa(32)),
        _around("kubeconfig", "client-key-data: SECRET", base64.b64encode(pem("RSA PRIVATE KEY").encode()).decode()),
        _around("private key", "SECRET", pem("PRIVATE KEY")),
        _around("RSA private key", "SECRET", pem("RSA PRIVATE KEY")),
        _around("OpenSSH private key", "key SECRET rejected", pem("OPENSSH PRIVATE KEY")),
        _around("PGP private key", "SECRET", pem("PGP PRIVATE KEY BLOCK")),
        _around("Slack webhook", "https://hooks.slack.com/services/SECRET", f"T{mixed(10)}/B{mixed(10)}/{mixed(24)}"),
        _around(
            "Discord webhook", "https://discord.com/api/webhooks/SECRET", f"{mixed(18, '123456789')}/{url_safe(68)}"
        ),
        _around(
            "Telegram in a URL", "https://api.telegram.org/botSECRET/getMe", f"{mixed(9, '123456789')}:AA{url_safe(33)}"
        ),
        _around("curl -u", "curl -u jane:SECRET https://example.com", "swordfish"),
        _around("command line", "deploy --token SECRET --force", mixed(12)),
        _around("netrc", "machine example.com login jane password SECRET", "swordfish"),
        _around("SQL", "ALTER USER jane IDENTIFIED BY 'SECRET'", "swordfish"),
        _around("XML", "<login><password>SECRET</password></login>", "swordfish"),
        _around("spoken of", "the API key SECRET is not valid", mixed(16)),
        _around("spoken of with a colon", "Incorrect API key provided: SECRET. See your account.", mixed(16)),
        _around("password hash", "shadow has SECRET", "$2b$12$" + mixed(53)),
        _around("Fly macaroon", "FlyV1 SECRET", "fm2_" + base64ish(80)),
        # the same characters, written out
        _around("query in JSON", '{"url": "https://h/x?a=1\\u0026key=SECRET\\u0026b=2"}', mixed(20)),
        _around("query in JSON, all of it", "a\\u0026api_key\\u003dSECRET\\u0026b", mixed(20)),
        _around("query in HTML", "https://h/x?a=1&amp;key=SECRET&amp;b=2", mixed(20)),
        _around("query encoded twice", "next=%252Fx%253Fa%253D1%2526key%253DSECRET%2526b", mixed(20)),
        _around("JSON in HTML", "{&quot;password&quot;:&quot;SECRET&quot;}", "swordfish"),
        _around("JSON with encoded quotes", "%7B%22password%22%3A%20%22SECRET%22%7D", "swordfish"),
        _around("JSON of a script", "{\\u0022token\\u0022:\\u0022SECRET\\u0022}", mixed(20)),
        _around("token behind a written-out quote", "\\x22SECRET\\x22", "gh" + "p_" + mixed(36)),
        _around("URL in PHP's JSON", "https:\\/\\/jane:SECRET@example.com\\/x", mixed(14)),
        _around("form in an escaped log", 'form-data; name=\\"password\\"\\r\\n\\r\\nSECRET\\r\\n--x', "swordfish"),
        _around("private key in JSON", '{"private_key": "SECRET"}', pem("PRIVATE KEY").replace("\n", "\\n")),
        _around("private key, encoded", "key=SECRET", quote(pem("RSA PRIVATE KEY"))),
        # names and values side by side
        _around("pair", "('api_key', 'SECRET')", mixed(20)),
        _around("pair in JSON", '[["password","SECRET"],["user","jane"]]', "hunter2-x"),
        _around("pair of bytes", "[(b'x-api-key', b'SECRET'), (b'host', b'h')]", mixed(32)),
        _around("Bearer of bytes", "(b'authorization', b'Bearer SECRET')", mixed(40)),
        _around("scheme of its own, in a pair", "('Authorization', 'SSWS SECRET')", "00" + url_safe(40)),
        _around("Cookie in a pair", "[('cookie', 'sid=SECRET; a=b')]", mixed(32)),
        _around("lists of values", "{'api_key': ['SECRET'], 'page': ['2']}", mixed(20)),
        _around("name and value", '{"name": "DB_PASSWORD", "value": "SECRET"}', "swordfish"),
        _around(
            "name, type and value", '{"Name": "/db/password", "Type": "SecureString", "Value": "SECRET"}', "swordfish"
        ),
        _around("name and value in YAML", "- name: API_TOKEN\n  value: SECRET", mixed(20)),
        _around("name and value in XML", '<add key="Password" value="SECRET"/>', "swordfish"),
        _around("property list", "<key>password</key>\n<string>SECRET</string>", "swordfish"),
        _around("SOAP", '<wsse:Password Type="PasswordText">SECRET</wsse:Password>', "swordfish"),
        _around("form", 'Content-Disposition: form-data; name="password"\r\n\r\nSECRET\r\n--x', "swordfish"),
        _around("table", "| api_key | SECRET |", mixed(20)),
        _around("Markdown", "**password**: SECRET", mixed(20)),
        _around(
            "pydantic",
            "api_key\n  Input should be x [type=int_parsing, input_value='SECRET', input_type=str]",
            mixed(20),
        ),
        _around("FastAPI", '{"loc":["body","password"],"msg":"too short","input":"SECRET","ctx":{}}', "swordfish"),
        _around("client's auth", "auth=('jane', 'SECRET')", "swordfish"),
        _around("BasicAuth", "HTTPBasicAuth('jane', 'SECRET')", "swordfish"),
        # YAML
        _around("YAML below", "db:\n  password:\n    SECRET\n  port: 5432", "swordfish"),
        _around("YAML block", "password: |\n  SECRET\nport: 5432", "swordfish"),
        _around("YAML block of lines", "tls_private_key: >-\n  SECRET\nport: 5432", f"{mixed(20)}\n  {mixed(20)}"),
        _around("YAML list", "password:\n  - SECRET\n", "swordfish"),
        # command lines
        _around("mysql -p", "mysqldump -h db -u root -pSECRET shop", "swordfish"),
        _around("mysql --password", "mysql --password SECRET -u root", "swordfish"),
        _around("mysql in a list", "['mysql', '-u', 'root', '-pSECRET']", "swordfish"),
        _around("sshpass", "sshpass -p 'SECRET' ssh root@h", "swordfish"),
        _around("redis-cli", "redis-cli -h cache -a SECRET ping", "swordfish"),
        _around("docker login", "docker login -u jane -p SECRET registry", "swordfish"),
        _around("curl in a list", "['curl', '-u', 'jane:SECRET', 'https://h']", "swordfish"),
        _around("option in a list", "Command '['deploy', '--auth-token', 'SECRET']' returned 1", "swordfish"),
        _around("option of two words", "deploy --private_key SECRET --force", "swordfish"),
        _around("PGPASSWORD", "PGPASSWORD=SECRET psql -h db", "swordfish"),
        _around("SMTP", "AUTH PLAIN SECRET", base64.b64encode(b"\0jane\0hunter2-is-long").decode()),
        # files and others
        _around("Docker's config", '{"auths": {"h": {"auth": "SECRET"}}}', base64.b64encode(b"jane:hunter2").decode()),
        _around("npmrc", "//registry.example.com/:_authToken=SECRET", uuid()),
        _around("ODBC in braces", "Driver={SQL};Server=db;PWD={SECRET}", "aB3" + mixed(13)),
        _around("seed phrase", '"seed_phrase": "SECRET"', "abandon ability able about above absent"),
        _around("secret string", '{"SecretString": "SECRET"}', mixed(24)),
        _around("Rails", "secret_key_base: SECRET", hexa(128)),
        _around("Airflow", "AIRFLOW__CORE__FERNET_KEY=SECRET", "aB3" + url_safe(40) + "="),
        _around("RapidAPI", "x-rapidapi-key: SECRET", hexa(50)),
        _around("session in a path", "https://example.com/x;jsessionid=SECRET?a=1", mixed(32)),
        _around(
            "default of an argument", "def connect(password: str | None = 'SECRET')".replace(" | ", "|"), "swordfish"
        ),
        _around("redis.conf", "requirepass SECRET", "swordfish"),
        _around("JWK", '{"kty": "RSA", "n": "x", "d": "SECRET"}', url_safe(342)),
        _around("user and password before a host", "connecting to jane:SECRET@db.example.com:5432", mixed(14)),
        _around("key, spoken of with a colon", "your api key is: SECRET", mixed(32)),
        _around("query pw", "https://example.com/x?pw=SECRET", "swordfish"),
        _around("password twice", "pass_word=SECRET&password_confirmation=SECRET", "swordfish"),
        _around("user_pass", "user_pass: SECRET", mixed(20)),
        _around("hash of Django", "SECRET", "pbkdf2_sha256$260000$" + mixed(22) + "$" + base64ish(43) + "="),
        _around("Zapier webhook", "https://hooks.zapier.com/hooks/SECRET", f"catch/{mixed(7, '123456789')}/{mixed(9)}"),
    ]
)

PLANTED = {**TOKENS, **OTHERS}
