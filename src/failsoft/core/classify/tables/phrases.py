"""Phrases -> kind. The first phrase that matches, from top to bottom, decides.

The same words are read in messages, in provider codes and in class names: ``RateLimitError``, ``rate_limit_exceeded``
and "Rate limit exceeded" are all spelled out as "rate limit ..." first (see ``text_reader.spell``). Patterns are lower case and
begin where a word begins.

``keys`` are first letters (up to four) of words. A pattern is tried only if a word of the text begins with one of them. A
*firm* phrase is unambiguous and may overrule a status (``tables.http.OVERRULED``). The other phrases decide only without
better evidence.

Why one file: the first row that matches decides, so the order of all rows matters.

Source, unless another is named: English error messages in the documentation of the libraries in ``tables.types``.
"""

from __future__ import annotations

from failsoft.core.startup.named_tuple import NamedTuple


class Phrase(NamedTuple):
    """A phrase by which errors of one kind are recognised."""

    name: str
    keys: str
    pattern: str
    kind: str
    firm: bool = False
    guess: bool = False  # rests on the wording alone: any type and any cause beats it


PHRASES: tuple[Phrase, ...] = (
    # --- signals of agent platforms ---
    Phrase(
        "extension request",
        "exte",
        r"invalid extension(?:[. /:-][\w-]{1,40}){0,4}[. ]execute[. ]request",
        "no_such_tool",
        firm=True,
    ),
    Phrase(
        "gateway request",
        "gate",
        r"invalid [\w.]+\.gateway\.[\w.]+\.(?:request|response)",
        "contract",
        firm=True,
    ),
    Phrase(
        "too early (MCP: lifecycle)", "init", r"before initiali[sz]ation (?:was |is )?complete", "contract", firm=True
    ),
    # --- bugs, in the words of Python, JavaScript, Java, Go, Rust ---
    Phrase(
        "bug",
        "all any anyi asse asyn attr call canc cast defi divi func indi loca loop meth neve nil null obje oper out pani prop recu refe seri stac unde unha unpa",
        r"\bpanic(?:ked)?\b|all goroutines are asleep\b|(?:nil|null) (?:pointer|reference)|cannot read propert(?:y|ies) of|is not a function\b|is not defined\b|has no attribute"
        r"|object is not (?:callable|subscriptable|iterable)|index out of (?:bounds|range)|divi(?:de|sion) by zero|stack overflow|assertion (?:error|failed)"
        r"|event loop is (?:closed|already)|(?:running|no current) event loop|event loop (?:token|other than the)|to a different (?:event )?loop|another loop is running|any ?io worker thread|from an async context|cancel scope|call stack|call to undefined|called '' on an? '' value|was never awaited|class cast|not json serializable|unhashable type|unsupported operand|indices must be integers|values to unpack|maximum recursion depth"
        r"|object reference not set|attempt to (?:index|call|compare|concatenate|perform)\b.{0,40}\bnil\b|local protocol\b|undefined (?:local variable|method|variable)\b",
        "bug",
        firm=True,
    ),
    # --- the tool, its program or its method is missing ---
    # --- errors that say they are temporary ---
    Phrase(
        "for the time being",
        "few hour main minu mome now shor soon temp time",
        r"temporarily (?:not |un)?(?:available|accessible|reachable|locked|blocked|disabled|suspended|offline|down|out of service|removed|restricted|closed|overloaded)|(?:disabled|removed|blocked|locked|suspended|unavailable|offline|down|closed) temporarily"
        r"|not available (?:[\w ]{0,30} )?(?:right now|at (?:the|this) (?:moment|time))|(?:be|is) (?:back|up|online|available|restored|resolved)(?: up| again| online| to normal)* (?:shortly|soon|momentarily|in an? (?:few|moment|minute|hour))"
        r"|(?:for|under|undergoing|scheduled|planned|routine|emergency) (?:\w+ )?maintenance\b|maintenance (?:window )?(?:is |are )?(?:in progress|underway|ongoing|running)\b",
        "unavailable",
        firm=True,
    ),
    Phrase(
        "closed by ourselves",
        "clos disp end exec futu pool shut",
        r"(?<!browser )(?<!market )(?<!trading )(?:client|cursor|session|pool|database|engine|executor)(?: '')? (?:(?:is|was|has been) (?:already )?|already )closed\b(?! (?:after|because|by|due|for|from|on|to|unexpectedly|with)\b)"
        r"|pool (?:is |was |has been )?shut ?down\b(?! by\b)|(?:on|of|use|using|access) (?:an? |the )?(?:already )?closed (?:client|cursor|database|engine|file|object|pool|resource|session)\b|disposed object"
        r"|(?:cannot|can't|can not) (?:\S+ ){1,8}after (?:close|closing|shut ?down|(?:calling |its )?end|it (?:was|has been) closed)\b",
        "bug",
        firm=True,
    ),
    Phrase(
        "no such tool",
        "acti capa exte func hand plug skil tool",
        r"(?:unknown|missing|unregistered|no such|nonexistent|non-existent) (?:tool|extension|plugin|capability|skill)\b"
        r"|\b(?:tool|extension|plugin|capability|skill)(?: id)?[:\s'`]{0,4}(?:[\w.-]+[\s'`]{1,4}){0,3}"
        r"(?:not (?:be )?(?:found|installed|registered|available|enabled)|(?:does not|doesn't) exist|is (?:missing|unavailable)|(?:is|was|has been) (?:currently )?disabled)"
        r"|\b(?:tool|extension|plugin|capability|skill) ?(?:id (?:is |was )?(?:missing|not (?:provided|specified|given|supplied)|required)|disabled)\b"
        r"|(?:missing|no) (?:required |valid )?(?:tool|extension|plugin) ?id\b"
        r"|no (?:tool|extension|plugin|function|action|skill|capability) (?:named|called|with|registered|found)|no handler (?:is |was )?(?:registered |found |defined )?for (?:the )?(?:tool|action|function)\b"
        r"|not a (?:valid|known|registered|recogni[sz]ed) (?:tool|function)\b|(?:unknown|no such) function(?! name)\b(?!:)|(?:tool|function)\W{1,3}(?:\S+ ){1,6}?(?:which )?(?:was |is )?not (?:found )?in (?:the )?(?:\w+[ .])?(?:tools|functions|registry)\b",
        "no_such_tool",
        firm=True,
    ),
    Phrase(
        "no such program",
        "clas depe exec find foun inst modu reco spaw such",
        r"command (?:was |is )?not found|(?:ba|z|da|k)?sh: (?:(?:line )?\d+: )?\S{1,60}: not found|not recogni[sz]ed as (?:an internal|the name)|executable (?:file )?(?:\S+ )?(?:not found|needs to be|(?:does not|doesn't) exist)"
        r"|(?:is|was) not found on (?:this|your|the) (?:system|machine|computer)\b|not found in \$?path|no such (?:command|executable|program)|(?:program|binary) (?:\S+ )?not found"
        r"|no module named|cannot find (?:module|package)|(?:module|class) not found|spawn\b.{0,60}no such file|no class def found|missing dependenc|dependency error(?!.{0,40}(?:unavailable|time(?:d )?out))"
        r"|(?:is not|isn't|not|must be|needs to be|to be) installed\b|exec format error",
        "no_such_tool",
        firm=True,
    ),
    Phrase(
        "no such record (Django, peewee, Tortoise)",
        "quer",
        r"matching query does not exist",
        "not_found",
        firm=True,
    ),
    Phrase(
        "no such model",
        "depl endp mode prov",
        r"\b(?<!\.)(?:models?|deployment)\b(?!\.)\W{0,4}(?:\S+ ){0,4}(?:not (?:be )?(?:found|available(?!,? (?:please |you can )?(?:try|retry))|exist|supported)|does not exist|is not (?:available|found|supported|deployed)|no longer|deprecated|decommissioned|retired)"
        r"|(?:unknown|invalid|no such|unsupported|unrecogni[sz]ed) (?:(?!template)\w+ )?(?:model|deployment)\b(?! (?:response|output|behavio))|no endpoints found|provider not provided"
        r"|\bmodel (?:id|identifier|name) (?:\S+ )?(?:is |was )?(?:invalid|unknown|not valid|not recogni[sz]ed)|^model: [\w.:/-]+\W*$",
        "unknown_model",
        firm=True,
    ),
    Phrase(
        "no such method",
        "acti comm endp meth oper proc rpc rpcn rpcq",
        r"\b(?!rpc error|rpc (?:call )?failed|operation fail)(?:method|rpc|procedure|command|operation|action)\W{0,4}(?:[\w./-]++\W{1,4}){0,2}(?:not found|not (?:be )?implemented)"
        r"|(?:unknown|no such|unrecogni[sz]ed|unimplemented) (?:method|rpc|command|operation|action|endpoint)\b"
        r"|(?<!payment )(?<!shipping )(?:method|procedure) (?:''|\"[^\"]{1,60}\"|'[^']{1,60}') is not supported\b",
        "no_such_method",
        firm=True,
    ),
    # --- the response was damaged in transit ---
    Phrase(
        "garbled answer",
        "answ byte chun cont corr deco down http inco loss mess payl read repl resp stat",
        r"incomplete(?:d)? (?:chunked )?(?:read|body|encoding|data received)|(?:bytes|octets) read\b|complete message body|incorrect (?:header|data|length) check"
        r"|(?:invalid|bad|malformed|illegal) (?:chunk|http (?:response|status|version)|status ?line|content-length)|bad status ?line"
        r"|error .{0,12}\bdecompress|decompress(?:ion|ing)? (?:error|failed)|content ?decoding|(?:content|answer|response) (?:\w+ )?checksum|not (?:a )?(?:valid )?http\b|expected http/|data (?:loss|corruption)\b|payload is not completed|total bytes expected|(?:response|answer|reply) (?:has|had|contained) no (?:body|data|content)|(?:response|answer|download)(?: body)? (?:was |is )?(?:truncated|incomplete|cut off)|invalid (?:json )?response (?:body|format)|response validation (?:failed|error)|(?:deserialize|decode|parse|read|parsing|decoding|reading) (?:the )?(?:server'?s? |api )?(?:response|answer)\b",
        "garbled",
        firm=True,
    ),
    Phrase(
        "corrupted data",
        "answ body chec corr crc data payl repl resp",
        r"(?<!input )(?<!image )(?<!file )(?<!audio )(?<!video )(?<!your )(?<!uploaded )(?<!provided )(?<!given )data (?:is|was|are|were|has been|have been|got|seems?(?: to be)?|appears?(?: to be)?) corrupt(?:ed)?\b"
        r"|corrupt(?:ed)? (?:\w+ )?(?:response|answer|reply|payload)\b|corrupt(?:ed)? data\b(?! (?:file|format))"
        r"|(?:response|answer|reply|body|payload)(?: (?:body|data|payload|content))? (?:is|was|has been|got|seems?(?: to be)?|appears?(?: to be)?) corrupt(?:ed)?\b"
        r"|(?:checksum|crc(?:-?\d{2})?)(?: \w+)? (?:mismatch|error|failure|failed|did not match|does not match|doesn't match|do not match|don't match)\b",
        "garbled",
        firm=True,
    ),
    # --- arguments: statements that quote other phrases come first ---
    Phrase(
        "schema",
        "argu chec expe fiel inpu inst matc miss para prop sche type unkn vali",
        r"validation errors? (?:for|detected|in)\b|\bis a required (?:property|parameter|field|argument)|is not of type|field required"
        r"|input should be|additional properties are not allowed|failed validating|does not match the schema"
        r"|extra (?:fields|inputs)(?: are)? not permitted|missing \d+ required|required (?:positional |keyword-only )?argument"
        r"|missing required (?:param|arg|field|prop|key|input|attr|header|value)|unexpected keyword argument|unknown (?:field|parameter|property|argument|option|keyword|attribute)\b"
        r"|expected type|expected (?:an? )?(?:int(?:eger)?|str(?:ing)?|number|bool(?:ean)?|array|object|float|list|dict|date)\b|not (?:an )?instance of|type check error|parameter validation|cannot query field|schema (?:error|mismatch|validation)(?! service)",
        "invalid",
        firm=True,
    ),
    Phrase(
        "JSON and addresses in JavaScript",
        "json url",
        r"json (?:at position|input)\b|parse url\b",
        "invalid",
        firm=True,
    ),
    Phrase(
        "the end of a text (expat, parsers)",
        "docu elem end enti line tag",
        r"no element found\b|mismatched tag\b|junk after document|undefined entity|unexpected (?:end of (?:file|stream)|eof)\b.{0,20}\bline \d|unexpected end[ -]of[ -](?:input|data)\b",
        "invalid",
        firm=True,
    ),
    Phrase(
        "key material",
        "asn key pass pem",
        r"(?:private|public|host|ssh|rsa|ssl|signing) key|deserialize key|key (?:data|file|format|material|type)\b|passphrase|asn\.1|\bpem\b",
        "misconfigured",
        firm=True,
    ),
    Phrase(
        "invalid setting",
        "bad ille inva unkn unsu",
        r"\b(?:invalid|illegal|bad|unsupported|unknown) (?:value for |value of )?(?!base[ -]?url)(?:\w+ ){0,2}"
        r"(?:time ?out|retry|retries|rate limit|port|url|uri|date|format|type|size|unit|interval|cursor|header|scheme|encoding|currency|language|locale|charset|codec|algorithm|extension|argument|attribute|option)\b"
        r"(?! (?:error|exceeded|reached|expired))",
        "invalid",
        firm=True,
    ),
    Phrase(
        "base url",
        "addr base url",
        r"base[ -]?url|(?:endpoint|server|host|api) (?:url|address) (?:is )?(?:invalid|missing|not set|incorrect|wrong|malformed)"
        r"|(?:invalid|missing|wrong|bad|malformed) (?:endpoint|server|host|api) (?:url|address)",
        "misconfigured",
        firm=True,
    ),
    Phrase(
        "value out of range",
        "out rang valu",
        r"\bvalues? (?:[\w.,-]{1,30} )?(?:is |was |are |were )?out of (?:the )?(?:(?:allowed|valid|permitted|supported|accepted) )?range\b|^out of range\b"
        r"|^(?:(?!argument|param)[a-z]+ ){1,3}(?:is |was |are |were )?out of (?:the )?(?:(?:allowed|valid|permitted|supported|accepted) )?range\b",
        "out_of_range",
        firm=True,
    ),
    Phrase(
        "unset credential",
        "acce api apik apis apit auth clie secr",
        r"\b(?:api ?|access |auth |client |secret )(?:key|token|secret)(?: client option)? (?:must|has to|needs to) be (?:set|provided|configured|supplied)\b",
        "unauthenticated",
        firm=True,
    ),
    Phrase(
        "must be",
        "can cann mand may maxi more most must shou",
        r"\b(?:must|should) (?:not |either |also |always |only )?(?:be (?!retried|restarted|repeated|re-?sent|resubmitted|re-?tried|re-?attempted|attempted again|rolled back|throttled|closed|logged|signed|authenticated|verified|enabled|approved|activated|authori[sz]ed)|contain|match|start|end|include|have|specify(?! a region)|stay|remain|equal|provide|supply)|can only (?:be|have|contain|accept|receive)\b(?! (?:\S+ ){0,4}(?:connections?|requests?|per (?:second|minute|hour))\b)|is mandatory\b"
        r"|\b(?:cannot|can't|can not|may not|must not) be (?:empty|null|none|nil|blank|negative|zero|greater|less|longer|more|before|after|in the|undefined)"
        r"|at most \d++(?! (?:\w+ )?(?:requests?|calls?|connections?|sessions?)\b)|(?:no more than|maximum of) \d++ (?!(?:\w+ )?(?:requests?|calls?|connections?|sessions?)\b)(?:\w+ ){0,3}(?:per (?:request|call|batch)|allowed|permitted|at once)",
        "invalid",
        firm=True,
    ),
    # --- money, quota, size ---
    Phrase(
        "payment declined",
        "card cvc decl fund hono",
        r"card (?:was |has |has been |is )?(?:declined|expired|not supported)|(?:expired|invalid|incorrect) (?:card|cvc)"
        r"|insufficient funds|do not hono[u]?r|(?:payment|transaction|charge) (?:was |has been )?declined",
        "declined",
        firm=True,
    ),
    Phrase(
        "too large",
        "big comp cont deep elem exce fiel filt item larg leng long many max maxi nest reac redu reso size toke wind",
        r"\b(?:request|payload|message|entity|body|file|content|input|prompt|header|uri|url|record|batch|packet|value|query|data)s?"
        r" (?:\w+ ){0,3}too (?:large|long|big)|too (?:large|big) (?:for|to)\b"
        r"|context (?:length|window|size|limit)(?! (?:must|should))|too many (?:input |prompt )?tokens(?! per|,? please wait)|reduce (?:the length|your prompt)|max tokens (?:length )?limit"
        r"|exceed(?:s|ed|ing)? (?:the |its |your )?(?:maximum|max|model'?s?)(?: allowed)? (?:size|length|payload|message|context|input|body|tokens|number of tokens|limit of \d+ (?:bytes|tokens))"
        r"|resources exceeded|max(?:imum)? allowed (?:tokens|length|size)|exceeds (?:\w+ ){0,4}(?:maximum|max) \d|(?:argument list|path|name) too long|larger than (?:the )?(?:max|allowed|limit)|(?<!queue )(?<!pool )(?<!buffer )(?<!backlog )(?:size|length) (?:limit )?exceed(?:s|ed)|string too long|too complex\b|(?:nested|nesting|recursion) (?:is )?too deep|too many (?:items|ids|rows|columns|fields|values|parameters|arguments|elements|filters|terms|records)\b(?! (?:in (?:the )?(?:queue|flight)|queued|pending|locked))"
        r"|tokens? (?:\S+ ){0,6}(?:exceed(?:s|ed)? (?:the |this )?(?:max|model|context|limit of \d)|greater than|must be <=)|\btoo (?:large|big)\b|exceeds max|(?:maximum|max) (?:payload|message|packet|request|body|file)(?: size)? exceeded|reached the size limit|exceed(?:s|ed|ing)? (?:\w+ ){0,4}\d+ (?:characters|chars|bytes|words|lines|items|kb|mb)\b",
        "too_large",
        firm=True,
    ),
    Phrase(
        "resets soon",
        "rese",
        r"resets? in (?:about )?\d+ ?(?:ms|s|sec|secs|seconds?|m|mins?|minutes?)\b",
        "rate_limited",
        firm=True,
    ),
    Phrase(
        "rate limit or quota",
        "rate",
        r"rate[ -]?limits? (?:exceeded )?or (?:a |the )?quota\b",
        "per_minute",
        firm=True,
    ),
    Phrase(
        "quota for this minute",
        "quot",
        r"quota (?:for|in|of) (?:this|the current) (?:second|minute)\b",
        "per_minute",
        firm=True,
    ),
    Phrase(
        "quota per minute",
        "hour min mins minu qps rpm rps sec seco secs tpm",
        r"(?:quota|limit|requests|tokens|calls|queries|exceeded|read|write|rate)\b.{0,160}(?:\bper[ -]|/ ?)(?:user per |project per |100 )?(?:second|minute|min|sec|hour)s?\b"
        r"|\b(?:rpm|tpm|qps|rps)\b.{0,40}(?:limit|exceed|reach)",
        "per_minute",
        firm=True,
    ),
    Phrase(
        "quota per day or plan",
        "bill dail day free mont plan rpd tpd tria week",
        r"(?:daily|monthly|weekly|per[ -]day|per[ -]month|trial|free[ -](?:tier|plan|trial))\b.{0,60}(?:limit|quota|exceeded|exhausted|reached|expired)"
        r"|(?:limit|quota|requests|tokens|calls|queries|exceeded|reached)\b.{0,60}(?:\bdaily|\bmonthly|\bweekly|per[ -]day|per[ -]month|\brpd\b|\btpd\b|(?:the current|this) (?:month|billing)|your (?:current )?plan)",
        "quota",
        firm=True,
    ),
    Phrase(
        "quota",
        "acco allo bala bill cred fund paym quot requ sear spen subs usag",
        r"insufficient (?:\w+ )?(?:quota|credits?|balance)|exceeded (?:\w+ ){0,5}quota"
        r"|\b(?<!throttling )(?<!rate limit )(?:quota|credits?|allowance|spending (?:limit|cap)|usage (?:limit|cap)|billing (?:hard )?limit|subscription|credit balance)\b"
        r" ?(?:[\w'-]+ ){0,6}(?:exceeded|exhausted|reached|used up|expired|depleted|ran out|too low|insufficient|is 0)"
        r"|out of (?:credits?|quota|searches|requests|funds)|no (?:credits?|quota) (?:left|remaining)|enough (?:credits?|quota|balance)"
        r"|billing account (?:\S+ ){0,4}(?:not open|closed|disabled)|billing (?:is )?(?:not (?:active|enabled|configured)|disabled|required|error|details)|payment required"
        r"|account (?:is |has been |was )?(?:suspended|past due|not active)|(?<!throttling )(?<!rate limit )quota (?:exceeded|exhausted|limit|error|failure)"
        r"|over (?:\w+ ){0,2}quota|usage limit",
        "quota",
        firm=True,
    ),
    Phrase(
        "not allowed to",
        "allo auth enti perm",
        r"(?:you|user|account|caller|client|app|bot|\'\') (?:are|is|am) not (?:allowed|permitted|authori[sz]ed|entitled) to (?!make|send|exceed|perform more)",
        "forbidden",
        firm=True,
    ),
    Phrase(
        "rate limit exceeded",
        "abus afte band bloc conc deni exha fast floo freq limi load many ofte per prio quic rate reje retr slow thro wait",
        r"rate[ -]?limit(?:s|ing)? (?:\w+ ){0,3}(?:exceeded|reached|hit|error|exception)|rate[ -]?limit(?:s? of \d|:|\W*$)|^rate[ -]?limits\W*$|by (?:the |our )?(?:\w+ ){0,2}(?:rate[ -]?limit\w*|throttl\w+|load shedd\w+)|rate[ -]?limited\b|rate exceeded|resource (?:has been )?exhausted"
        r"|too many (?!retry|recursive|tool|function)(?:\w+ )?(?:requests|calls|attempts|messages|queries|logins)|too frequent|\bthrottl(?:ed|ing)\b|slow[ -]?down"
        r"|request(?:s)? (?:rate|limit) (?:\w+ )?(?:exceeded|reached|too)|request rate|secondary rate|abuse detection"
        r"|(?:exceed(?:ed|s|ing)?|hit|reached|over) (?:\w+ ){0,6}rate[ -]?limits?|(?:throughput|bandwidth|concurrency|transactions? per) (?:\w+ )?exceeded"
        r"|rate[ -]?limit quota|throttling quota|flood (?:wait|control)|retry after \d|wait (?:of |for )?\d+ (?:more )?(?:s|sec|seconds?|minutes?)\b|(?:only|again) (?:\w+ ){0,4}after \d+ (?:seconds?|minutes?)|(?:too|more) (?:fast|quickly|often)\b|priority request not complete",
        "rate_limited",
        firm=True,
    ),
    # --- storage, files, pools ---
    Phrase(
        "storage full",
        "disk floo full mail memo pers spac stor",
        r"no space left|insufficient (?:\w+ )?space|disk (?:is |quota )?(?:full|exceeded)|out of (?:disk|space|storage)|disk quota|insufficient (?:\w+ )?storage"
        r"|storage (?:\w+ )?(?:is )?(?:full|exceeded|exhausted)|not enough (?:\w+ )?(?:disk|space|storage)|or disk is full"
        r"|mailbox (?:is )?(?:full|over)|used memory > |flood[ -]stage|(?:table|volume) (?:\S+ )?is full"
        r"|unable to persist|not able to persist|requires more (?:\w+ )?memory",
        "storage_full",
        firm=True,
    ),
    Phrase(
        "pool exhausted",
        "avai get limi many max maxi pool slot",
        r"pool (?:\w+ ){0,3}(?:exhausted|exceeded|timed? ?out|is full|full|limit|overflow)|too many (?:open |active |concurrent |simultaneous )?(?:connections|clients|sessions)"
        r"|max(?:imum)? (?:number of )?(?:clients|connections|sessions)|connection slots|(?:no|out of) (?:\w+ )?connections? (?:is |are )?available"
        r"|connection limit|connection is not available|couldn't get a connection",
        "pool_exhausted",
        firm=True,
    ),
    Phrase(
        "local limit",
        "allo back buff heap many memo oom oomk queu thre",
        r"too many open files|out of memory|cannot allocate memory|can't start new thread|(?:queue|buffer|backlog) (?:\w+ ){0,2}(?:exceeded|overflow(?:ed)?|exhausted|limit reached)|memory exhausted|heap (?:space|out)|oom[ -]?killed|memory error|unable to allocate|queue (?:is )?full\b",
        "local_limit",
        firm=True,
    ),
    # --- trust ---
    Phrase(
        "certificate",
        "anch cert host issu leaf pkix self",
        r"known hosts\b|host key (?:verification|for|mismatch|is not)|certificate (?:verify|verification|has|is|was|signed|expired|required|unknown|common|subject|chain|invalid|error|validation|could not|cannot)"
        r"|self[- ]signed|local issuer|issuer cert|leaf signature|hostname mismatch|(?:invalid|untrusted|expired|bad|insecure|verify the first) certificate|\bcert (?:has|is|common|authority|date|invalid|expired|verify|untrusted|not yet|altname)"
        r"|certification path|certificate\W{0,3}$|certificate verify|trust anchor|ssl certificate|pkix path",
        "certificate",
        firm=True,
    ),
    Phrase(
        "parsing",
        "csv dese expe extr html inco json mapp pars synt toke toml unex unte utf well xml yaml",
        r"not well[- ]formed|unexpected token(?! ?')|(?:could not|cannot|can't|unable to|failed to|error) (?:be )?pars(?:e|ed|ing)\b|pars(?:e|ing) (?:error|failed|failure)"
        r"|expecting (?:value|property|',')|jsondecode|json decode|(?:invalid|malformed|not valid|bad) (?:json|xml|yaml|toml|csv|html|utf-?8)"
        r"|syntax (?:error|is|near|to use)|unterminated|mapping values are not allowed|incomplete input|could not deserialize|unexpected end[ -]of[ -](?:input|data)|extra data\b|tokenizing",
        "invalid",
    ),
    # --- credentials and rights ---
    Phrase(
        "AADSTS (Microsoft Entra: all but those that pass are about who asks)",
        "aads",
        r"aadsts(?!900(?:12|24|33|55|51)\b)\d+",
        "unauthenticated",
        firm=True,
    ),
    Phrase(
        "not there, or not for you",
        "exis foun",
        r"(?:(?:does not|doesn't) exist|(?:was |were )?not found)\b,? or (?:you|it|the|is|may|access|your|not authori[sz]ed)\b",
        "not_found",
        firm=True,
    ),
    Phrase(
        "credentials",
        "acce api apik auth clie cred gran hba inac jwt log logg logi logo mfa oaut one otp pass reau role secr sess sign prom toke two unau user veri",
        r"\bunauthori[sz]ed\b(?! (?:for|to|access)\b)|\bunauthenticated\b|(?:failed|unable|could not|cannot) (?:to )?authenticate\b(?!.{0,60}(?:time(?:d )?out|unavailable|refused|reset|network))|not (?:yet )?(?:authenticated|authed|logged in|signed in)|not authed\b|no auth\b"
        r"|(?:(?:re-?)?authentication|auth|login|logon|sign[- ]?in)(?: (?!retryable|serv|backend|provider|endpoint|gateway|required)[\w-]+){0,3}? (?:failed|failures?|errors?|exception|required|is required|rejected|unsuccessful|denied|invalid)\b(?!.{0,60}(?:time(?:d )?out|unavailable|refused|reset|network))"
        r"|(?:invalid|incorrect|wrong|bad|improper|missing|expired|revoked|no valid|malformed|unrecogni[sz]ed|not a valid|without|no|unable to (?:locate|find|load)|could not (?:locate|find|load)) (?:[\w-]+ ){0,3}"
        r"(?:api[ -]?keys?|credentials?|access keys?|auth(?:entication|orization)?(?: \w+)?|(?<!max )tokens?(?! (?:limit|count|in|at))|passwords?|client secret|jwt|login|username[ -](?:or |and )?password|oauth)\b"
        r"|(?:api[ -]?key|credentials?|(?<!unexpected )token|password|secret|session(?! (?:was |is )?not found)|jwt|access key) (?:\S+ ){0,6}?"
        r"(?:invalid|incorrect|expired|revoked|missing|not (?:valid|provided|set|configured|specified|recogni[sz]ed|correct|accepted|found|supplied)|required|malformed|inactive|does not exist|(?:cannot|could not) be (?:refreshed|verified|loaded|decoded))"
        r"|(?:bad|invalid|wrong) signature|signature verification|(?:invalid|unauthorized) (?:grant|client)\b|(?:log|sign) ?in (?:again|first|to continue)|login required|sign in to|re-?authenticate\b|(?:mfa|otp|verification|one-time) (?:code|password)|signature (?:\w+ )?(?:does not match|invalid|mismatch|expired)"
        r"|must be (?:logged|signed) in|must be authenticated|(?:unrecogni[sz]ed|unknown) client\b(?! method)|two[ -]factor|credentials? error|(?:provide|pass|set|supply) (?:a |an |your |the )?(?:\w+ )?(?:valid )?(?:api[ -]?key|credentials|token)|\brun:? +(?:\S+ ){0,4}login\b|account inactive|fatal: +role\b|bad credentials|problem with (?:\w+ )?authentication|login incorrect|pg hba\.conf|(?:could not|cannot|unable to|failed to) read (?:user ?name|password)\b|prompts? (?:is |are |have been )?disabled\b"
        r"|(?:api[ -]?key|credentials?|token) (?:must|client option must|needs to) be",
        "unauthenticated",
        firm=True,
    ),
    Phrase(
        "permission",
        "acce acco allo appr auth blac bloc cons decl deni deny disa enti forb gran leve list outs perm priv reje righ role scop unau veri viol whit",
        r"row[- ]level security|unauthori[sz]ed (?:for|to|access)\b|account (?:\S+ )?(?:is |has been |was )(?:\w+ )?(?:locked|disabled|deactivated|blocked|banned)|authori[sz]ation (?:failed|failure|error|exception|denied|rejected)|(?:access )?not granted|permission(?:s)? (?:\w+ )?(?:denied|error|required)|\bforbidden\b(?! (?:character|control|key|extra))|access (?:is |was |to (?:\S+ ){1,4}?(?:is |was )?)?(?:denied|refused|forbidden|blocked|restricted)"
        r"|(?:not|\w+n't|never) (?:authori[sz]ed|allowed|permitted|entitled) (?:to|access)\b|is not authori[sz]ed|not authori[sz]ed\b"
        r"|(?:insufficient|missing|lacks?|without|not enough|no|inadequate|required) (?:\w+ ){0,3}(?:permissions?|privileges?|scopes?|access rights|rights)\b"
        r"|(?:does not|doesn't|do not|don't) have (?:\w+ ){0,5}(?:permissions?|access|privileges?|rights|scopes?|authorization)|operation not permitted|(?:do|does|did)(?: not|n\'t) allow you\b"
        r"|must have (?:\w+ ){0,3}(?:access to|permissions?|privileges?)|access ?denied|permissions? (?:\S+ ){1,8}(?:has|have) not been|denied (?:by|on)|(?:blocked|denied|rejected) by (?:\w+ )?(?:policy|firewall|admin)|(?<!content )policy violation|requires (?:\w+ ){0,3}access\b|must be (?:verified|approved|authori[sz]ed)|outside (?:of )?(?:the )?(?:sandbox|workspace|(?:allowed|permitted) (?:director|path|folder|root|scope))|not (?:white|allow)[ -]?listed|(?:black|deny|block)[ -]?listed|disallows\b|not (?:accept|allow) (?:\w+ )?(?:connections|requests|access) from\b|requires (?:\w+ ){0,2}(?:consent|approval)\b"
        r"|(?:tool (?:use|call)|action|command) (?:was |has been )?(?:rejected|denied|declined)(?! because|: (?:server|too many))|user (?:\w+ )?(?:rejected|denied|declined)|(?:rejected|denied|declined) by (?:the )?user"
        r"|(?:permission|privilege|role|scope)s? (?:\S+ ){0,4}(?:required|missing|denied|not granted)",
        "forbidden",
        firm=True,
    ),
    # --- the model, the configuration, the content ---
    Phrase(
        "configuration",
        "acti conf coun data disa enab envi http impr loca misc proj regi seal sele sess sett terr unsa",
        r"misconfigur|improperly configured|not configured|environment variable|configuration (?:error|is|not|file|missing)|config (?:is |was )?(?:missing|incomplete|invalid)\b|(?:invalid|missing|bad|incomplete) (?:\w+ )?config"
        r"|(?:must|need to) specify a region|no (?:default )?region|has not been used in project|(?:api|service|feature|capability|access) (?:\w+ )?(?:is )?(?:not enabled|disabled)"
        r"|not (?:been )?enabled\b|\bsealed\b|config(?:uration)? profile\b|no (?:\w+ )?(?:settings|configuration) (?:found|provided)|improperlyconfigured|service disabled|disabled (?:exception|error)|session not created(?!.{0,60}timed out)|unsatisfiable|(?:location|country|region|territory) (?:is )?not (?:supported|available(?!,? (?:please )?(?:try|retry)))|not (?:supported|available) in (?:your|this) (?:location|country|region|territory)"
        r"|must be (?:enabled|activated)|unable to open database|no (?:\w+ ){1,3}selected\b|\bhttp (?:request|response) (?:was )?(?:sent )?to (?:an? )?https\b",
        "misconfigured",
        firm=True,
    ),
    Phrase(
        "blocked content",
        "bloc filt flag guar mode nsfw poli proh resp safe viol",
        r"content (?:\w+ )?(?:policy|filter|blocked|violation|moderation)|safety (?:system|setting|filter|reason|policy)|flagged|nsfw|moderation|guardrail (?:\w+ )?(?:tripwire|triggered|blocked|intervened)|responsible ai"
        r"|violat\w+ (?:\S+ ){0,4}polic(?:y|ies)|prohibited (?:content|use)|model refus(?:al|ed)",
        "blocked_content",
        firm=True,
    ),
    # --- databases and other stores ---
    Phrase(
        "failed transaction (PostgreSQL, 25P02)",
        "curr fail",
        r"current transaction is aborted|in failed sql transaction",
        "precondition",
        firm=True,
    ),
    Phrase(
        "conflict",
        "conc conf cont dead lock reba seri tran watc writ",
        r"\bdead ?lock|could not serialize|serialization (?:failure|anomaly)|write ?conflict|(?:restart|retry) (?:the |your )?transaction|concurrent (?:update|modification|write|transaction|append)|\bcontention\b"
        r"|transaction (?:was |is |has been )?(?:aborted|conflict|rolled back|cancelled|canceled|restart|retry)|optimistic (?:lock|concurrency)|in conflict|conflict\b.{0,60}\b(?:try again|retry)\b|conflict with recovery|watched variable|transient transaction|conflicting (?:operation|concurrent)|rebalanc(?:ed|ing)",
        "conflict",
        firm=True,
    ),
    Phrase(
        "being worked on",
        "acti anot bein conc idem pend prog runn stat subm sent unde wait",
        r"(?:already |still |currently |is |another \w+ )(?:in progress|being (?:processed|updated|created|modified|deleted))|(?:already|still|currently) (?:running|pending)|\bin[ -]progress\b|another (?:\w+ )?(?:request|operation|process|transaction|session|update|instance|job) (?:\S+ ){0,6}(?:progress|running|processing|pending|underway)"
        r"|already (?:been )?(?:submitted|sent|queued|requested|started)\b.{0,20}\b(?:wait|waiting|pending)\b|not in an? active state|operation (?:is )?(?:pending|underway)|state: (?:pending|creating|updating|deleting|provisioning|starting)\b|concurrent (?:request|operation|call)|idempotency key in use",
        "in_progress",
        firm=True,
    ),
    Phrase("address in use", "addr port", r"(?:address|port)(?: \d+)? (?:is )?already in use", "busy", firm=True),
    Phrase(
        "cluster and transactions (Redis)",
        "cros disc hash",
        r"cross slot|hash to the same slot|discarded because of previous errors",
        "invalid",
        firm=True,
    ),
    Phrase("none exists", "exis", r"no (?:[\w'-]+ ){1,5}exists\b", "not_found", firm=True),
    Phrase(
        "held by another",
        "anot held lock take",
        r"in use by another|lock (?:\S+ )?(?:is |was |has been )?(?:already )?(?:been )?(?:taken|held|owned)\b|(?:modified|changed|updated|locked) by another (?:transaction|session|process)",
        "locked",
        firm=True,
    ),
    Phrase(
        "no such day",
        "date day hour mont time",
        r"(?:date|day|time|month|hour) [\d:./T-]{1,30} (?:does not|doesn't) exist",
        "invalid",
        firm=True,
    ),
    Phrase("lock of another git", "unab", r"unable to create '': file exists", "locked", firm=True),
    Phrase("missing access", "miss", r"missing access\b", "forbidden", firm=True),
    Phrase(
        "exists already",
        "alre dupl exis take unav uniq use",
        r"already (?:\w+ )?(?:exists?|registered|taken|present|created|defined|owned|in use|allocated|added|started|been (?:taken|used|registered|created))|\bduplicated? (?:key|entry|value|name|record|id|index|document|object|item|resource|error|request)|duplicate\b$"
        r"|unique (?:constraint|key|index|violation)|violates unique|must be unique|uniqueness (?:constraint|violat\w+|error|check failed|rule)|(?:not|non)[ -]unique|\bexists(?: error| exception|ed)?$|(?:name|username|email) (?:is )?(?:taken|unavailable|in use)|(?<!sure the )(?<!that the )(?<!if the )(?<!whether the )file exists|resource exists|is taken\b|conflicts? with (?:an )?existing\b",
        "exists",
        firm=True,
    ),
    Phrase(
        "locked",
        "anot busy lock use",
        r"(?:database|table|resource|file|row|record|object|key|state|queue)(?: schema| table)? (?:\S+ )?is (?:currently )?locked|lock wait|lock time ?out|(?:obtain|acquire|get|acquiring|obtaining|waiting for) (?:\w+ ){0,4}lock\b|lock (?:not available|request|contention|error|conflict|is held)|lock\b.{0,60}(?:could not|cannot) be (?:acquired|obtained|taken)"
        r"|(?:being )?used by another process|\b(?:file|task|already|keyring) locked\b|lock failed|object (?:is )?in use\b|resource (?:is )?(?:busy|locked)|resource in use",
        "locked",
        firm=True,
    ),
    Phrase(
        "stale version",
        "chan etag fast fetc matc modi push revi seqn stal upda vers",
        r"version (?:\w+ )?(?:conflict|mismatch|changed)|stale (?:version|object|data|revision|element)|(?:object|resource|document|row) has been (?:modified|changed|updated)|etag (?:mismatch|does not match)|if-match|revision (?:conflict|mismatch)|document update conflict|required seqno|non-fast-forward|fetch first|failed to push",
        "stale",
        firm=True,
    ),
    Phrase(
        "more than one",
        "disa elem foun matc more mult obje reco refe resu",
        r"disambiguation|may refer to\b|returned (?:more than one|multiple)\b|found (?:[2-9]|\d\d+) (?:\w+ )?(?:matches|results|elements|records|objects)|multiple (?:\w+ )?(?:objects|results|rows|records|matches|elements|items) (?:were )?(?:returned|found|match)|(?:more than one|multiple) (?:\w+ )?(?:row|result|record|object|match|element|item)(?:es|s)? (?:was |were )?(?:found|returned|match)",
        "invalid",
        firm=True,
    ),
    Phrase(
        "precondition",
        "cond empt prec stat",
        r"pre-?condition|condition(?:al)? (?:\w+ )?(?:check |request )?(?:failed|not met)|illegal state|(?:not in|in) (?:a |an |the )?(?:\w+ )?(?:invalid|wrong|valid|correct|right) state\b(?!.{0,40}\byet\b)|not in (?:a|an|the) (?:\w+ )?state\b(?!.{0,20}\byet\b)|(?:invalid|incorrect) (?:(?!for |of |in )\w+ ){0,3}state\b(?! name| code)|not empty\b",
        "precondition",
        firm=True,
    ),
    Phrase(
        "done already",
        "alre",
        r"already (?:been )?(?:paid|shipped|cancell?ed|processed|submitted|completed|delivered|refunded|approved|rejected|merged|archived|resolved|sent)\b",
        "precondition",
        firm=True,
    ),
    Phrase(
        "sold out",
        "avai book inve sold seat stoc",
        r"sold out|fully booked|out of stock|(?:insufficient|not enough|no) (?:\w+ )?(?:stock|inventory|seats|availability(?= (?:for|on|in|at|between)\b|\W*$)(?<!server availability)(?<!service availability))\b",
        "precondition",
        firm=True,
    ),
    Phrase(
        "dependencies",
        "depe reso solv",
        r"(?:resolve|satisfy|install) (?:\w+ )?dependenc(?:y|ies)(?!.{0,80}(?:time|timed) ?out|.{0,80}econn)|dependency (?:conflict|resolution)(?! service)|version solving failed",
        "precondition",
        firm=True,
    ),
    Phrase("read-only replica (Redis)", "agai", r"against a read[ -]only (?:replica|slave)", "unavailable", firm=True),
    Phrase(
        "read-only",
        "read",
        r"read[ -]?only (?:transaction|database|replica|file ?system|mode|table|error|session|connection)|(?:is|are|in) (?:in )?read[ -]?only|readonly|index read-only|read-only / allow delete",
        "read_only",
        firm=True,
    ),
    Phrase(
        "cancelled statement (PostgreSQL, 57014)",
        "canc",
        r"cancell?ing statement due to user",
        "query_cancelled",
        firm=True,
    ),
    Phrase(
        "statement timeout",
        "due maxt quer time",
        r"statement (?:time ?out|timed out)|cancell?ing statement due to statement|query (?:\w+ )?(?:timed out|time ?out|was interrupted|exceeded)|max(?:imum)? (?:statement |query )execution time|exceeded time limit|maxtimems|operation exceeded time",
        "statement_timeout",
        firm=True,
    ),
    Phrase(
        "open circuit",
        "circ",
        r"circuit ?(?:breaker )?(?:is |still |\w+ is )?(?:open|tripped)\b|circuit breaker(?: open)?(?: error| exception)?$",
        "unavailable",
        firm=True,
    ),
    # --- the network, from the name to the answer ---
    Phrase("no such name", "resu", r"no results for hostname", "unknown_host", firm=True),  # Twisted
    Phrase(
        "name lookup failed",
        "all dns reso serv temp",
        r"temporary failure in name|servfail|dns (?:\w+ )?(?:lookup|query|resolution|server|operation) (?:failed|failure|error|timed out|time ?out)|(?:resolution|resolver) (?:lifetime|timed out)|all nameservers failed|contact(?:ing)? (?:the )?dns servers?|try again \(dns\)",
        "name_lookup_failed",
        firm=True,
    ),
    Phrase(
        "unknown host",
        "asso doma find geta host know nor nxdo reso",
        r"name or service not known|nodename nor servname|no such host|unknown host|(?:could|can|did)(?:n't| not|not) resolve (?:the )?(?:host|proxy|address|domain|name|dns)|(?:failed|unable) to resolve (?:the )?(?:''|host|address|name|service|domain)|(?:host|domain)? ?name (?:not resolved|resolution (?:failed|error|failure)|could not be resolved|does not resolve)|getaddrinfo (?:failed|enotfound)|nxdomain|host ?(?:name)? (?:not found|could not be)|no address associated|domain name not found|find the (?:server|host) at\b|host \S+ (?:could |can)not be resolved",
        "unknown_host",
        firm=True,
    ),
    Phrase("tool timeout", "tool", r"^(?:\w+ ){0,4}tool timeout after \d", "tool_timeout", firm=True),
    Phrase(
        "read timeout",
        "body head read",
        r"(?:read(?:ing)?|headers|body) (?:operation )?(?:timed out|time ?out)\b",
        "timeout",
        firm=True,
    ),
    Phrase(
        "connect timeout",
        "buff conn dial hand open sele time",
        r"connect(?:ion|ing)?(?: attempt| request)?(?: to .{1,80}?)? (?:timed out|time ?out|timeout)|connect ?timeout|(?:timed out|time ?out|timeout) (?:while |when |trying to )?(?:connect|establish|acquir)|err connection timed out|dial (?:tcp )?.{0,80}time ?out|open ?timeout|connect etimedout|handshake (?:operation )?(?:time ?out|timed out)|(?:timed out|time ?out)(?: \w+){0,4} handshake|server selection|buffering timed out",
        "connect_timeout",
        firm=True,
    ),
    Phrase(
        "timeout",
        "answ atte dead elap exce exec expi life repl resp time took",
        r"\btimed[ -]out\b|\btime ?out (?:error|exception|expired|reached|exceeded|after|while|when|waiting|during|reading|in|of \d|on|awaiting|\d|\(|occurred|was reached|period)|time-?out\W*$(?<=: timeout)|(?:resulted in|because of|hit|after) an? time-?out|execution expired|(?:due to|caused by|of a|with) time-?out\W*$|^time-?out\b|exit\) time ?out\b|\bbefore (?:a |the |its )?time-?out\W*$"
        r"|(?:read|write|request|gateway|upstream|backend|proxy|network|partial|socket|response|operation|server|client|idle|execution|api|call|command|i/o|io|task|job|step|page|navigation|tool|invocation|function|script|workflow|activity|agent|model|llm|message|worker) time-?out"
        r"|deadline (?:\w+ )?(?:exceeded|elapsed|expired)|deadline (?:of \S{1,20} |was |has )?(?:passed|missed)\b|time limit (?:\w+ )?(?:exceeded|reached)|took too long|(?:did not|didn't|does not) respond|(?:no|missing) (?:response|reply|answer) (?:\w+ )?(?:received|within|after|from)|waiter \w+ failed: max attempts|not respond(?:ing)? (?:in|within)|lifetime expired|elapsed before|max(?:imum)? execution time|exceed(?:ed|s) (?:the |its )?\d+ ?(?:ms|s|sec|seconds|minutes)\b|exceeded (?:the )?(?:timeout|time limit|deadline)|exceeded .{0,30}timeout",
        "timeout",
        firm=True,
    ),
    Phrase(
        "unreachable",
        "disc down netw offl path reac rout unre",
        r"(?:network|host|destination|server|service|endpoint|address|node|broker) (?:is |was |\S+ is )?(?:unreachable|not reachable|down\b)|(?:could not|couldn't|cannot|can't) be reached|no route to host|host is down|internet disconnected|address unreachable|network changed|network (?:path|name|location) (?:was |is )?(?:not found|no longer available|cannot be found)|no path to host|(?:is|are|went) (?:currently |temporarily )?down\b(?! (?:to|for)\b)|(?:is|are|be|currently|went) offline|unreachable\b",
        "unreachable",
        firm=True,
    ),
    Phrase("disconnected", "disc", r"disconnected: ", "disconnected", firm=True),  # Chrome DevTools
    Phrase(
        "refused",
        "atte avai bad boot brok conn cont max esta host lead netw node open prim reac refu serv",
        r"connection (?:to (?:\S+ ){1,4})?(?:was )?(?:\w+ )?refused|actively refused|network-related|refused (?:to connect|the connection|it)|connect call failed"
        r"|(?:fail(?:ed|ure)?|unable|error|could not|cannot|can't|couldn't|not able|trying|attempting|unsuccessful) (?:to |in |while |when )?(?:connect\b|connecting|establish|open (?:a )?(?:connection|socket)|create (?:a |the )?(?:new )?connection|reach\b|contact)"
        r"|connection attempts? failed|no (?:\w+ )?(?:hosts|brokers?|nodes|servers?|primary|leader|living connections) (?:are |is )?(?:available|found|reachable|could be)|connect(?:ion)? (?:error|failed|failure) (?:to|while connecting)|connect fail(?:ed|ure)\b|connection to (?:\S+ ){1,3}failed|not connected\b|new connection|attempts? to connect|no (?:\w+ )?(?:responders|workers|consumers|backends|upstreams|instances) (?:are |is )?available|bad handshake|socket open|refused stream|unable to bootstrap|max retries per request|bad connection\b",
        "refused",
        firm=True,
    ),
    Phrase(
        "damaged on the wire",
        "chec data fram mac pack",
        r"(?:bad|corrupt(?:ed)?|malformed|invalid|truncated) (?:packet|frame|record mac|checksum|datagram)\b",
        "garbled",
        firm=True,
    ),
    Phrase(
        "lost connection",
        "away brok byte clos conn cras data disc drop end ende eof goaw gone hang hear hung inpu mess peer prot repl rese resp stre term",
        r"connection loss\b|connection(?:s)? (?:to (?:\S+ ){1,4}|\S+ )?(?:was |has been |is |been |already |unexpectedly |forcibly )*(?:reset|closed|aborted|lost|dropped|terminated|broken|interrupted|shut ?down|died)|reset by peer|forcibly closed"
        r"|(?:server|peer|remote|remote end|broker|client|host|socket|transport|channel|stream|session|websocket|target|browser|page|context|other side) (?:\w+ )?(?:has |was |is |been |unexpectedly )*(?:closed|disconnected|dropped|reset|gone away|went away|hung up|crashed|terminated)"
        r"|closed (?:the |by |its )?(?:connection|remote|peer|server|unexpectedly|pipe|socket|network connection)|peer shut ?down|broken (?:pipe|resource|stream)|hang ?up|unexpected(?:ly)? (?:eof|end of (?:file|stream)|close)(?!.{0,20}\bline \d)|eof (?:occurred|error|reading|on|detected)|(?:error: |^)terminated\W*$|(?:stream|response|body|connection) ended (?:before|unexpectedly|prematurely)|\beof\W*$"
        r"|lost connection|without (?:sending )?(?:a )?(?:complete )?(?:response|message body)|premature(?:ly)? (?:close|end|eof)|\bdisconnect(?:ed|ion)?\b|goaway|stream error: stream|empty re(?:sponse|ply)|terminating connection|incomplete (?:message|response)|(?:server|backend|peer|connection|upstream|broker) (?:is |has |was )?gone\b|no (?:data|bytes|input) (?:was |were )?(?:received|sent)\b|sent no data|no close frame|missed heartbeats?|missing heartbeats?|heartbeat (?:lost|missed|failed)|read 0 bytes|0 bytes (?:were |was )?(?:read|received)|in (?:the )?closing (?:or closed )?state|\(eof\)|remote protocol|remote disconnected",
        "disconnected",
        firm=True,
    ),
    Phrase(
        "lost connection (GnuTLS)",
        "func leng term",
        r"error in the (?:pull|push) function|packet with unexpected length|properly terminated",
        "disconnected",
        firm=True,
    ),
    Phrase(
        "bad gateway",
        "back gate orig upst",
        r"bad gateway|(?:invalid|error|bad) (?:\w+ )?(?:response )?(?:from|reaching) (?:the )?(?:upstream|backend|origin)|upstream (?:\w+ )?(?:error|failure|failed|reset|prematurely|connect)|gateway error",
        "bad_gateway",
        firm=True,
    ),
    Phrase(
        "overloaded",
        "busy capa hand heav high over reso",
        r"overload(?:ed)?|(?:at|over|insufficient|exceeded|no|lack of) (?:\w+ )?capacity|capacity (?:\w+ )?(?:exceeded|reached|constraint|temporarily|not available)|(?:server|service|system|model|engine|redis|worker|node) (?:is )?(?:currently |too |temporarily )*busy|too busy|high (?:load|demand|traffic)|(?:not|n't) have (?:sufficient|enough) (?:\S+ )?(?:capacity|resources)|heavy load|handle (?:the |this |your )?(?:load|traffic|volume)\b|\bbusy\b",
        "overloaded",
        firm=True,
    ),
    Phrase(
        "choose another",
        "choo pick sele",
        r"(?:choose|select|pick) (?:another|a different)\b",
        "invalid",
        firm=True,
    ),
    Phrase("moved", "migr move relo upgr", r"(?:migrated|upgraded|relocated|moved) to\b", "wrong_place", firm=True),
    Phrase(
        "removed",
        "deli dele disc long priv remo take unav",
        r"(?:has been|was|is|been) (?:removed|deleted|taken down)\b|delisted|discontinued|(?:video|page|content|product|item|article|listing|post) (?:is )?(?:unavailable|no longer available|private)\b",
        "not_found",
        firm=True,
    ),
    Phrase(
        "come back later",
        "atte bein chec come init load main migr read rebo reco repe rese rest retr send sent shut star temp thro tran try warm",
        r"(?:try|retry|come|check|attempt)(?: \w+)?(?: again| back)?(?: \w+){0,3} (?:later|in (?:a )?(?:few|moment|some|\d|\w+ seconds|\w+ minutes)|shortly|soon|after (?:\d|a |some|the))|temporar(?:y|ily) (?!file|dir|pass|table|cred)|under (?:scheduled )?maintenance|maintenance (?:mode|window)|(?:is |are |currently )+(?:starting|loading|restarting|recovering|initiali[sz]ing|shutting down|warming|rebooting|migrating)|(?:starting|shutting|start) (?:up|down)\b|shutdown in progress|not (?:yet )?ready|being (?:deployed|restarted)|[,;.:-] (?:please )?(?:re-?try|re-?transmit|re-?send)\W*$|transient (?:error|failure|fault)|(?<!not )(?<!non )(?<!non-)(?<!un)retryable|please retry|(?:should|must|can) be (?:retried|repeated|re-?sent|attempted again|throttled)",
        "unavailable",
        firm=True,
    ),
    Phrase(
        "unavailable",
        "achi acti avai coor down epoc fail heal lead mast prim reha repl slot unav",
        r"\bunavailable\b|(?:service|server|broker|node|host|cluster|database|backend|upstream|coordinator|gateway|daemon|agent|worker) (?:is |are |was )?(?:currently )?not available|no healthy|(?:no|not|is not|not the|wrong|incorrect|stale|fenced) (?:\w+ )?(?:leader|primary|master|coordinator)\b(?! key)|(?:wrong|stale|fenced|mismatched) epoch|achieve consistency|slot not served|rehashing of slot|node not active|leader (?:not|election|changed)|failover|fail over|(?:not|in)sufficient (?:\w+ )?replicas|not enough (?:\w+ )?replicas|cluster (?:is )?down|master ?down|currently unavailable|server not available|not available (?:yet|right now|at (?:the|this))",
        "unavailable",
        firm=True,
    ),
    # --- processes ---
    Phrase(
        "killed",
        "abru died dump exit faul kill lost proc siga sigk sigs sigt",
        r"^killed\W*$|segmentation fault|core dumped|\bsig(?:kill|segv|term|abrt)\b|worker (?:\w+ )?(?:lost|died|exited)|terminated abruptly|process (?:\w+ )?(?:died|was killed|crashed|terminated)",
        "killed",
        firm=True,
    ),
    # --- missing and unsupported things ---
    Phrase(
        "no such database",
        "data",
        r"\bdatabase\W{0,4}(?:\S+ )?(?:does not exist|not found|doesn't exist)|unknown database",
        "no_such_database",
        firm=True,
    ),
    Phrase(
        "file format",
        "corr dama file magi trun",
        r"magic (?:bytes|number)|(?:corrupt(?:ed)?|damaged|truncated) (?:file|image|archive)|file is (?:corrupt|damaged|truncated|not a)",
        "invalid",
        firm=True,
    ),
    Phrase(
        "no such route (Go net/http, Express, Apache, Werkzeug)",
        "cann page rout url",
        r"no route (?:found for|matche[sd])\b|404 page not found|requested url (?:\S+ )?was not found on th(?:is|e) server|cannot (?:get|post|put|patch|delete) ?(?:/|$)",
        "wrong_address",
        firm=True,
    ),
    Phrase(
        "not found",
        "dele exis find foun gone host loca long matc none pres rows remo ther reso such unde unkn unro",
        r"\bnot (?:be )?found\b|\bno such\b|(?:does not|doesn't|do not|did not|not) exist|nonexistent|non-existent|(?:could not|couldn't|cannot|can't|unable to|failed to) (?:find|locate)\b|nothing found|no matching \w+|no (?:[\w']+ ){0,8}(?:found|matches)\b|there (?:is|are) no (?!capacity|connection|server|leader|healthy|active|available|workers?|brokers?|replicas?|nodes?|primary)\w+ (?:with|for|named|called|by|matching)\b|undefined (?:table|column|object|function|schema)|no longer (?:exists|available)|has been (?:deleted|removed)|was deleted|unknown (?:column|table|prompt|template|collection|topic|index|user|account|channel|resource|key|queue|bucket|id|entity|object|project|device|table|relation|symbol)\b|not present\b|does not host\b|not match any\b|no rows\b|not resolve to an?\b|\bunroutable\b|\bgone(?: error| exception)?$",
        "not_found",
        firm=True,
    ),
    Phrase(
        "make sure it exists",
        "betw exis name path with",
        r"no path\b(?! to host)|does not have an? \w+ named\b|no \w+ with (?:the |that |this )?(?:id|name|key|slug|email|title|number)\b|no (?!connection|route|link)\w+ between\b|(?:make sure|check|verify|ensure|confirm)(?: that| if| whether)? (?:\S+ ){1,6}exists?\b",
        "not_found",
    ),
    Phrase("not implemented", "impl unim", r"not (?:yet )?implemented|unimplemented\b", "not_implemented", firm=True),
    Phrase(
        "unsupported",
        "allo avai hand supp unsu writ",
        r"\bunsupported\b|\bnot (?:be )?supported|(?:is|are|was)n't supported|(?:does not|doesn't|do not|don't|cannot) support|method not allowed|cannot write mode|not available in (?:your|this)|no handler|not a supported",
        "unsupported",
        firm=True,
    ),
    Phrase(
        "constraint",
        "cons fore inte refe viol",
        r"foreign key|constraint (?:failed|violation|violated|error)|violates (?:\S+ )?(?:check|not-null|foreign|exclusion|constraint)|integrity (?:error|violation|constraint)|referential",
        "constraint",
    ),
    # --- local limits ---
    Phrase("own budget", "budg", r"budget (?:has been )?(?:exceeded|exhausted)", "own_budget"),
    Phrase(
        "own limit",
        "exce many max maxi recu",
        r"exceed(?:ed|s|ing)? (?:the )?max(?:imum)? (?:\w+ )?retries(?! with url)|max(?:imum)? (?:\w+ )?retries (?:reached|exceeded)(?! with url)|(?:max(?:imum)?|too many) (?:number of )?(?:iterations|turns|steps|tool calls|function calls)|recursion (?:limit|depth)|(?:would |will )?exceed(?:ed|s)? the (?:request|total|input|output|tool)",
        "own_limit",
    ),
    Phrase(
        "redirects",
        "redi",
        r"too many redirects|(?:exceeded|maximum|max) (?:\w+ ){0,3}redirects?|redirect loop|\d+ redirects",
        "wrong_place",
        firm=True,
    ),
    Phrase(
        "malformed answer",
        "answ repl resp",
        r"(?:invalid|bad|malformed|illegal|corrupt(?:ed)?|unparsable) (?:\w+ )?(?:response|answer|reply) (?:from|received|was)\b|unexpected (?:\w+ )?(?:response|answer|reply)\b",
        "garbled",
    ),
    Phrase("not set", "set", r"not set\b", "misconfigured"),
    # --- arguments, in a word ---
    Phrase(
        "invalid",
        "allo ambi appe bad broa cast coer cons cont conv corr data deco defi dese dime dire empt enco enou erro exce expe fewe file form give hand iden ille imag inco inde inpu inte inva iter know leng less long look lowe malf mars matc mism miss nega none null numb out pars pdf proc prov read real reco repo requ sche seem shap shor sing size smal spec stri supp symb trun type unde unex unkn unma unpr unre vali wron zip",
        r"\binvalid\b|\bnot (?:a )?valid\b|\w+n't (?:a )?valid\b|(?:enter|specify|provide|use|choose|select|pass|supply) (?:an? )?valid\b|no input\b|not enough (?:segments|values|arguments|columns|parts|bytes|characters)\b|not defined\b|symbolic links|\bmismatch(?:ed)?\b|could not be broadcast|singular matrix|not in (?:the )?schema|is this really|contains (?:whitespace|illegal|control|null)|\billegal\b|\bmalformed\b|\bincorrect\b|bad (?:request|argument|value|parameter|input|data|format|zip|type|escape|file)|unprocessable|\bvalidation\b|\bmissing\b|(?:is|are) (?:a )?required|required (?:field|parameter|property|argument|key)"
        r"|(?:unknown|unexpected|unrecogni[sz]ed) (?:\w+ )?(?:field|parameter|option|argument|attribute|property|keyword|value|type|format|key|character|name|arg|flag|file|extension|identifier|variable|token)|expected (?:\S+ ){1,12}(?:got|but|received|found|instead)|out of (?:range|bounds)|(?<!went )(?<!is )(?<!gone )\bwrong (?!on|with|while|when|in|at|answer|reply|response)\w+|(?:could not|cannot|can't|unable to|failed to) (?:convert|decode|cast|interpret|coerce|identify|understand|read(?! from (?:the )?(?:socket|remote(?! repo)|server|connection|upstream|stream|pipe|network|peer))|encode|deserialize|unmarshal|marshal|index|iterate|handle (?!(?:the |this |your )?(?:requests?|load|traffic|volume)\b)|process (?:the |this |your )?(?:image|file|input|audio|video|document))"
        r"|is (?:empty|null|none|too short|too small|too long|negative|ambiguous)\b|\bempty (?:csv|label|name|value|key|file|input|body|string|list|document|data|sheet|page)\b|\bno data\b|not allowed\b|(?:type|shape|length|size|dimension) ?mismatch|\b(?:no (?!(?:\w+ )?(?:reason|cause|details?|message|explanation|description|information)\b)(?:\w+ ){1,3}|(?!(?:reason|cause|details?|message|explanation|description|information|is|was|are|were)\b)\w+ (?:is |was |are |were )?not )(?:provided|specified|given|supplied)\b|(?:does|did|do)(?: not|n't) match\b|\bcorrupt(?:ed)?\b|\btruncated\b|not (?:a |an )?(?:zip|pdf|image|number|integer|string|known|recogni[sz]ed)|(?:value|parameter|argument) (?:error|exception)|constraint|\bparse\b|\bdecode error|unknown (?:\w+ )?(?:code|name|value|unit|currency|locale)\b|not a (?:\w+ )?(?:repository|directory|file)\b|format error\b|conversion (?:\S+ ){0,6}failed|(?:smaller|less|lower|shorter|fewer) than (?:the )?(?:min|required|expected|allowed)|strict mode violation|empty sequence|undeclared (?:reference|variable|identifier)|lex(?:er)? error|grammar error|unexpected input|\bbad (?!answer|command|connection|day|gateway|handshake|luck|news|reply|response|state|status)\w+|(?:does not|doesn't|do not|don't) (?:appear|seem|look) (?:to|like)(?! (?:be |it is )?(?:up|running|respond\w*|alive|online|available|reachable|ready|connected|work\w*)\b)",
        "invalid",
    ),
    Phrase("bad request", "requ", r"bad request: \w", "invalid", firm=True),
    Phrase(
        "conflict by name",
        "conf",
        r"\bconflict(?: error| exception)?$|^conflict: |ha(?:s|ve) (?:merge )?conflicts\b",
        "conflict_state",
    ),
    # --- plain sentences, without a word that only errors use ---
    Phrase(
        "out of time",
        "time wait",
        r"(?:exceeded|over|used up) (?:the |its |a )?(?:\w+ )?time (?:budget|limit|allowance)\b|waited (?:for )?(?:more than |over )?\d{1,6} ?(?:s|ms|sec|seconds?|minutes?)\b",
        "timeout",
        guess=True,
    ),
    Phrase(
        "it crashed",
        "cras died exit quit vani went",
        r"(?:app|browser|container|instance|kernel|page|process|renderer|runtime|sandbox|server|session|tab|worker) (?:has |had )?(?:\w+ )?(?:crashed|exited|died|quit|went away|vanished)\b",
        "disconnected",
        guess=True,
    ),
    Phrase(
        "not let in",
        "admi allo auth crea memb mode orga owne perm",
        r"(?:does not|doesn't|do not|don't) (?:permit|allow)\b(?! (?:more than|that many))|only (?:the |an? |its )?(?:\w+ )?(?:owners?|admins?|administrators?|members?|moderators?|creator|author|organi[sz]er)(?: \w+){0,4}? (?:can|may) \w+",
        "forbidden",
        guess=True,
    ),
    Phrase(
        "limit of the account",
        "add limi",
        r"(?:has|have) (?:reached|hit) (?:its|your|their) (?!(?:\w+ )?(?:rate|request|connection)s?\b)(?:\w+ ){1,3}limit\b|(?:will|would) exceed your (?!(?:\w+ )?(?:rate|request|connection)s?\b)(?:\w+ ){1,2}limit\b|(?:resource|server|volume|instance|project|seat|user|account) limit (?:is |was |has been )?(?:exceeded|reached)\b|add (?:an? )?(?:valid )?(?:payment method|credit card|billing)\b",
        "quota",
        guess=True,
    ),
    Phrase(
        "expired certificate",
        "cert",
        r"certificate\b[^.;]{0,60} (?:has |is |was )?expired\b",
        "certificate",
        guess=True,
    ),
    Phrase(
        "none configured",
        "conf defi",
        r"no (?:\w+ ){1,4}(?:is |was )?(?:configured|defined)\b",
        "misconfigured",
        guess=True,
    ),
    Phrase(
        "nothing matched",
        "matc",
        r"(?:nothing|zero|none|(?<!\d)0 \w+) (?:was |were )?matched\b",
        "not_found",
        guess=True,
    ),
    Phrase(
        "one of the two",
        "both one",
        r"both [^.;]{1,60} (?:given|set|specified|passed|provided)\b|only one (?:of \w+ )?(?:is|may be|can be) (?:allowed|given|set|used)\b",
        "invalid",
        guess=True,
    ),
    Phrase(
        "made before",
        "alre befo earl",
        r"(?:has|have) (?:already )?been (?:created|added|imported|registered|submitted|used) (?:before|earlier)\b",
        "exists",
        guess=True,
    ),
    Phrase(
        "first the other",
        "befo depe stil",
        r"before (?:you )?(?!(?:retry|try|re-)\w*)\w+ing (?:it|them|this|that)\b|\bdepends on\b|\bstill (?:open|in use|attached|pending|referenced|linked|has|have|contains)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "for some only",
        "inte mean open rese vali",
        r"(?:valid|meant|intended|open|reserved) for [^.;]{1,40} only\b|only (?:valid|meant|intended|open) for\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "confirm it first",
        "conf veri",
        r"(?:email|address|phone|number|account|identity)(?: \w+)? not (?:yet )?(?:verified|confirmed)\b|confirm your\b|verify your\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "patch that does not fit",
        "appl fail",
        r"(?:does not|doesn't|did not|didn't) apply\b|hunk \d+ failed",
        "invalid",
        guess=True,
    ),
    Phrase(
        "gave up waiting",
        "afte gave give givi took wait",
        r"took (?:longer than|too long|more than \d)|(?:gave|given|giving) up (?:on it|waiting|after \d{1,6} ?(?:s|ms|sec|min))",
        "timeout",
        guess=True,
    ),
    Phrase(
        "nothing listens",
        "list runn serv",
        r"(?:nothing|no (?:process|server|service|one)) (?:is |was )?(?:listening|running|serving)\b",
        "refused",
        guess=True,
    ),
    Phrase(
        "election",
        "elec lead prim",
        r"(?:leader|primary|master|coordinator|new one)\b.{0,40}\b(?:elected|electing|election)\b|election (?:is )?(?:in progress|running|underway)|no (?:leader|primary) (?:is |was )?(?:available|elected|yet)",
        "unavailable",
        guess=True,
    ),
    Phrase(
        "changed by others",
        "alte chan edit mean modi over relo save sinc upda vers",
        r"(?<!being )(?:changed|modified|edited|updated|altered|overwritten) (?:\w+ )?(?:by (?:somebody|someone|another|anybody|a different|other)|since (?:you|it|the|your|they)\b|in the meantime|meanwhile)|(?:somebody|someone|another user) (?:else )?has (?:changed|modified|edited|updated|saved)\b|newer version (?:\w+ ){0,3}(?:exists|is|was|has)\b|reload (?:it |the page |first |and )",
        "stale",
        guess=True,
    ),
    Phrase(
        "taken back",
        "acce auth cons gran revo",
        r"(?:grant|consent|authori[sz]ation|access) (?:was|is|has been) (?:revoked|withdrawn)\b",
        "unauthenticated",
        guess=True,
    ),
    Phrase(
        "credential looks wrong",
        "appe look seem",
        r"(?:keys?|tokens?|secrets?|passwords?|credentials?|signatures?)\b (?:\w+ ){0,4}(?:does(?:n't| not)|do(?:n't| not)) (?:look|seem|appear)\b|(?:keys?|tokens?|passwords?|credentials?) (?:\w+ ){0,3}(?:looks?|seems?|appears?) (?:to be )?(?:wrong|incorrect|invalid|malformed|truncated|expired|off)",
        "unauthenticated",
        guess=True,
    ),
    Phrase(
        "another plan",
        "edit lice plan subs tier upgr",
        r"(?:available|included|offered|enabled) (?:only )?(?:on|in|for|to|with|under) (?:\w+ ){0,5}(?:plans?|tiers?|subscri(?:bers?|ptions?)|editions?|licen[cs]es?)\b|(?:upgrade|subscribe) (?:your (?:plan|account|subscription) |now |today )?(?:to|for) (?:\w+ ){0,3}(?:plan|tier|pro|premium|plus|enterprise|business|keep|continue|unlock|use|access|get)\b|(?:requires?|needs?) (?:an? )?(?:\w+ ){0,2}(?:plan|subscription|licen[cs]e|upgrade)\b",
        "forbidden",
        guess=True,
    ),
    Phrase(
        "used up",
        "cred free lice memb minu out sear subs tria used zero",
        r"used (?:up )?(?:all|up|every)\b.{0,30}\b(?:credits?|quota|requests|searches|minutes|calls|allowance)\b|(?:ran|run) out of (?:\w+ )?(?:credits?|quota|searches|minutes|calls)\b|(?:no|zero) (?:\w+ )?(?:credits?|searches|minutes) (?:are )?(?:left|remain)|trial (?:\w+ ){0,3}(?:ended|expired|over|finished)\b|(?:subscription|licen[cs]e|membership) (?:has |have |is |was )?(?:ended|lapsed|expired|inactive|run out|over)\b|free (?:tier|trial|quota|credits?|plan) (?:\w+ ){0,3}(?:used|exhausted|over|ended)\b",
        "quota",
        guess=True,
    ),
    Phrase(
        "no match",
        "cont corr docu entr even foun issu item long matc none prod reco resu row rows user",
        r"(?:no|none of the) (?:results?|records?|rows?|entries|items?|documents?|users?|issues?|events?|contacts?|products?) (?:\w+ ){0,3}(?:match|match(?:es|ed)|correspond|have|has|found)\b|no longer (?:on|part of|attached|present|there|exists?)\b|no longer in (?!service|use|sync)",
        "not_found",
        guess=True,
    ),
    Phrase(
        "name taken",
        "alre clai take",
        r"(?:name|email|address|id|slug|handle|number|title|key|domain|path|file|folder|branch|user\w*)(?: \w+){0,6}? (?:already (?:there|taken|used|in use|present|registered|claimed)|(?:has been|is|was) (?:already )?(?:taken|claimed))\b",
        "exists",
        guess=True,
    ),
    Phrase(
        "too little of it",
        "enou too",
        r"(?:balance|funds|money|credit|stock|inventory)\b.{0,40}\b(?:too low|not enough|too small)\b|(?:not enough|too little|too few) (?:\w+ )?(?:balance|funds|money|credit|stock|inventory|units|seats|points)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "fewer than that",
        "avai cont end exis last long only ther",
        r"(?:there (?:are|is)|has|have|contains?|had) only \d|only has \d|only \d{1,9} (?:\w+ )?(?:pages?|rows?|lines?|items?|columns?|elements?|entries|tabs?|frames?|slides?|sheets?) (?:exist|are (?:there|available)|long)|(?:past|beyond) the (?:end|last)\b",
        "out_of_range",
        guess=True,
    ),
    Phrase(
        "changes that are open",
        "chan conf edit file modi path",
        r"(?:uncommitted|unsaved|unstaged|unmerged|unpushed|pending|outstanding|unresolved) (?:\w+ )?(?:changes|modifications|edits|files|paths|conflicts)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "none for that",
        "acti func skil tool",
        r"(?:do not|don't|have no) (?:have )?(?:an? )?(?:tool|function|action|skill) (?:for|to|that|which|called|named)\b",
        "no_such_tool",
        guess=True,
    ),
    Phrase(
        "not offered",
        "impl offe",
        r"(?:does|do|did)(?: not|n't) (?:implement|offer)\b",
        "not_implemented",
        guess=True,
    ),
    Phrase(
        "only those",
        "acce admi allo call exec only perm run used",
        r"only (?:\w+ ){1,4}(?:statements?|queries|commands?|operations?|users?|members?|admins?|administrators?|owners?|hosts?|domains?|addresses)(?: \w+){0,3}? (?:are|is|can be|may be|can|may) (?:\w+ )?(?:allowed|permitted|accepted|executed|run|used|call\w*|do|access)\b",
        "forbidden",
        guess=True,
    ),
    Phrase(
        "give it",
        "afte come eith end exac fall foll happ late leas lie need one past prec shou vali",
        r"(?:provide|specify|give|supply|pass|enter|select|choose|include|set) (?:at least |exactly |a valid |one of |either )|(?:must|has to|have to|should|needs? to) (?:come|happen|lie|fall|precede|follow) |(?:start|begin|from)\w*(?: \w+){0,3} (?:after|later than|past) (?:the )?(?:end|to)\b",
        "invalid",
        guess=True,
    ),
    Phrase(
        "in use by another",
        "alre chan curr edit hold modi stil upda usin work writ",
        r"(?:user|somebody|someone|else|person|process|client|session|agent) (?:is|are) (?:currently |already |still )?(?:editing|using|modifying|holding|changing|updating|writing|working)\b",
        "locked",
        guess=True,
    ),
    Phrase(
        "locked machine",
        "lock",
        r"(?:server|instance|volume|machine|vm|resource) is (?:currently |still )?locked\b",
        "locked",
        guess=True,
    ),
    Phrase(
        "wait a little",
        "afte few hold hour minu mome seco time wait",
        r"(?:be|is|are) (?:back|up|online|available)(?: up| again| online)* (?:within|after) (?:an? |the )?(?:next )?(?:few )?\w+ (?:\w+ )?(?:minutes?|moments?|hours?|seconds?)\b|give (?:it|us|me) (?:an? )?(?:few |couple of )?(?:minutes?|moments?|seconds?|more time)\b|hold on\b|(?:please )?wait (?:until|for (?:it|them|that|the (?:other|previous|running)))\b",
        "unavailable",
        guess=True,
    ),
    Phrase(
        "so many in a time",
        "hour minu sear seco",
        r"(?:one|two|three|\d{1,6}) (?:api |search )?(?:requests?|calls?|messages?|searches|queries) (?:per|every|each|a|an) (?:\d+ )?(?:second|minute|hour)s?\b",
        "rate_limited",
        guess=True,
    ),
    Phrase(
        "does not seem to run",
        "appe look seem",
        r"(?:not|n't) (?:seem|appear|look) to be (?:running|up|started|alive|online|listening|available|reachable|connected)\b",
        "refused",
        guess=True,
    ),
    Phrase(
        "stopped in the middle",
        "midd",
        r"(?:ended|stopped|broke(?: off)?|closed|cut off|stops|ends) in the middle\b",
        "garbled",
        guess=True,
    ),
    Phrase(
        "ran too long",
        "ran wait",
        r"ran for (?:more|longer) than\b|waiting (?:for )?\d{1,6} ?(?:s|ms|sec|seconds?|minutes?)\b",
        "timeout",
        guess=True,
    ),
    Phrase(
        "for those who may",
        "ask bots cont feat gues let mean not welc",
        r"(?:ask|contact) (?:the|an?|your) (?:\w+ )?(?:owner|admin|administrator|organi[sz]er|manager|moderator)\b|(?:not|n't) let (?:you|users|me|us|them|it)\b|(?:paid|premium|pro|enterprise|business)(?:-only)? feature\b|(?:not|n't) welcome\b|not (?:meant )?for (?:you|guests|bots)\b",
        "forbidden",
        guess=True,
    ),
    Phrase(
        "who are you",
        "auth log logi sign",
        r"(?:authenticate|log ?in|sign ?in) (?:once more|again|first|before|to (?:continue|use|access))\b",
        "unauthenticated",
        guess=True,
    ),
    Phrase(
        "used up by you",
        "used",
        r"(?:searches|credits?|quota|requests|queries|calls|minutes|messages)\b[^.;]{0,40} (?:is|are|was|were|have been|has been) (?:all )?used(?: up)?\b",
        "quota",
        guess=True,
    ),
    Phrase(
        "no room",
        "room spac",
        r"no (?:more )?(?:room|space) (?:for|left|on|in)\b",
        "storage_full",
        guess=True,
    ),
    Phrase(
        "already one of them",
        "alre paid",
        r"already (?:an? )?(?:member|subscriber|participant|owner|friend|following|subscribed|enrolled|joined|invited)\b|already (?:paid|refunded|shipped|cancell?ed|booked|submitted)\b|(?:was|were|been) paid (?:on|at|in full|already)\b",
        "exists",
        guess=True,
    ),
    Phrase(
        "none of that name",
        "addr call emai hand key name nobo none numb one see titl with",
        r"(?:nobody|no one|none) (?:\w+ )?(?:with|called|named|has|by|is called)\b|no (?:(?!reason|cause|details?|message|explanation|problem|issue|error|response|reply|answer|connection)\w+ ){1,2}(?:with (?:the |that |this |an? )? ?(?:id|name|number|address|email|key|title|handle)|called|named)\b|(?:can't|cannot|can not|couldn't|could not) see (?:any|an?|the|that)\b",
        "not_found",
        guess=True,
    ),
    Phrase(
        "compared with the other",
        "afte befo equa exac iden same than",
        r"(?:is|are|was|were) (?:\w+ )?(?:longer|shorter|larger|smaller|greater|higher|lower|bigger|fewer|earlier|later|older) than\b|(?:lies|comes|falls|is|are) (?:before|after) (?:the|its|that|your)\b|(?:are|is) (?:exactly )?(?:the same|identical|equal)\b",
        "invalid",
        guess=True,
    ),
    Phrase(
        "does not parse",
        "add comp didn fit make pars unba uncl unma unte",
        r"(?:did not|didn't|does not|doesn't) (?:compile|parse|make sense|fit|add up)\b|(?:unbalanced|unterminated|unclosed|unmatched) \w+",
        "invalid",
        guess=True,
    ),
    Phrase(
        "not understood",
        "know reco unde",
        r"(?:do not|don't|did not|didn't|could not|couldn't) (?:quite )?(?:understand|recogni[sz]e|know)\b",
        "invalid",
        guess=True,
    ),
    Phrase(
        "nothing to do",
        "noth",
        r"nothing (?:to|for) (?:commit|edit|change|update|do|delete|undo|merge|send|apply|convert|show)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "closed for that",
        "alre arch book canc clos curr ende fill full halt lock now only over pass sold take",
        r"(?:shops?|stores?|markets?|accounts?|issues?|tickets?|orders?|periods?|events?|registrations?|polls?|auctions?|bookings?|sales?|offers?|positions?|cases?|projects?|restaurants?|offices?|seats?|tables?|rooms?|invoices?|threads?|topics?|pull requests?|merge requests?|courses?|applications?|deadlines?|trading)\b(?: (?!connection|stream|socket)\w+){0,6}? (?:is|are|was|were|has been|have been|has|have) (?:already |now |currently )?(?:closed|over|locked|full|ended|cancell?ed|taken|booked|sold|passed|filled|archived|halted)\b|market (?:is )?closed\b|only \w+ (?:of (?:the|an?) \w+ )?(?:can|may) \w+ (?:this|it|them)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "you cannot",
        "able you",
        r"you (?:can't|cannot|can not|may not|aren't able to|are not able to|can only|have to|must) (?!(?:\w+ )?(?:wait|retry|try|slow|repeat|do that yet))(?!.{0,80}\b(?:right now|yet|until|while|at the moment|later|again|currently)\b)\w+",
        "precondition",
        guess=True,
    ),
    Phrase(
        "do that instead",
        "choo clos crea dele deta disa eith enab ente erro exac fail one pass pick remo sele set spec star stop unlo use",
        r"^(?:error: |tool error: |failed: )?(?:choose|pick|select|specify|enter|stop|close|start|create|delete|remove|enable|disable|unlock|detach|use|pass|set) (?!.{0,80}\b(?:again|later|retry|wait)\b)(?:one of|an?|the|your|either|only|exactly)\b",
        "precondition",
        guess=True,
    ),
    Phrase(
        "change something first",
        "resu retr subm try tryi",
        r"(?:add|adjust|change|check|close|configure|correct|create|decrease|delete|enable|fix|install|modify|provide|reduce|remove|rename|set|shorten|specify|update|upgrade|use|verify) "
        r"(?!(?:\w+ ){0,3}?(?:internet|network|connection|connectivity|wi-?fi|vpn|proxy|firewall|status|server|page|app|dialog|window|browser|button|backoff|back-off|frequency|rate|wait)\b)[^.;\n]{1,80}? (?:and|then|before) (?:then )?(?:try(?:ing)?|re-?try(?:ing)?|re-?submit)\b(?! later| in )",
        "precondition",
        guess=True,
    ),
    Phrase("right now", "mome now time", r"(?:right now|at the moment|at this time)\b", "unavailable"),
    Phrase(
        "cannot be done",
        "beca can cann firs long woul",
        r"(?:cannot|can't|can no longer|can not) be (?!contacted|served|established|opened|locked|loaded|displayed|fetched|retrieved|delivered|fulfilled|reached|acquired|obtained|processed|completed|handled|connected|executed|assumed)\w+ed\b(?! (?:right now|at (?:th|present)|currently|yet))|(?:cannot|can't|can not) (?!be \w+ (?:right now|at th))\w+ [^.;\n]{1,80}? because\b(?!.{0,60}\b(?:running|in progress|busy|locked|starting|down|offline|unavailable|loading)\b)|would be (?:overwritten|lost)\b|(?:cannot|can't|can not) (?:add|alter|append|apply|assign|cast|change|combine|compare|concatenate|delete|drop|edit|infer|insert|join|merge|mix|modify|nest|override|overwrite|reference|remove|rename|set|subtract|use)\b(?!.{0,80}\b(?:while|until|yet|right now|currently)\b)|(?:read|open|create|call|run|initiali[sz]e|start|select|load|connect) \S+ first\b",
        "precondition",
        guess=True,
    ),
    Phrase("try again", "agai", r"\btry(?:ing)? again\b(?! with)", "unavailable"),
    Phrase(
        "aborted by the caller", "abor", r"aborted by (?:the |its |a )?(?:user|client|caller|consumer)\b", "cancelled"
    ),
    Phrase(
        "aborted",
        "abor canc",
        r"\b(?:cancell?ed|aborted) by (?:the |its )?(?:remote |upstream )?(?:server|service|peer|host|backend|upstream|provider)\b|(?:operation|request|call|execution|task|job|query|rpc) (?:was |has been |is |got )?aborted\b|\baborted by\b|^aborted\b",
        "aborted",
    ),
    Phrase("cancelled", "canc", r"\bcancell?ed\b", "cancelled"),
    Phrase(
        "server error",
        "back erro fail inte issu our prob serv",
        r"internal (?:server )?(?:error|failure|exception|fault)|on our (?:end|side|servers?)\b|one of our (?:servers|backends|systems)|(?:server|we) (?:had|encountered|experienced|ran into) an? (?:\w+ )?(?:error|issue|problem|failure)|server (?:\w+ )?(?:error|failure|fault)|backend error",
        "server_error",
    ),
    Phrase(
        "network",
        "comm conn fetc netw prot read rece send sock tran writ",
        r"(?:network|connection|communication|communications|transport|socket|protocol) (?:link )?(?:error|failure|failed|exception|problem|issue)|fetch failed|(?:read|receive|write|send)(?:ing)? (?:data |bytes )?(?:from|to) (?:the )?(?:socket|remote|server|connection|upstream|peer|network)\b",
        "disconnected",
    ),
    Phrase(
        "not yet",
        "alre are aren curr dead has hasn have isn not requ time was wasn were with yet",
        r"(?:not|n't) (?:[\w-]+ ){0,9}?(?:yet|currently|in time|within|before the (?:deadline|timeout))\b|(?:is|are|was|were|has|have)(?:n't| not) (?:currently |been |yet )*(?:answer|reply|replied|respond|reach|acknowledg|acked|acquir|obtain|releas|elect|elapse|schedul|synced|replicat|caught|heard|contact|serv|open\b|back\b|in sync|warm|function|operat|keeping|taking|loading|start|complet)\w*"
        r"|already (?:\w+ing\b|underway|queued|held|in recovery|(?:been )?(?:reached|locked))|(?:connection|session|channel|socket|stream|pool|transport|client) (?:\w+ ){0,3}already (?:been )?(?:closed|shut)|requires (?:an? )?(?:more |few |short |some |little )*(?:time|moment|minutes?|seconds?|break)\b|(?:cooldown|window|timer|interval|lease|ban|backoff|back-off|limit) has(?:n't| not) (?:\w+ )?(?:expired|elapsed|passed|reset|ended)|not waited\b"
        r"|(?:shards?|replicas?|nodes?|cluster|quorum|brokers?|partitions?|coordinator|server|host|daemon|heartbeat|runner|workers?|connection|pods?|kernel|gateway|upstream|backend|device) (?:is|are|was|were|has|have)(?:n't| not| been not| already) (?!a\b|allowed|authori[sz]ed|been configured|compatible|configured|defined|enabled|exist|found|in\b|installed|known|licensed|listed|permitted|registered|supported|trusted|valid)\w+"
        r"|(?:has|have) no (?:\w+ ){0,2}(?:free|idle|available|spare|active|ready|running|healthy|network|internet|connectivity|leader|workers|slots|threads|endpoints|backends|memory|nodes)\b",
        "unavailable",
        guess=True,
    ),
    # --- statements about a state, not about the network ---
    Phrase(
        "says what is not so",
        "alre arch are aren been deac froz has hasn have isn not requ revo susp was wasn were",
        r"(?:(?:is|are|was|were|has|have|been) (?:already|not)|(?:is|are|was|were|has|have)n't) (?:been )?+(?!(?:able|accepting|alive|answered|available|clear|complete|completed|connected|delivered|done|enough|established|executed|expected|finished|fulfilled|fully|good|handled|healthy|initialised|initialized|known|loaded|ok|online|performed|possible|processed|reachable|ready|received|recovered|reported|resolved|respond|responding|responsive|returned|right|running|sent|stable|started|successful|sure|the|up|what|work|working|yet)\b)\w+"
        r"|requires (?:an? |the |at least )?\w+|(?:has|have) no (?!answer|capacity|connection|effect|reply|response|result)\w+|(?:has been|is|was) (?:archived|deactivated|frozen|revoked|suspended)\b",
        "precondition",
        guess=True,
    ),
)
