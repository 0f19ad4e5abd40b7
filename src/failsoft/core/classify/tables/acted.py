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
    r"|deployments?|instances?|resources?|customers?|shipments?|withdrawals?|deposits?|uploads?|it)"
)
_PAST = (
    "captured charged debited created sent submitted committed transferred booked placed paid posted saved stored written "
    "inserted updated deleted removed published delivered issued refunded processed accepted queued uploaded deployed "
    "applied recorded succeeded completed confirmed shipped withdrawn deposited executed"
).split()
_PRESENT = (
    "capturing charging debiting creating sending submitting committing transferring booking placing paying posting saving "
    "writing inserting updating deleting publishing delivering issuing refunding processing uploading deploying applying "
    "shipping executing confirming"
).split()
_DONE = f"(?:{'|'.join(_PAST)}|went through)"
_DOING = f"(?:{'|'.join(_PRESENT)})"
# A text without any of these words is not searched
HINTS = frozenset((*_PAST, *_PRESENT, "through", "partial", "partially"))
_CONTRAST = r"(?:(?:but|however|although|though|yet|then|except|while|whereas|and|afterwards)\b|[;.:,–—-] ?(?=\w))"
_BE = r"(?:(?:was|were|is|are|has|have|had|got|been|already|successfully|fully|partially|not|never|no|the) ){0,4}"

ACTED = re.compile(
    rf"(?:\b\w{{1,12}} )?\b(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|(?:successfully|partially) {_DONE}\b|{_DONE} (?:(?:the|your|an?|this) [\w#-]{{1,24}}|{_THING})\b)[^\n]{{0,80}}?{_CONTRAST}"
    rf"|\b(?:after|although|though|despite|but|yet|however,?) (?:successfully )?(?:the |your |a |an |having )?"
    rf"(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b|{_DONE} |{_DOING}\b)"
    rf"|[;,.:] (?:and )?(?:the |your |an? )?{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|\bpartial(?:ly)? (?:succe|complet|appl|failure)"
)
UNDONE = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|without|cannot|could not|can't|won't|n't|unable|failed to|fails to|to be"
    r"|must|should|would|will|may|if|unless|until|before|invalid|duplicate|too many|0)\b"
)
