"""Phrases of a description by which reads and writes are recognised."""

from __future__ import annotations

import re

# Arithmetic, whose verbs change something elsewhere: "Add two numbers".
SAYS_ARITHMETIC = re.compile(
    r"^\W{0,9}(?:(?:rais|round|subtract|multipl|divid)\w{0,4} (?:a|one) number (?:by|from|to) (?:another|an?|the)\b"
    r"|(?:add|sum|round|subtract|multipl|divid|comput|calculat)\w{0,4} (?:up |together )?(?:the )?"
    r"(?:(?:sum|product|difference|quotient) of )?(?:the )?"
    r"(?:(?:two|2|three|a list of|all|any|given|two given) (?:real |whole |floating[- ]point )?numbers"
    r"|(?:two |2 |three |a list of |all |given )?(?:integers|ints|floats|decimals|operands|vectors|matrices)|a and b)\b"
    r"(?! (?:to|from|in|into|on|for|of|with)\b))",
    re.IGNORECASE,
)

# The first words of a description that reads, whatever noun the name begins with: "order: Retrieves an order".
LOOKS_UP = re.compile(
    r"^\W{0,9}(?:retrieves?|fetch(?:es)?|looks? up|search(?:es)?(?: for)?|lists? (?:all|the|every|available|of)"
    r"|returns? an? (?:\w+ ){1,3}by (?:its )?(?:id|handle|key|name|number))\b",
    re.IGNORECASE,
)

# A description that names a search without a verb: "Wikipedia search.", "Weather lookup by city".
NAMES_A_SEARCH = re.compile(
    r"\W{0,9}(?:the |an? )?(?:(?!(?:an?|the|this|your) )[\w-]{1,40}+ ){0,3}(?:search|lookup)(?: engine| api| tool| service)?"
    r"(?= (?:for|of|by|in|on|over|using|across|through|powered)\b|[.,:]|$)",
    re.IGNORECASE,
)

# A file that is returned, not stored: "Exports the rows as CSV", "Downloads an attachment. Returns base64".
HANDED_OVER = re.compile(
    r"(?:download|export|render|scrape)s?\b.{0,200}?"
    r"(?: (?:as|in) (?:an? |the |specified )?(?:\w{1,30} )?(?:base64|embedded resources?|csv|json|e?json format|html|markdown|text)\b"
    r"|\breturns? (?:it |them )?(?:as |the |its |an? )?(?:\w{1,30}[ -])?(?:base64|contents?|bytes|text|data)\b)",
    re.IGNORECASE,
)
STORED = re.compile(
    r" (?:to|into|on|in) (?:an? |the |your )?(?:\w{1,30} )?(?:file|disk|path|folder|directory|location|bucket|drive|storage)\b"
    r"|\b(?:save|store|email|upload)[sd]?\b(?! or)",
    re.IGNORECASE,
)

# Sentences of advice before what a tool does: "Always use the filter. Fetches a page".
PREAMBLE = re.compile(
    r"(?:(?:when (?:using|calling)|only (?:use|omit)|note|important|always|never|warning|deprecated)\b[^.]{0,200}\. ){1,3}",
    re.IGNORECASE,
)

# "Return" in the sense of "give back": "Returns the book to the library".
GIVEN_BACK = re.compile(
    r" (?:an? |the |some |your |all )?(?:\w+ ){0,3}(?:delivered|purchased|bought|borrowed|rented|loaned|defective|damaged|unwanted)\b"
    r"| (?:back )?to (?:the |a |an |its |your )?(?:store|warehouse|library|seller|vendor|merchant|supplier|shop|sender|stock|inventory"
    r"|queue|pool|base|owner|retailer)\b",
    re.IGNORECASE,
)

# Objects that a request creates: "Gets an access token" makes one.
A_NEW_ONE = re.compile(r"^\w+ (?:an? (?:\w+ ){0,2}(?:otp|token|passcode|nonce)|a new \w+|a fresh \w+)\b", re.IGNORECASE)

# A read that shows something to a person.
SHOWN_TO = re.compile(
    r"\b(?:message|notification|alert|text)\b[^.]{0,30} (?:to the user|on (?:the|a) (?:\w+ )?screen)\b", re.IGNORECASE
)

# Explicit statements in a description.
SAYS_READ = re.compile(
    r"\bread[- ]only\b"
    r"|\bno side effects?\b"
    r"|\bwithout side effects\b"
    r"|^\W{0,9}(?:runs?|executes?|performs?) (?:an? |any )?(?:\w+ )?select (?:sql )?(?:query|queries|statements?)\b"
    r"(?!.{0,600}\b(?:insert|update|delete|create|drop|write)\b)",
    re.IGNORECASE,
)
SAYS_WRITE = re.compile(
    r"\bdata modification\b"
    r"|\bthis (?:tool|action|operation|function) (?:modifies|changes|deletes|creates|updates|writes)\b"
    r"|\bcannot be undone\b"
    r"|\birreversib"
    r"|\bwrite operations?\b"
    r"|\b(?:reading|read) ?(?:or|and|/) ?(?:writing|write)\b",
    re.IGNORECASE,
)

# The first words of a description that change something, whatever verb of reading the name has: "GetRide: Books a ride".
SAYS_CHANGE = re.compile(
    r"^\W{0,9}(?:this (?:tool|function|method|endpoint) )?(?:will )?"
    r"(?:(?:add|update|delete|remove|replace|rename|move|set|assign|revoke|approve|enroll|insert|reserve|book|modify|archive|edit)s?"
    r"|cancels?|publish(?:es)?|overwrites?) (?:an?|the|all|your|this|one|some|new|existing|multiple)\b",
    re.IGNORECASE,
)

# Side effects that a description admits. A name that reads is then not trusted.
CONFESSIONS = re.compile(
    r"(?<!which )(?<!that )\b(?:is|are|will be|gets?) (?:then |also |automatically )*marked (?:as|read|seen)\b"
    r"|\band (?:then |also |automatically )?marks? (?:it|them|the|all|each)\b"
    r"|\band (?:then |also |automatically )?(?:saves?|stores?|writes?) (?:it|them|the \w+) (?:to|in|on|into)\b"
    r"|\band (?:then |also |automatically )?(?:deletes?|removes?|updates?|consumes?) (?:it|them|the)\b"
    r"|\bor (?:then |also |automatically )?(?:creates?|inserts?|adds?) (?:it|one|them|a new)\b"
    r"|\bafter (?:creat|delet|updat|remov|send|insert|sav)ing\b"
    r"|\bto (?:the |a |your )?local (?:disk|folder|directory|file)\b"
    r"|\b(?:creates?|creating|inserts?) (?:it|one|them|a new (?:one|\w+)) (?:if|when)\b"
    r"|\bif (?:it|they|none|one|no \w+|\w+ \w+) (?:do(?:es)? not|do(?:es)?n't) (?:yet |already )?exist[^.]{0,80}\bcreated?\b"
    r"|\bside effects?: ?(?!none)",
    re.IGNORECASE,
)
