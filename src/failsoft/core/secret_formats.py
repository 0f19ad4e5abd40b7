r"""What secrets look like: the table that ``core.redact`` masks by.

Rules
-----
- ``TOKENS`` are secrets that say themselves what they are: a prefix that their maker gave them, then a random body.
- ``SHAPES`` are recognised by their form or by what stands around them; what is harmless in that stays readable.
- A format's markers are lower case, and one of them is in every text (lowered) that its pattern matches: a text
  without the marker costs one substring search.
- Every pattern takes linear time on any text: no nested repeats, and a repeat that something must follow is bounded.
- A body has a least length and no greatest: a secret that was cut short is masked as far as it goes.

Why by value: masking by key name alone lets a bare ``sk-proj-…`` in a sentence through.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

REDACTED = "[redacted]"


class Format(NamedTuple):
    """One kind of secret: where one of ``markers`` is in the lowered text, ``pattern`` becomes ``left``."""

    name: str
    markers: tuple[str, ...]
    pattern: str
    left: str = REDACTED

    def mask(self, text: str) -> str:
        return compiled(self.pattern).sub(self.left, text)


@cache  # when first needed: compiling the whole table takes longer than importing the rest of the core
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


# Where a token may begin: not inside a word, but right after an escape that was written out (\n, %3D, \x1b[31m).
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbfv])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))"
# A token that was wrapped goes on where the next line holds nothing else.
_WRAPPED = r"(?:\\?\n[ \t]*(?=[\w+/.-]{0,80}\d)[\w+/=.-]{8,}(?=[ \t]*(?:\n|[\"'`]|\Z)))*"

ANY = r"[\w-]{10,}"  # after a prefix that nothing else has
MIX = r"(?:(?=[A-Za-z]{0,11}\d)[A-Za-z0-9]{12,}|[A-Za-z0-9]{20,})[\w-]*"  # after one that names and words have too
HEX = r"[0-9a-f]{24,}(?![g-zG-Z])"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,}"

TOKENS = (
    # whose, prefixes, body
    ("OpenAI, DeepSeek and kin", "sk-", r"(?!learn)(?=[\w-]{0,40}\d)[\w-]{10,}"),
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
    ("RubyGems, crates.io, Docker", "rubygems_ cio dckr_pat_ dckr_oat_", r"(?=[A-Za-z_-]{0,24}\d)[\w-]{20,}"),
    ("Stripe, Clerk", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", r"[\w+/=]{10,}"),
    ("ElevenLabs", "sk_", HEX),
    ("Shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", ANY),
    ("Square, Facebook", "sq0atp- sq0csp- sq0idp- EAA", r"(?=[A-Za-z_-]{0,40}\d)[\w-]{18,}"),
    ("Razorpay, Flutterwave, Shippo, EasyPost", "rzp_live_ rzp_test_ FLWSECK shippo_live_ shippo_test_ EZAK EZTK", ANY),
    ("SendGrid", "SG.", r"[\w.-]{20,}"),
    ("Mailgun", "key- pubkey-", HEX),
    ("Brevo, Resend, Postmark", "xkeysib- xsmtpsib- re_", MIX),
    ("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", ANY),
    ("Heroku, Netlify, Neon, Render", "HRKU- nfp_ napi_ rnd_", MIX),
    ("Fly", "fo1_ fm1r_ fm1a_ fm2_", r"[\w+/=,-]{16,}"),
    ("Supabase, PlanetScale", "sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.-]{10,}"),
    ("Vault", "hvs. hvb. hvr.", r"[\w-]{16,}"),
    ("Doppler", "dp.st. dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", r"[\w.-]{10,}"),
    ("Databricks", "dapi", HEX + r"(?:-\d)?"),
    ("1Password, Age", "ops_eyJ AGE-SECRET-KEY-1", ANY),
    ("Pulumi, Prefect, Infracost", "pul- pnu_ pnb_ ico-", MIX),
    ("Grafana", "glsa_ glc_ eyJrIjoi", r"[\w=]{16,}"),
    ("Sentry", "sntrys_ sntryu_ sntrya_", r"[\w+/=-]{16,}"),
    ("New Relic, Dynatrace, PostHog", "NRAK- NRII- NRJS- NRRA- dt0c01. dt0s01. phx_ phc_", r"[\w.-]{10,}"),
    ("SonarQube, Snyk, Sourcegraph", "sqp_ squ_ sqa_ snyk_ sgp_", MIX),
    ("Buildkite, CircleCI, JFrog", "bkua_ CCIPAT_ CCIPRJ_ AKCp cmVmdGtu", MIX),
    ("Linear, Notion", "lin_api_ lin_oauth_ secret_ ntn_", MIX),
    ("Postman, Figma, Contentful, Typeform", "PMAK- figd_ figo_ CFPAT- tfp_", ANY),
    ("Atlassian", "ATATT3 ATCTT3 ATBB", r"[\w=+/-]{16,}"),
    ("HubSpot, Plaid, LaunchDarkly", "pat-na1- pat-eu1- access-sandbox- access-production- sdk- api- mob-", UUID),
    ("Mapbox", "sk.eyJ", r"[\w.-]{16,}"),
    ("Dropbox", "sl.", r"(?=[\w-]{0,80}\d)[\w-]{60,}"),
    ("Alibaba, Tencent", "LTAI AKID", r"(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{12,}"),
    ("Adafruit, ReadMe, Frame.io, Duffel", "aio_ rdme_ fio-u- duffel_live_ duffel_test_", MIX),
    ("Twilio", "AC SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
)

SHAPES = (
    # what, markers, pattern, what is left
    Format(
        "private key (PEM, OpenSSH, PGP)",
        ("private key",),
        r"-{4,5} ?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
        r"(?:(?!-{4,5} ?END)[\s\S])*(?:-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5})?",
    ),
    Format(
        "private key (PuTTY)", ("private-lines:",), r"(Private-Lines:)(?:(?!Private-MAC)[\s\S])*", rf"\1 {REDACTED} "
    ),
    Format("private key (base64 of a PEM)", ("ls0tls1crudj",), r"LS0tLS1CRUdJ[\w+/=]{8,}"),
    Format("JWT", ("eyj",), _START + r"eyJ[\w-]{8,600}\.[\w-]{6,}(?:\.[\w-]*){0,3}" + _WRAPPED),
    Format(
        "AWS access key, and the secret beside it",
        ("akia", "asia", "abia", "acca"),
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}(?:[\s:,;|/\"'=]{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?",
    ),
    Format(
        "AWS secret key, bare: 40 characters of three kinds",
        ("",),
        r"(?<![\w/+=.-])(?=[a-zA-Z/+]{0,39}\d)(?=[a-z\d/+]{0,39}[A-Z])(?=[A-Z\d/+]{0,39}[a-z])[A-Za-z0-9][A-Za-z0-9/+]{39}(?![\w/+=.-])",
    ),
    Format("Azure storage key", ("==",), r"(?<![\w+/])[A-Za-z0-9+/]{86}=="),
    Format("Azure client secret", ("8q~",), r"[\w.~-]{3}8Q~[\w.~-]{24,}"),
    Format("Slack webhook", ("hooks.slack.com",), r"(hooks\.slack\.com/[a-z]{1,20}/)[\w/-]+", rf"\1{REDACTED}"),
    Format(
        "Discord webhook", ("/webhooks/",), r"(discord(?:app)?\.com/api/(?:v\d+/)?webhooks/)[\w/-]+", rf"\1{REDACTED}"
    ),
    Format("Teams webhook", ("webhook.office.com",), r"(webhook\.office\.com/)[\w@/-]+", rf"\1{REDACTED}"),
    Format("Telegram bot", (":",), r"(?<!\d)\d{6,12}(?::|%3[Aa])(?=[A-Za-z_-]{0,34}\d)[\w-]{30,}"),
    Format("Discord bot", (".",), _START + r"[MNO][\w-]{22,27}\.[\w-]{5,7}\.[\w-]{20,}"),
    Format("Terraform Cloud", (".atlasv1.",), r"[A-Za-z0-9]{1,14}\.atlasv1\.[\w-]{8,}"),
    Format("Airtable", ("pat",), _START + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{16,}"),
    Format("Asana", ("/",), r"(?<![\d/])\d/\d{12,20}:[0-9a-f]{16,}"),
    Format("Mailchimp", ("-us",), r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    Format("Vault, old", ("s.",), r"(?<![\w.])s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    Format("Cloudflare origin", ("v1.0-",), r"v1\.0-[0-9a-f]{16,}[\w-]*"),
    Format("Fly", ("flyv1",), r"(FlyV1 )[\w+/=,-]{10,}", rf"\1{REDACTED}"),
    Format("password hash", ("$",), r"\$(?:2[abxy]?|[156y]|argon2id?)\$[\w./$=,+-]{20,}"),
    # URLs and connection strings
    Format(
        "password in a URL",
        ("://",),
        r"(://[^\s/?#:@\"'<>\[\]]{0,128}:)(?!\d{1,5}(?:[/?#\s,;)\]}\"'<>]|$))"
        r"(?:[^\s?#\"'<>]{1,256}(?=@[\w\[])|[^\s/?#\"'<>]{1,256}(?=@)|[^\s/?#@\"'<>]{1,256}\Z)",
        rf"\1{REDACTED}",
    ),
    Format(
        "key as user in a URL",
        ("://",),
        r"(://)(?=[A-Za-z_-]{0,60}\d)[\w-]{20,200}(?=@|:[^\s/@]{0,64}@)",
        rf"\1{REDACTED}",
    ),
    Format(
        "password in an encoded URL",
        ("%3a%2f%2f",),
        r"((?i:%3A%2F%2F)[\w.~-]{0,128}%3[Aa])(?:[\w.~!*+-]|%(?!40)[0-9A-Fa-f]{2}){1,256}(?=%40)",
        rf"\1{REDACTED}",
    ),
    Format(
        "MySQL address",
        ("@tcp(", "@unix("),
        r"(?<![\w.-])([\w.-]{1,64}:)[^\s@\"']{1,128}(?=@(?:tcp|unix)\()",
        rf"\1{REDACTED}",
    ),
    Format(
        "Oracle address", ("jdbc:oracle",), r"(jdbc:oracle:\w{1,10}:[^/\s]{1,64}/)[^@\s]{1,128}(?=@)", rf"\1{REDACTED}"
    ),
    # command lines and files
    Format(
        "curl -u", ("-u", "--user"), r"((?<!\S)(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:)[^\s\"']+", rf"\1{REDACTED}"
    ),
    Format(
        "option on a command line",
        ("--",),
        r"(?i)(--[a-z-]{0,20}(?:password|passwd|passphrase|secret|token|api-?key|access-?key|private-?key)[= ]"
        r"[\"']?)(?!-|\[redacted\])[^\s\"']+",
        rf"\1{REDACTED}",
    ),
    Format(
        "netrc", ("login",), r"(?i)(login\s{1,8}\S{1,64}\s{1,8}password\s{1,8})(?!\[redacted\])\S+", rf"\1{REDACTED}"
    ),
    Format(
        "SQL",
        ("identified",),
        r"(?i)(identified\s{1,8}(?:\w{1,10}\s{1,8}){0,2}by\s{1,8}['\"])[^'\"\n]+",
        rf"\1{REDACTED}",
    ),
    Format(
        "XML element",
        ("<",),
        r"(?i)(<(?:\w{1,20}:)?\w{0,20}(?:password|passwd|secret|token|api_?key)>\s{0,20})(?!\[redacted\])[^<\s][^<]*",
        rf"\1{REDACTED}",
    ),
    Format(
        "spoken of",
        ("passw", "passphrase", "token", "secret", "key"),
        r"(?i)(\b(?:password|passphrase|token|secret|api[ _-]?key)\s{1,3}(?:is\s|was\s)?[\"'`]?)"
        r"(?=[a-z_.~+/-]{0,40}\d)(?=[\d_.~+/-]{0,40}[a-z])[\w.~+/=-]{12,}",
        rf"\1{REDACTED}",
    ),
    Format(
        "spoken of in quotes",
        ("passw", "passphrase"),
        r"(?i)(\b(?:password|passphrase)\s{1,3}(?:is\s|was\s)?([\"'`]))[^\"'`\s]{3,128}(?=\2)",
        rf"\1{REDACTED}",
    ),
    # headers
    Format(
        "Bearer",
        ("bearer",),
        r"\b((?i:Bearer)(?:\s{1,4}|%20|\+))(?:(?=[A-Za-z._~+/-]{0,200}\d)[\w.~+/=%-]{6,}"
        r"|(?=[a-z._~+/-]{0,80}[A-Z])(?=[A-Z._~+/-]{0,80}[a-z])[\w.~+/=%-]{20,})" + _WRAPPED,
        rf"\1{REDACTED}",
    ),
    Format(
        "Basic",
        ("basic",),
        r"\b((?i:Basic)(?:\s{1,4}|%20|\+))(?=[A-Za-z+/]{0,80}(?:\d|=|[a-z][A-Z]))[A-Za-z0-9+/%]{8,}={0,2}",
        rf"\1{REDACTED}",
    ),
    Format(
        "Authorization",
        ("authorization",),
        r"(?i)(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}b?\\*[\"']?"
        r"(?:Bearer|Basic|Token|ApiKey|Negotiate|NTLM|[a-z][\w-]{1,20}(?=\s{1,4}[^\s\d]{0,40}\d))\s{1,4})"
        r"(?!\[redacted\])[^\s\"',;\\]+",
        rf"\1{REDACTED}",
    ),
    Format(
        "Authorization with parameters",
        ("authorization",),
        r"(?i)(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}b?\\*[\"']?(?:Digest|AWS4-HMAC-SHA256|OAuth|Signature|Hawk)\s{1,4})"
        r"(?!\[redacted\])[^\n]+",
        rf"\1{REDACTED}",
    ),
    Format(
        "Cookie",
        ("cookie",),
        r"(?i)((?<!\w)(?:set-)?cookie\\*[\"']?\s{0,4}[:=]\s{0,4}b?\\*[\"']?)(?=[^\s=;,\"'\[]{1,80}=)[^\n\"'\\]+",
        rf"\1{REDACTED}",
    ),
)


def _token(name: str, prefixes: str, body: str) -> Format:
    starts = prefixes.split()
    pattern = f"{_START}(?:{'|'.join(map(re.escape, starts))}){body}{_WRAPPED}"
    return Format(name, tuple(start.lower() for start in starts), pattern)


FORMATS = SHAPES + tuple(_token(*row) for row in TOKENS)
