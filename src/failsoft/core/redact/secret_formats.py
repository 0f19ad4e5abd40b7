r"""Secret formats: the table of patterns that ``core.redact.sanitise`` masks.

Rules
-----
- ``TOKENS`` have a prefix or another mark of their issuer; the rest is random. They have at least ``SHORT`` characters.
- ``WORDS`` are recognised by their form alone: at least ``LONG`` characters that contain a ``RUN``. ``BLOCKS`` are a
  ``BLOCK`` of base64 of at least that length.
- ``SHAPES`` are recognised by the text around them. Harmless parts of that text stay readable.
- Every match of a format's pattern contains one of its markers, and one of its ``also`` texts. Markers are few and
  shared between formats, because a text without secrets costs one search per marker.
- Every pattern runs in linear time: no nested repeats, and a repeat that something must follow is bounded.
- A body has a minimum length and no maximum, so that a truncated secret is masked too.

Masking by key name alone would miss a bare ``sk-proj-…`` in a sentence.
"""

from __future__ import annotations

import re
from functools import cache

from failsoft.core.startup.lazy_pattern import lazy_pattern
from failsoft.core.startup.named_tuple import NamedTuple

REDACTED = "[redacted]"
ANYWHERE = ("",)  # a marker that every text contains
SHORT = 13
LONG = 26
RUN = r"[^\w-]*+(?:[\w-]{1,15}+[^\w-]++)*+[\w-]{16}"  # anchored at the start: skips whole runs, not single letters
BLOCK = r"[A-Za-z0-9/+]{40}"


class Format(NamedTuple):
    """One kind of secret: the match of ``pattern`` after its first group. That group is harmless and stays readable."""

    name: str
    markers: tuple[str, ...]
    pattern: str
    also: tuple[str, ...] = ANYWHERE

    def is_possible(self, text: str) -> bool:
        """True if a text with one of the markers also has one of the ``also`` texts."""
        for needed in self.also:  # noqa: SIM110 - a generator costs more than the tests
            if needed in text:
                return True
        return False

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of such secrets in the text."""
        pattern = compiled(self.pattern)
        kept = 1 if pattern.groups else 0
        return [(found.end(1) if kept else found.start(), found.end()) for found in pattern.finditer(text)]


class Marks(NamedTuple):
    """The markers of a table, each with the indexes of its formats."""

    forms: tuple[Format, ...]
    places: list[tuple[str, list[int]]]

    def places_in(self, text: str) -> set[int]:
        return {place for marker, places in self.places if marker in text for place in places}

    def find(self, text: str) -> list[Format]:
        """Return the formats that have a marker in the text, in the order of the table."""
        return pick(self.forms, self.places_in(text), text)


def pick(forms: tuple[Format, ...], places: set[int], text: str) -> list[Format]:
    """Return those of the formats that may occur in the text, in the order of the table."""
    return [forms[place] for place in sorted(places) if forms[place].is_possible(text)] if places else []


def by_marker(forms: tuple[Format, ...]) -> Marks:
    """Index a table by marker. One loop over all markers is five times as fast as one per format."""
    places: dict[str, list[int]] = {}
    for place, form in enumerate(forms):
        for marker in form.markers:
            places.setdefault(marker, []).append(place)
    return Marks(forms, list(places.items()))


class Hinted(NamedTuple):
    """The markers of a table, grouped. A text without a group's hint has none of its markers."""

    signs: Marks  # "://"
    dashes: Marks  # "-" on a command line: see DASH
    words: Marks  # see HINT

    def find(self, text: str, *, hinted: bool) -> list[Format]:
        """Like ``Marks.find``, but a format may occur twice."""
        found = self.signs.find(text)
        if "-" in text and _DASH.search(text):
            found += self.dashes.find(text)
        return found + self.words.find(text) if hinted else found


def by_hint(forms: tuple[Format, ...]) -> Hinted:
    kinds = Hinted(Marks(forms, []), Marks(forms, []), Marks(forms, []))
    for marker, places in by_marker(forms).places:
        kind = kinds.dashes if marker == "-" else kinds.words if _LETTER.search(marker) else kinds.signs
        kind.places.append((marker, places))
    return kinds


def by_joint(forms: tuple[Format, ...]) -> dict[str, Marks]:
    """Index a table by the joints of its markers (``sk-``, ``ghp_``, ``ya29.``). Markers without a joint are under "".

    Markers without a joint but with two adjacent capitals, which few words have, are under ``CAPITALS``.
    """
    joined = {"": Marks(forms, []), CAPITALS: Marks(forms, [])}
    for marker, places in by_marker(forms).places:
        joint = _JOINT.search(marker)
        key = joint[1] if joint else CAPITALS if _CAPITALS.search(marker) else ""
        joined.setdefault(key, Marks(forms, [])).places.append((marker, places))
    return joined


def find_joined(joined: dict[str, Marks], text: str) -> list[Format]:
    """Like ``Marks.find``, but tries only the joints in the text: a tenth of the time for two hundred markers."""
    plain = joined[""]
    found = plain.places_in(text)
    if _CAPITALS.search(text):
        found |= joined[CAPITALS].places_in(text)
    for joint in set(_JOINT.findall(text)):
        if joint in joined:
            found |= joined[joint].places_in(text)
    return pick(plain.forms, found, text)


@cache  # compiled on first use: the whole table takes longer than importing the rest of the core
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


# For every word that marks a shape, and every name of a secret: a rare letter in it and its neighbours. One search
# suffices for a text that has none of them. Some are names only in a query.
HINT = r"""(?x)
    p(?: ass | w | in | sk | hrase | do\b | (?<=otp) | (?<=snmp) ) | c(?: red | ret | oo | ure(?=string) | ontrase | onnect(?:ion)?\( | (?<=nic) ) | h(?<=senh) | k(?: ey | en(?!s(?!tring)) | ty )
    | b(?: earer | asic | ind | bit(?<=rabbit) ) | v(?: ate | 1(?<=flyv1) ) | u(?: th | ser:(?<=/user:) ) | g(?<= sig | log ) | jwt | d(?: (?<=[sn_-]id) | entif )
    | wachtw | парол | 密[码碼] | 口令 | パスワ | 비밀번
"""
QUERY_HINT = r"c(?:ode|ess|(?<=mac))|pid"
DASH = r"-(?:u(?<![\w-]-u)|-[a-z\d]|[pabw](?<=[\s\"']-.))"  # the possible start of an option, in the lowered text
CAPITALS = "AA"
_DASH = lazy_pattern(DASH, re.ASCII)
_LETTER = lazy_pattern("[a-z]")
_CAPITALS = lazy_pattern("[A-Z][A-Z]")
_JOINT = lazy_pattern(r"[-_.](?<=([A-Za-z0-9]{2}.))")  # starts with its last character, which is fast to search for

_START = r"(?<![A-Za-z0-9])"  # a token does not begin inside a word
# A wrapped token continues if the next line holds nothing else.
_WRAPPED = r"(?:\\?\n[ \t]*(?=[\w+/.-]{0,80}\d)[\w+/=.-]{8,}(?=[ \t]*(?:\n|[\"'`]|\Z)))*"

ANY = r"[\w-]{10,}"  # after a prefix that only tokens have
SPREAD = (  # adjacent capitals, small letters and digits, which no name has
    r"(?=(?:[a-z\d_-]{0,16}[A-Z]){3})(?=[A-Za-z_-]{0,40}\d)(?=(?:[A-Z\d_-]{0,16}[a-z]){3})[\w-]{24,}"
)
MIX = (  # after a prefix that names and words may have too
    rf"(?:(?:(?=[A-Za-z]{{0,11}}\d)[A-Za-z0-9]{{12,}}|[A-Za-z0-9]{{20,}})[\w-]*|{SPREAD})"
)
HEX = r"[0-9a-f]{24,}(?![g-zG-Z])"
THREE = (  # capitals, small letters and digits
    r"(?=[A-Za-z]{0,15}\d)(?=[a-z\d]{0,15}[A-Z])(?=[A-Z\d]{0,15}[a-z])[A-Za-z0-9]{10}[\w-]{10,}"
)
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,}"

_PREFIXED = (
    # issuer, prefixes, body
    ("OpenAI, DeepSeek and kin", "sk-", r"(?!learn|ssh-|ecdsa-)(?:(?=[\w-]{0,40}\d)[\w-]{10,}|[A-Za-z0-9]{40,})"),
    ("OpenAI, Anthropic, OpenRouter, Langfuse", "sk-proj- sk-svcacct- sk-admin- sk-ant- sk-or-v1- sk-lf- pk-lf-", ANY),
    ("Groq, Cerebras, Replicate, xAI, Hugging Face", "gsk_ csk- r8_ xai- hf_ api_org_", MIX),
    ("Perplexity, Tavily, NVIDIA, LangSmith", "pplx- tvly- nvapi- lsv2_pt_ lsv2_sk_", ANY),
    ("Fireworks, Voyage, Jina, E2B, Together, Pinecone", "fw_ pa- jina_ e2b_ tgp_v1_ pcsk_", MIX),
    ("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", ANY),
    ("GitLab", "glpat- gldt- glrt- glptt- glft- glimt- glagent- glsoat- gloas- glcbt- glffct-", r"[\w.-]{10,}"),
    ("Slack", "xoxa- xoxb- xoxe- xoxe.xox xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp- xwfp-", r"[\w.%-]{10,}"),
    ("Google API key", "AIza", r"[\w-]{20,}"),
    ("Google OAuth", "ya29. GOCSPX- 1//0", r"[\w.-]{16,}"),
    ("npm", "npm_", MIX),
    ("PyPI", "pypi-", r"(?=[\w-]{0,40}[A-Z\d])[\w-]{16,}"),
    ("RubyGems, crates.io", "rubygems_ cio", r"(?=[A-Za-z_-]{0,24}\d)[\w-]{20,}"),
    ("Docker, Square, Heroku", "dckr_pat_ dckr_oat_ sq0atp- sq0csp- sq0idp- HRKU-", ANY),
    ("Stripe, Clerk", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", r"[\w+/=]{10,}"),
    ("ElevenLabs", "sk_", HEX),
    ("Shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", ANY),
    ("Square, Facebook", "EAA", r"(?=[A-Za-z_-]{0,40}\d)[\w-]{18,}"),
    ("Razorpay, Flutterwave, Shippo, EasyPost", "rzp_live_ rzp_test_ FLWSECK shippo_live_ shippo_test_ EZAK EZTK", ANY),
    ("SendGrid", "SG.", r"[\w.-]{20,}"),
    ("Mailgun", "key- pubkey-", HEX),
    ("Brevo, Resend, Postmark", "xkeysib- xsmtpsib- re_", MIX),
    ("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", ANY),
    ("Netlify, Neon, Render", "nfp_ napi_ rnd_", MIX),
    ("Fly", "fo1_ fm1r_ fm1a_ fm2_", r"[\w+/=,-]{16,}"),
    ("Supabase, PlanetScale", "sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.-]{10,}"),
    ("Vault", "hvs. hvb. hvr.", r"[\w-]{16,}"),
    ("Doppler", "dp.st. dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", r"[\w.-]{10,}"),
    ("Databricks", "dapi dose dkea", HEX + r"(?:-\d)?"),
    ("1Password, Age", "ops_eyJ AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", ANY),
    ("Pulumi, Prefect, Infracost", "pul- pnu_ pnb_ ico-", MIX),
    ("Grafana", "glsa_ glc_ eyJrIjoi", r"[\w+/=]{16,}"),
    ("Sentry", "sntrys_ sntryu_ sntrya_", r"[\w+/=-]{16,}"),
    ("New Relic, Dynatrace, PostHog", "NRAK- NRII- NRJS- NRRA- dt0c01. dt0s01. phx_ phc_", r"[\w.-]{10,}"),
    ("SonarQube, Snyk, Sourcegraph", "sqp_ squ_ sqa_ snyk_ sgp_", MIX),
    ("Snyk", "snyk_uat. snyk_sat.", r"[\w.-]{16,}"),
    (
        "Honeycomb, Inngest, Rootly",
        "hcaik_ hcamk_ hcxik_ hcxmk_ hcalk_ signkey-prod- signkey-test- rootly_",
        r"(?=[a-z]{0,24}\d)[a-z0-9]{24,}",
    ),
    ("Composio, Trigger.dev, Val Town, Modal", "ak_ as- tr_prod_ tr_dev_ tr_stg_ vtwn_", rf"(?:{THREE}|{SPREAD})"),
    ("Warp", "wk-1.", HEX),
    ("AWS session token", "IQoJb3JpZ2luX2Vj FwoGZXIvYXdz", r"[\w+/=%-]{24,}"),
    ("Adyen", "AQE", r"(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{40,}-[\w+/=-]{16,}"),
    ("PayPal", "A21AA", r"[\w-]{40,}"),
    ("Confluent", "cflt", r"(?=[A-Za-z+/]{0,40}\d)[A-Za-z0-9+/]{56,}"),
    ("Infisical", "st.", r"[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{16,}"),
    ("Buildkite, CircleCI, JFrog", "bkua_ CCIPAT_ CCIPRJ_ AKCp cmVmdGtu", MIX),
    ("Linear, Notion", "lin_api_ lin_oauth_ secret_ ntn_", MIX),
    ("Postman, Frame.io, Figma, Contentful, Typeform", "PMAK- fio-u- figd_ figo_ CFPAT- tfp_", ANY),
    ("Atlassian", "ATATT3 ATCTT3 ATBB", r"[\w=+/-]{16,}"),
    (
        "HubSpot, Plaid, LaunchDarkly",
        "pat-na1- pat-eu1- access-sandbox- access-production- sdk- api- mob-",
        UUID,
    ),
    ("Mapbox", "sk.eyJ", r"[\w.-]{16,}"),
    ("Dropbox", "sl. sl.u.", r"(?=[\w-]{0,80}\d)[\w-]{60,}"),
    ("Alibaba, Tencent", "LTAI AKID", r"(?:(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{12,}|[A-Za-z0-9]{28,})"),
    ("Adafruit, ReadMe, Duffel", "aio_ rdme_ duffel_live_ duffel_test_", MIX),
    ("Twilio", "AC SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("Braintree", "access_token$production$ access_token$sandbox$", r"[\w$-]{16,}"),
    ("OpenAI session, Yandex, Baidu", "sess- AQVN t1.9eu y0_ ALTAK-", r"(?=[\w-]{0,40}\d)[\w/.-]{30,}"),
    ("Firecrawl, MailerSend, Trello", "fc- mlsn. ATTA", HEX),
    ("NuGet, Intercom", "oy2 dG9rO", r"(?=[\w+/-]{0,40}\d)[\w+/=-]{30,}"),
    ("Amazon Bedrock", "ABSK bedrock-api-key-", r"(?=[A-Za-z+/]{0,40}\d)[\w+/=-]{24,}"),
    ("GitLab runner", "GR1348941", r"[\w-]{12,}"),
    ("Brave Search, Gemini", "BSA AQ.Ab8", r"(?=[A-Za-z_-]{0,24}\d)[\w-]{20,}"),
    ("Vercel, Weights & Biases, LlamaCloud, Mem0", "vcp_ vck_ vci_ vca_ vcr_ vercel_blob_rw_ wandb_v1_ llx- m0-", MIX),
    ("Apify, RunPod, Browserbase, Scrapfly", "apify_api_ apify_proxy_ rpa_ bb_live_ bb_test_ scp-live- scp-test-", MIX),
    ("Paddle, Polar, Cal.com", "pdl_live_apikey_ pdl_sdbx_apikey_ polar_oat_ polar_pat_ cal_live_ cal_test_", MIX),
    ("Amazon MWS", "amzn.mws.", UUID),
    ("Fernet, PASETO, Zoho", "gAAAAA v2.local. v4.local. v4.public. 1000.", r"(?=[\w-]{0,40}\d)[\w.=-]{60,}"),
    ("ClickUp, CockroachDB, Resend", "pk_ CCDB1_ re_", r"(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{6,22}_[A-Za-z0-9]{20,}"),
    (
        "any other that says what it is",
        "live_ live- key_ key- token_ token- tok_ secret- pat_ api_ api- auth_ auth- at_ rt_ st_ sk_ pw_ rw_",
        rf"(?:{THREE}|{SPREAD}|{HEX})",
    ),
    ("Mollie, and others for tests", "test_", THREE),
)

_MARKED = (
    Format("private key (base64 of a PEM)", ("LS0tLS1CRUdJ",), r"LS0tLS1CRUdJ[\w+/=]{8,}"),
    Format(
        "JWT",
        ("eyJ",),
        _START + r"eyJ[\w-]{8,400}+\.(?:[\w-]{6,}(?:\.[\w-]*){0,3}|\.[\w-]{12,}(?:\.[\w-]*){0,2})" + _WRAPPED,
    ),
    Format(
        "AWS access key, and the secret beside it",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}(?:[\s:,;|/\"'=]{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?",
    ),
    Format("Slack webhook", ("hooks.slack.com",), r"(hooks\.slack\.com/[a-z]{1,20}/)[\w/-]+"),
    Format("Discord webhook", ("hook",), r"(discord(?:app)?\.com/api/(?:v\d+/)?webhooks/)[\w/-]+", ("/webhooks/",)),
    Format("Zapier or Make webhook", ("hook",), r"(hooks?\.(?:zapier|[\w.]{1,20}\.make|make)\.com/)[\w/-]+"),
    Format("Teams webhook", ("webhook.office.com",), r"(webhook\.office\.com/)[\w@/-]+"),
    Format("Azure client secret", ("8Q~",), r"[\w.~-]{3}8Q~[\w.~-]{24,}"),
    Format("Terraform Cloud", (".atlasv1.",), r"[A-Za-z0-9]{1,14}\.atlasv1\.[\w-]{8,}"),
    Format("New Relic license", ("FFFFNRAL",), _START + r"(?:eu\d\dxx)?[0-9a-f]{28,36}FFFFNRAL"),
    Format("Azure DevOps", ("AZDO",), _START + r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    Format("Cloudflare origin", ("v1.0-",), r"v1\.0-[0-9a-f]{16,}[\w-]*"),
    Format(
        "password hash",
        ("$", "scrypt:", "pbkdf2"),
        r"(?:\$(?:2[abxy]?|[156y]|apr1|argon2id?)|\$?scrypt|\$?pbkdf2[\w:-]{0,12})[$:][\w./$=,+:-]{20,}",
        ("$2", "$1$", "$5$", "$6$", "$y$", "$argon2", "$apr1$", "scrypt$", "scrypt:", "pbkdf2"),
    ),
)

# A value on a command line: a quote ends it only if something else begins there, after the same quote or a blank.
_REST = r"(?:[^\s\"']|[\"'](?![)\]},;:.]{0,4}(?:\s|\Z)|,\s[\"']|(?<='),'|(?<=\"),\"))+"
_KEYS = r"(?:api|access|account|auth|encryption|master|private|secret|session|shared|signing|storage)[ _-]?key"
_NAMES_HAVE = ("pass", "pwd", "secret", "token", "credential", "key")
_NAMES = rf"pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|{_KEYS}"
_CAPITAL_NAMES = r"PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|[A-Z]_KEY|APIKEY"

_NO_BLOCK = r"(?!(?:data|stringData):[ ]?\n)"  # within a block: otherwise each of them would be read to the end
_BALANCED = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}+\}){0,300}+\}){0,250}?"

# Markers of shapes are searched in the lowered text, with all white space as blanks and one more blank in front.
SHAPES = (
    Format(
        "private key (PEM, OpenSSH, PGP)",
        ("private",),
        r"-{4,5} ?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
        r"(?:[^-]|-(?!---))*+(?:-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5})?",
        ("private key",),
    ),
    Format(
        "private key without its first line",
        ("private",),
        r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{8,80}={0,2}\s{1,8}){1,64}+(?=-{4,5} ?END [A-Z0-9 ]{0,30}PRIVATE KEY)",
        ("private key",),
    ),
    Format(
        "private key (PuTTY)",
        ("private",),
        r"(Private-Lines:\s{0,4})(?:[^P\s]|\s++(?!Private-MAC|\Z)|P(?!rivate-MAC))++",
        ("private-lines:",),
    ),
    Format("Fly", ("flyv1",), r"(FlyV1 )[\w+/=,-]{10,}"),
    # URLs and connection strings
    Format(
        "password in a URL",
        ("://",),
        r"(://[^\s/?#:@\"'<>\[\]]{0,128}:)(?!\d{2,5}/(?:[\w.~%@?#\"'-]|\s|$)|\d{2,5}[?#](?!\S{0,200}@)|\d{1,5}(?:\s|$|[,;)\]}\"'<>](?!\S{0,200}@)))"
        r"(?:\S(?:(?!://|\?[a-z_]{2,40}=[\w%]|([\"'])[,:]\s?\2)\S){0,200}(?=@)|[^\s/?#@\"'<>*]{4,200}+\Z)",
    ),
    Format(
        "key as user in a URL",
        ("@",),
        r"(://)(?=[A-Za-z_-]{0,60}\d|[\w-]{0,60}%)(?:[\w-]|%[\dA-Fa-f]{2}){20,200}+(?=@|:[^\s/@]{0,64}@)",
        ("://",),
    ),
    Format(
        "MySQL address",
        ("@",),
        r"(?<![\w.-])([\w.-]{1,64}+:)\S{1,128}(?=@(?:tcp|unix)\()",
        ("@tcp(", "@unix("),
    ),
    Format(
        "user and password before a host",
        ("@",),
        r"((?<![\w/.:-])[\w.-]{1,64}+:)(?=[^\s@\d]{0,40}\d)[^\s@/:\"']{6,64}+(?=@[\w.-]{1,253}[:/])",
    ),
    Format(
        "Oracle address",
        ("@",),
        r"((?:jdbc:oracle:\w{1,10}:|sqlplus\s(?:-\w\s){0,3})[\"']?[^/\s]{1,64}+/)\S{1,128}(?=@)",
        ("jdbc:oracle", "sqlplus"),
    ),
    # command lines, files, speech
    Format(
        "user and password on a command line",
        ("-",),
        r"(-(?<![\w-]-)(?i:u|-user|-proxy-user)(?:[ =]?|[\"'],\s?)[\"']?[^\s:%\"']{1,64}+[:%][\"']?)(?!\d{1,5}(?!\S))"
        + _REST,
        ("-u",),
    ),
    Format(
        "option on a command line",
        ("-",),
        rf"(--(?i:(?:[a-z\d]{{1,16}}[-_]){{0,3}}[a-z\d]{{0,16}}?(?:{_NAMES}|pass)(?:[= ]|[\"'],\s?)[\"']?))"
        r"(?i:(?!--?[a-z][a-z-]*(?:[\s=]|[\"'](?:\s|,|\Z)|\Z)|\[redacted\]|(?:(?-i:[A-Z_]+)|options?|flags?|arguments?|parameters?|and|or|is|are|was|must|cannot|for|to|in|instead|with|when|if|not|has)\W{0,5}(?:\s|\Z)))"
        + _REST,
        _NAMES_HAVE,
    ),
    Format(
        "short option of a program that takes a password",
        ("-", "pass:", "rabbit"),
        r"(?<![\w-])((?:(?:mysql|maria)[\w-]{0,12}|7z\w?)_AMONG-p[\"']?|sshpass_AMONG-p(?:_TO)?"
        r"|(?:redis|valkey)-cli_AMONG(?:-a|--pass)_TO|ldap\w{3,10}_AMONG-w_TO|sqlcmd_AMONG-P_TO"
        r"|(?:mongo\w{0,8}|login)_AMONG-p_TO|openssl_AMONGpass:|(?:un)?zip_AMONG-P_TO|htpasswd_AMONG-\w{0,4}b\w{0,4}\s\S{1,64}\s\S{1,64}\s[\"']?"
        r"|rabbitmqctl_AMONG(?:add_user|change_password|authenticate_user)\s\S{1,64}\s[\"']?)(?!--?[A-Za-z][a-z-]*(?:[\s=\"']|\Z)|\s|,[\"'])(?=[\"']{0,8}[^\s\"']\S\S)_REST".replace(
            "_REST", _REST
        )
        .replace("_AMONG", r"[\"']?,?\s(?:[^\n;|&]{0,200}?[\s\"'])??")
        .replace("_TO", r"(?:[ \t]|[\"'],\s?)[\"']?"),
        (
            *(
                "mysql",
                "mariadb",
                "sshpass",
                "7z",
                "redis-cli",
                "valkey-cli",
                "ldap",
                "sqlcmd",
                "mongo",
                "login -",
                'login", ',
                "login', ",
            ),
            *("openssl", "zip", "htpasswd", "rabbitmqctl"),
        ),
    ),
    Format(
        "password given to a Windows command",
        ("securestring", "/user:"),
        r"(?i)((?:\bnet\suse\s[^\n]{0,200}?/user:\S{1,64}+\s{1,4}|\bConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?(?:-[a-z]++\s{1,4}){0,3}+)[\"']?)"
        r"(?!-[a-z]+\s|\$\w+(?:\s|\Z)|\[redacted\]|/[a-z]{1,12}(?:[:\s]|\Z)|[a-z]{2,12}\s[a-z])" + _REST,
    ),
    Format("line of .pgpass", ("pass",), r"(\.pgpass\W{1,4}[\w.*-]{1,64}+(?::[\w*-]{1,64}+){3}:)\S+", (".pgpass",)),
    Format(
        "input of chpasswd",
        ("passwd",),
        r"([\"'\s][\w.-]{1,64}+:)\S[^\n]{5,128}?(?=\s?\|\s?(?:sudo\s)?chpasswd)",
        ("chpasswd",),
    ),
    Format(
        "user and password of a client",
        ("auth",),
        r"(?i)(auth\s{0,2}[=:]?\s{0,2}\(\s{0,2}b?[\"'][^\"'\n]{1,64}+[\"'],\s{0,2}b?([\"']))(?:(?!\2)[^\n\\]|\\[^\n])+",
        ("auth(", "auth=(", "auth: (", "auth = ("),
    ),
    Format(
        "AUTH of a protocol",
        ("auth",),
        r"(\bAUTH(?: PLAIN| LOGIN)? )(?=[A-Za-z+/]{0,40}\d|[A-Z+/]{0,40}[a-z]++[A-Z])(?=[\d+/]{0,40}[A-Za-z])[\w+/]{12,}=*",
        ("auth ",),
    ),
    Format("password of an LDAP", ("{",), r"(\{S?SHA(?:256|512)?\})[A-Za-z0-9+/]{20,}=*", ("{ss", "{sha")),
    Format(
        "line of a configuration",
        ("requirepass", "auth", "bindpw", "rootpw"),
        r"(?i)(\b(?:requirepass|masterauth|bindpw|rootpw(?: --plaintext)?)[ \t]{1,8}[\"']?)(?=\S{6})" + _REST,
        ("requirepass", "masterauth", "bindpw", "rootpw"),
    ),
    Format("Amazon login", ("|",), r"(\bAtz[ar]\|)(?=[\w-]{0,40}\d)[\w-]{36,}", ("atz",)),
    Format("private part of a JWK", ("kty",), r"([\"'](?:d|k|p|q|dp|dq|qi)[\"']\s?:\s?[\"'])[\w-]{20,}"),
    Format(
        "variable of a Dockerfile or a shell",
        ("pass", "pwd", "secret", "token", "key"),
        rf"((?:\bENV|\bsetenv|\bset -[a-zA-Z]{{1,4}})[ \t]{{1,8}}[A-Z][A-Z\d_]{{0,40}}?(?:{_CAPITAL_NAMES})[ \t]{{1,8}}[\"']?)"
        r"(?=\S{6})(?!\[redacted\]|\$)" + _REST,
        ("env ", "set -", "setenv "),
    ),
    Format(
        "default of a variable",
        _NAMES_HAVE,
        rf"(?i)(\bvariable\s{{1,4}}[\"'][\w-]{{0,40}}?(?:{_NAMES})[\"']\s{{0,4}}\{{[^{{}}]{{0,400}}?\bdefault\s{{0,20}}=\s{{0,4}}\")"
        r"(?!\[redacted\])(?:[^\"\\\n]|\\[^\n])+",
        ("variable ",),
    ),
    Format(
        "value before its name",
        _NAMES_HAVE,
        r"(?i)([\"']value[\"']\s{0,4}:\s{0,4}([\"']))(?!\[redacted\])(?:(?!\2)[^\n\\]|\\[^\n]){1,400}+"
        rf"(?=\2,\s{{0,20}}[\"'](?:name|key)[\"']\s{{0,4}}:\s{{0,4}}[\"'][\w.-]{{0,60}}?(?:{_NAMES})[\"'])",
        ('value"', "value'"),
    ),
    Format("netrc", ("login",), r"(?i)(login\s{1,8}\S{1,64}+\s{1,8}password\s{1,8})(?!\[redacted\])\S+", ("password",)),
    Format(
        "SQL",
        ("identified",),
        r"(?i)((?:user|role|grant)\b[^\n;]{0,80}?\sidentified\s{1,8}(?:[\w'\"]{1,40}\s{1,8}){0,2}by\s{1,8}(['\"]))(?:(?!\2)[^\n]|\2\2)+",
    ),
    Format(
        "XML element",
        ("<",),
        rf"(?i)(<([\w:.-]{{0,32}}?(?:{_NAMES}))(?:\s[^<>]{{0,100}}+)?>\s{{0,20}}+)"
        r"(?!\[redacted\])(?:(?:[^<]|<(?!/\2>)){1,200}+(?=</)|[^<>\s\"'}\]]{6,200}+\Z)",
        _NAMES_HAVE,
    ),
    # headers
    Format(
        "Bearer",
        ("bearer",),
        r"\b((?i:Bearer)(?:\s{1,4}|%20|\+))(?:(?=[A-Za-z._~+/-]{0,200}\d)[\w.~+/=%-]{6,}"
        r"|(?=[a-z._~+/-]{0,80}[A-Z])(?=[A-Z._~+/-]{0,80}[a-z])[\w.~+/=%-]{20,})" + _WRAPPED,
    ),
    Format(
        "Basic",
        ("basic",),
        r"\b((?i:Basic)(?:\s{1,4}|%20|\+))(?=[A-Za-z+/]{0,80}(?:\d|=|[a-z][A-Z]))[A-Za-z0-9+/%]{8,}={0,2}",
    ),
    Format(
        "Authorization",
        ("auth",),
        r"(?i)(authorization\\*[\"']?\s{0,4}[:=,]\s{0,4}b?\\*[\"']?"
        r"(?:Bearer|Basic|Token|ApiKey|Negotiate|NTLM|[a-z][\w-]{1,20}+(?=[ ]{1,4}+[^\s\d]{0,40}\d))[ ]{1,4}+)"
        r"(?!\[redacted\]|[<{.$])[^\s\"',;\\]+",
        ("authorization",),
    ),
    Format(
        "Authorization with parameters",
        ("auth",),
        r"(?i)(authorization\\*[\"']?\s{0,4}[:=,]\s{0,4}b?\\*[\"']?(?:Digest|AWS4-HMAC-SHA256|OAuth|Signature|Hawk)\s{1,4}+)"
        r"(?!\[redacted\]$)[^\n]+",
        ("authorization",),
    ),
    Format(
        "Cookie",
        ("cookie",),
        r"(?i)((?<!\w)(?:set-)?cookie\\*[\"']?\s{0,4}[:=,]\s{0,4}b?\\*[\"']?)(?=[^\s=;,\"'\[]{1,80}=)[^\n\"'\\]+",
    ),
    Format(
        "line of a file of cookies",
        ("cookie",),
        r"([\t ](?:TRUE|FALSE)[\t ]/[^\s]{0,128}[\t ](?:TRUE|FALSE)[\t ]\d{1,12}[\t ][^\s]{1,128}[\t ])\S+",
        ("true", "false"),
    ),
    # manifests
    Format(
        "values of a Kubernetes secret",
        ("secret",),
        r"(?<!\S)(kind:[ ]?Secret\n(?:(?!(?:data|stringData):|---|kind:)[^\n]*\n){0,40}+(?:data|stringData):[ ]?\n[ ]{1,8}+)"
        r"(?!\[redacted\])[^\n]+(?:\n[ ]{1,8}[^\n]+)*+",
        ("kind: secret",),
    ),
    Format(
        "values of a Kubernetes secret before its kind",
        ("secret",),
        rf"((?<!\S)(?:data|stringData):[ ]?\n[ ]{{1,8}}+)(?!\[redacted\]){_NO_BLOCK}[^\n]++(?:\n[ ]{{1,8}}+{_NO_BLOCK}[^\n]++)*+"
        r"(?=\n(?:(?!(?:data|stringData):|---|kind:)[^\n]*\n){0,40}+kind:[ ]?Secret(?:\s|\Z))",
        ("kind: secret",),
    ),
    Format(
        "values of a Kubernetes secret in JSON",
        ("secret",),
        rf"([\"'](?:data|stringData)[\"']\s{{0,2}}:\s{{0,2}}\{{)(?!\[redacted\])[^{{}}]++(?=\}}{_BALANCED}"
        r"[\"']kind[\"']\s{0,2}:\s{0,2}[\"']Secret[\"'])",
        ("kind",),
    ),
    Format(
        "values of a Kubernetes secret in JSON, behind its kind",
        ("secret",),
        r"([\"']kind[\"']\s{0,2}:\s{0,2}[\"']Secret[\"']"
        + _BALANCED
        + r"[\"'](?:data|stringData)[\"']\s{0,2}:\s{0,2}\{)(?!\[redacted\])[^{}]++",
        ("kind",),
    ),
)

BLOCKS = (
    Format(
        "AWS secret key: 40 characters of three kinds",
        ANYWHERE,
        rf"(?={BLOCK})"
        + _START
        + r"(?<![/+._-])(?=[A-Za-z\d]{0,39}[/+]|[A-Za-z]{0,38}\d[A-Za-z]{0,38}\d)(?=[a-zA-Z/+]{0,39}\d)"
        r"(?=[a-z\d/+]{0,39}[A-Z])(?=[A-Z\d/+]{0,39}[a-z])[A-Za-z0-9][A-Za-z0-9/+]{39}(?![\w/+=]|[.-]\w)",
    ),
    Format(
        "lines of base64, as in a private key without its first and last line",
        ANYWHERE,
        r"(?<![A-Za-z0-9+/=])(?=[a-z\d+/]{0,60}[A-Z])(?=[A-Z\d+/]{0,60}[a-z])(?=[A-Za-z+/]{0,60}\d)"
        r"[A-Za-z0-9+/]{56,80}(?:\s{1,16}[A-Za-z0-9+/]{56,80}(?![A-Za-z0-9+/]))++"
        r"(?:\s{1,16}[A-Za-z0-9+/]{1,80}={1,2}|\s{1,16}[A-Za-z0-9+/]{24,80}(?![A-Za-z0-9+/]))?",
    ),
    Format("Azure storage key", ("==",), _START + r"[A-Za-z0-9+/]{86}=="),
)

WORDS = (
    Format(
        "32 characters of three kinds, behind a prefix",
        ("-", "_"),
        r"([_-](?<=[A-Za-z\d]{2}.)(?<!\d\d.))(?=[A-Za-z]{0,31}\d)(?=[a-z\d]{0,31}[A-Z])(?=[A-Z\d]{0,31}[a-z])[A-Za-z0-9]{32,}(?<![=+/])[\w-]*",
    ),
    Format("Telegram bot", (":",), r"\d(?<!\d.)\d{5,11}:(?=[A-Za-z_-]{0,34}\d)[\w-]{30,}"),
    Format("Discord bot", (".",), rf"[MNO](?<={_START}.)" + r"[\w-]{22,27}\.[\w-]{5,7}\.[\w-]{20,}"),
    Format("Airtable", ("pat",), rf"pat(?<={_START}pat)" + r"[A-Za-z0-9]{14}\.[0-9a-f]{16,}"),
    Format(
        "Asana",
        tuple(f"{digit}/" for digit in range(10)),
        r"\d(?<!\d.)(?:/\d{12,20})?(?:(?<=\d{12})|(?<!/.))/\d{12,20}:[0-9a-f]{16,}",
    ),
    Format("Mailchimp", tuple(f"-us{digit}" for digit in range(10)), _START + r"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    Format("Mailgun", ("-",), r"[0-9a-f]{32}(?<![0-9a-f]{33})-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])"),
    Format("Vault, old", ("s.",), r"s(?<![\w.].)\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
)


def _token(name: str, prefixes: str, body: str) -> Format:
    starts = tuple(prefixes.split())
    # letters first, then a lookbehind for what precedes them: this is fast to search for
    begun = [f"{start}(?<={_START}{start})" for start in map(re.escape, starts)]
    return Format(name, starts, f"(?:{'|'.join(begun)}){body}{_WRAPPED}")


TOKENS = (*_MARKED, *(_token(*row) for row in _PREFIXED))
