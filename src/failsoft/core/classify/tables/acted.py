"""Words that say that something was done before the error.

``ACTED`` finds "payment captured, but the receipt was refused" and "403 after the order was placed" in text that is
lower case. ``UNDONE`` finds denials ("no payment was captured"). ``ELSEWHERE`` does both in other languages, for the
simplest form, "done, but". The patterns are compiled on first use, because that takes as long as ``import asyncio``.
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
    "credited purchased bought spent tweeted emailed cleared transmitted approved settled started added launched merged "
    "activated registered minted mailed dispatched pushed persisted enqueued provisioned"
).split()
# Codes and statuses of a body that report a success ("status": "succeeded"). "deleted" may describe a thing instead.
DONE_STATES = frozenset(_PAST) - {"deleted", "removed", "cleared", "spent", "started", "activated", "registered"} | {
    *("success", "successful", "complete", "done", "fulfilled"),
}
_ENDED = frozenset(
    "deleted removed cleared created saved stored added started launched activated registered reserved".split()
)
_PRESENT = (
    "capturing charging debiting creating sending submitting committing transferring booking placing paying posting saving "
    "writing inserting updating deleting publishing delivering issuing refunding processing uploading deploying applying "
    "shipping executing confirming polling"
).split()
_DONE_AS_WELL = "done kept ok successful finished renewed opened broadcast held".split()
_DONE = f"(?:{'|'.join((*_PAST, *_DONE_AS_WELL))}|went through|on its way)"
_DOING = f"(?:{'|'.join(_PRESENT)})"
# A text without any of these words is not searched
HINTS = frozenset(
    (
        *_PAST,
        *_PRESENT,
        *_DONE_AS_WELL,
        "way",
        "wrote",
        "through",
        "partial",
        "partially",
        "taken",
        "moved",
        "collected",
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
_THIS = r"(?:this|that|it)(?: error| failure)?(?:[.,;:)\n]|\Z)"
_REFUSAL = (
    r"[^\n;,.]{0,80}\b(?:maximum|limits?|limited|quota|failed|denied|refused|rejected|exceeded|request|requests)\b"
)
_LOST = r"\b(?:reset|timed out|time-?out|closed|lost|aborted|broken pipe)\b"

# The same operation was done or received before: perhaps by this call, whose client has sent it twice
_SAME = "|".join(word for word in (*_PAST, "done") if word not in _ENDED)
_ALREADY = rf"\balready (?:been )?(?:{_SAME})\b"
_TWICE = r"(?:transactions?|payments?|charges?|orders?|transfers?|refunds?|submissions?|bookings?)\b"
ALREADY_CODE = (
    rf"already[_-]?(?:been[_-]?)?(?:{_SAME})|idempoten[\w-]{{0,24}}in[_-]?(?:use|progress)|^duplicate[_-]?{_TWICE}"
)

ACTED = (
    rf"(?:\b\w{{1,12}} )?\b(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|(?:successfully|partially) {_DONE}\b|{_DONE} (?:(?:the|your|an?|this) [\w#-]{{1,24}}|{_THING})\b)[^\n]{{0,80}}?{_CONTRAST}"
    rf"|\b(?:after|although|though|despite|but|yet|however,?) (?:successfully )?(?:the |your |a |an |having )?"
    rf"(?:{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b|{_DONE} |{_DOING}\b)"
    rf"|[;,.:(–—-] ?(?:and )?(?:the |your |an? )?(?:first )?{_THING} (?:[\w#-]{{1,24}} ){{0,2}}{_BE}{_DONE}\b"
    rf"|\bpartial(?:ly)? (?:succe|complet|appl|failure)"
    rf"|\b(?:wrote|sent|saved|stored|copied|uploaded|inserted|updated) [1-9]\d{{0,6}} ?(?:of|/) ?[1-9]"
    rf"|(?:^|[.;\n] ?)(?:{'|'.join(_PAST)})\b(?: [^\n.;:,]{{1,40}})?(?:[;.,!] ?| ?[–—] ?|: (?=\w{{1,24}} ))(?=[\w(])"  # "charged $50; …"
    rf"|\b[1-9]\d{{0,6}} ?(?:of|/) ?[1-9]\d{{0,6}} (?:{_THING}|done|{'|'.join(_PAST)})\b"
    rf"|\b(?:payments?|money|funds|amounts?|deposits?|fees?) {_BE}(?:taken|moved|collected)\b|\brequest {_BE}accepted\b"
    rf"|\b(?:[1-9]\d{{0,6}}|some|several) (?:{_THING} )?(?:was |were |have been )?(?:{'|'.join(_PAST)})\b"
    rf"|\b{_THING} {_BE}{_DONE} before {_THIS}|\bwhile polling\b|{_ALREADY}"
    rf"|\b(?:\w{{1,12}} ){{0,3}}200 ok\b,? (?:but|then|and then|however|followed by)\b|\b(?:201 created|202 accepted)\b|\b{_BEFORE}\b[^\n]{{0,40}}(?:\b20[0-4]\b|{_LOST})"
)
# Anything done, if the error is in another clause: "stock reserved; label: 401"
ACTED_FIRST = rf"(?!to |{_REFUSAL})(?:[\w#-]{{1,24}} ){{1,5}}{_DONE}(?: [^\n.;:,]{{1,24}})?[;,.] ?(?=\w)"
UNDONE = (
    r"\b(?:not|never|no|none|nothing|neither|without|cannot|could not|can't|won't|n't|unable|failed to|fails to|to be"
    r"|must|should|would|will|may|if|unless|until|before(?! (?:this|that|it)(?: error| failure)?(?:[.,;:)\n]|\Z))|invalid|duplicate|too many|0|expected|instead)\b"
)
# "committed=true", "'charged': True", read with the quotation marks
FLAGGED = rf"\b(?:{'|'.join(_PAST)}|ok|success|successful|done)[\"']? ?[=:] ?[\"']?(?:true|yes)\b(?! (?:is |was )?(?:required|expected|needed))"
# Words that leave the effect open: they say so, or name a connection lost in the middle of a call, or a step after the
# action: "rollback failed", "after payment", "POST -> 201", "polling job 7"
UNSURE_HINTS = frozenset(
    "unknown uncertain unclear indeterminate doubt may might could keepalive removed closing reading receive "
    "rollback roll compensation compensate after processing polling waiting settlement fetch fetching retrieve retrieving "
    "read left stuck gone confirm post put patch delete returned answered duplicate load parse download open get find "
    "step stage phase batch chunk log logout sign close clean cleanup release free".split()
)
_CANNOT = r"(?:could ?n[o']t|cannot|can't|unable to|failed to|failure to)"
_ACTION = r"(?:payment|purchase|checkout|order|submission|charge|creation|create|commit|booking|transfer|insert)"
UNSURE = (
    r"\b(?:outcome|result|effect|(?:payment|transaction|transfer|commit|order|write) (?:status|state))(?: of [\w -]{1,40})? "
    r"(?:is |was |remains )?"
    r"(?:unknown|uncertain|unclear|indeterminate|in doubt)\b|\bin[- ]doubt transaction"
    r"|\b(?:may|might|could)(?: or may not| still| already)* have (?:already )?(?:been )?"
    rf"(?:{'|'.join(word for word in _PAST if word not in ('deleted', 'removed'))}|gone through|taken effect|happened|occurred)\b"
    r"|\bkeepalive (?:watchdog|ping)|\bstream removed\b|\btransport is closing\b|\berror reading from server\b"
    r"|\bcould not receive data from server\b"
    rf"|\b(?:rollback|roll back|compensation)\b[^\n.;]{{0,40}}\b(?:failed|failure|error)\b|\b{_CANNOT} (?:roll ?back|compensate)\b"
    rf"|(?<!again )(?<!retry )(?<!wait )\bafter (?:(?!too |\d)[\w#-]{{1,20}} ){{0,2}}{_ACTION}\b(?! (?:attempts?|requests?|limits?|quota))"
    r"|\b(?:post|put|patch|delete)\b[^\n;]{0,60}?(?:->|=>|→|\breturned|\banswered) ?(?:http )?20[0-4]\b"
    r"|\b(?:post|put|patch|delete)(?: request)? succeeded\b"
    r"|\bpost-?processing\b|\bpolling \w|\bwaiting for [^\n:;]{0,40}\b(?:settlement|completion|confirmation|result)\b"
    r"|\b(?:fetch|fetching|retrieve|retrieving|read|reading) (?:the |its )?(?:result|outcome|receipt|confirmation)s? (?:of|for)\b"
    rf"|\b{_CANNOT} (?:confirm|read|fetch|load|parse|download|open|get|find|retrieve) (?:the |its |your |an? )?"
    r"(?:\w{1,12} )?(?:delivery|receipt|result|outcome|confirmation|response|answer)\b"
    rf"|\b{_CANNOT} (?:log ?(?:out|off)|sign (?:out|off)|clean ?up|(?:release|free) (?:the |its )?lock"
    r"|close (?:the |its )?(?:connection|session|socket|browser))\b"  # at the end
    rf"|\b(?:step|stage|phase|batch|chunk) (?:no\.? |#)?(?:[2-9]|[1-9]\d{{1,3}})\b|\bduplicate {_TWICE}"
    r"|\b(?:left|stuck) in an? ?\w{0,20} ?state\b|\b(?:left|stuck) in (?:pending|incomplete|unfinished|inconsistent) state\b"
    r"|\b(?:has|have) (?:already )?gone out\b|\b(?:money|funds) (?:has |have )?left\b"
)

# Per language: words for the action, for its denial, and for "but"
_LANGUAGES = (
    (
        r"\b(?:ausgeführt|abgebucht|gebucht|überwiesen|bezahlt|belastet|gesendet|versendet|verschickt|angelegt|erstellt)",
        r"\b(?:nicht|kein\w{0,2}|nie|noch)\b",
        r"\b(?:aber|jedoch|doch|allerdings)\b",
    ),
    (
        r"\b(?:effectué|débité|payé|envoyé|réservé|créé|enregistré|validé)e?s?\b",
        r"\b(?:pas|non|jamais|aucune?)\b",
        r"\b(?:mais|cependant|toutefois)\b",
    ),
    (
        r"\b(?:realiz|envi|reserv|cre|pag|cobr|carg|complet|efectu|proces)(?:ó|ad[oa]s?)\b",
        r"\b(?:no|nunca|ningún|ninguna)\b",
        r"\b(?:pero|sin embargo)\b",
    ),
    (
        r"\b(?:eseguit|inviat|prenotat|creat|pagat|addebitat|effettuat|completat)[oaie]\b",
        r"\b(?:non|mai|nessuna?)\b",
        r"\b(?:ma|però|tuttavia)\b",
    ),
    (
        r"\b(?:concluíd|realizad|enviad|reservad|criad|pag|cobrad|efetuad|debitad)[oa]s?\b",
        r"\b(?:não|nunca|nenhuma?)\b",
        r"\b(?:mas|porém|contudo)\b",
    ),
    (
        r"\b(?:uitgevoerd|verzonden|verstuurd|geboekt|betaald|aangemaakt|afgeschreven|voltooid)\b",
        r"\b(?:niet|geen|nooit)\b",
        r"\b(?:maar|echter)\b",
    ),
    (r"\b(?:проведён|проведен|отправлен|оплачен|создан|списан|выполнен)", r"\b(?:не|нет)\b", r"\b(?:но|однако)\b"),
    (r"(?:完了|送信|作成|予約|決済)(?:し|され)ました", r"ません", r"(?:が|けれど)"),
    (r"已(?:经)?(?:完成|发送|创建|预订|支付|扣款|付款|成功)", r"[未没]", r"(?:但|不过|然而)"),
)
# An ASCII text without any of these words is not searched
ELSEWHERE_HINTS = frozenset(word for *_, but in _LANGUAGES for word in re.findall(r"\b[a-z]{2,}\b", but))
ELSEWHERE = tuple((rf"{done}[^\n.;!?。]{{0,60}}?{but}", denied) for done, denied, but in _LANGUAGES)
