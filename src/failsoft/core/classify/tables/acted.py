"""Words that say that something was done, although the error is about something else.

``ACTED`` finds "payment captured, but the receipt was refused" and "403 after the order was placed" in text that is
spelled in lower case; ``UNDONE`` takes back what is denied ("no payment was captured").
"""

from __future__ import annotations

import re

_THING = (
    r"(?:payments?|charges?|cards?|orders?|transfers?|transactions?|funds|money|amounts?|messages?|e-?mails?|sms|mails?"
    r"|bookings?|reservations?|tickets?|invoices?|refunds?|subscriptions?|accounts?|users?|records?|rows?|entr(?:y|ies)"
    r"|items?|events?|issues?|files?|documents?|objects?|jobs?|tasks?|writes?|changes?|posts?|comments?"
    r"|deployments?|instances?|resources?|customers?|shipments?|withdrawals?|deposits?|uploads?|it"
    r"|debits?|credits?|installments?|steps?|parts?|batch(?:es)?|chunks?|tweets?|recipients?|seats?|rooms?|flights?)"
)
_PAST = (
    "captured charged debited created sent submitted committed transferred booked placed paid posted saved stored written "
    "inserted updated deleted removed published delivered issued refunded processed accepted queued uploaded deployed "
    "applied recorded succeeded completed confirmed shipped withdrawn deposited executed initiated scheduled reserved wired "
    "credited purchased bought spent tweeted emailed cleared transmitted"
).split()
_PRESENT = (
    "capturing charging debiting creating sending submitting committing transferring booking placing paying posting saving "
    "writing inserting updating deleting publishing delivering issuing refunding processing uploading deploying applying "
    "shipping executing confirming polling"
).split()
_DONE = f"(?:{'|'.join(_PAST)}|went through|done|kept|ok)"
_DOING = f"(?:{'|'.join(_PRESENT)})"
# A text without any of these words is not searched
HINTS = frozenset(
    (
        *_PAST,
        *_PRESENT,
        "through",
        "partial",
        "partially",
        "done",
        "kept",
        "ok",
        "of",
        "first",
        "1st",
        "original",
        "previous",
        "earlier",
    )
)
_CONTRAST = r"(?:(?:but|however|although|though|yet|then|except|while|whereas|and|afterwards)\b|[;.:,–—-] ?(?=\w))"
_BE = r"(?:(?:was|were|is|are|has|have|had|got|been|already|successfully|fully|partially|not|never|no|the) ){0,4}"

_BEFORE = r"(?:first|1st|original|previous|earlier) (?:error|attempt|request|try|call|post|response)"
_LOST = r"\b(?:reset|timed out|time-?out|closed|lost|aborted|broken pipe)\b"

ACTED = re.compile(
    rf"(?:\b\w{{1,12}} )?\b(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|(?:successfully|partially) {_DONE}\b|{_DONE} (?:(?:the|your|an?|this) [\w#-]{{1,24}}|{_THING})\b)[^\n]{{0,80}}?{_CONTRAST}"
    rf"|\b(?:after|although|though|despite|but|yet|however,?) (?:successfully )?(?:the |your |a |an |having )?"
    rf"(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b|{_DONE} |{_DOING}\b)"
    rf"|[;,.:] (?:and )?(?:the |your |an? )?(?:first )?{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|\bpartial(?:ly)? (?:succe|complet|appl|failure)"
    rf"|(?:^|[.;\n] ?)(?:{'|'.join(_PAST)})\b(?: [^\n.;:,]{{1,40}})?(?:[;.,] ?|: (?=\w{{1,24}} ))(?=[\w(])"  # "charged $50; …"
    rf"|\b[1-9]\d{{0,6}} ?(?:of|/) ?[1-9]\d{{0,6}} {_THING}\b"
    rf"|\b(?:[1-9]\d{{0,6}}|some|several) (?:{_THING} )?(?:was |were |have been )?(?:{'|'.join(_PAST)})\b"
    rf"|\bwhile polling\b|\balready (?:paid|charged|sent|booked|captured)\b"
    rf"|\b(?:201 created|202 accepted)\b|\b{_BEFORE}\b[^\n]{{0,40}}(?:\b20[0-4]\b|{_LOST})"
)
UNDONE = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|without|cannot|could not|can't|won't|n't|unable|failed to|fails to|to be"
    r"|must|should|would|will|may|if|unless|until|before|invalid|duplicate|too many|0)\b"
)
