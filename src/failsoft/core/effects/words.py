"""Tables of the words by which reads and writes are recognised.

Each table says how a word behaves in a tool's name or at the start of its description. No row is the name of one tool:
rows are verbs, nouns and particles of the language that APIs are written in. ``core.effects.recognition`` has the rules.
"""

from __future__ import annotations

from typing import Literal


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_words = split_words


# Verbs that only ask or compute. They decide wherever they stand in a name.
READS = _words("""
    get list read fetch retrieve search find show view describe lookup check count query browse display inspect
    examine explore discover enumerate locate identify determine peek
    calculate compute estimate compare summarize summarise translate parse extract detect classify recognize recognise
    recommend suggest predict filter sort rank validate preview convert diff autocomplete introspect wait
    aggregate explain interpret infer deduce diagnose troubleshoot forecast tokenize transcribe paraphrase decode
    srch qry lst chk inquire enquire geolocate quantify solve average exists contains lint grep glob ls stat nslookup traceroute whois desc calc geocode
    assess appraise ascertain correlate contrast crosscheck crossref decipher decompile disassemble extrapolate
    interpolate gauge probe proofread spellcheck lemmatize rerank tabulate tally typecheck uncover triangulate ocr
    divide factorial modulo
""")

# The same, but only as a name's first word: elsewhere they are nouns or auxiliary verbs.
READS_FIRST = _words("""
    is has are can does was were should what whats which who whos where when why how see head tail measure cat sum
    df uptime printenv hostname research
""")

# Adjectives that begin the names of things to look at: "latest_news", "nearest_airport".
READS_BEFORE_NOUN = _words("""
    current latest nearest closest recent available upcoming top popular trending nearby cheapest todays
    historical similar related pending overdue unread abandoned
    remaining active
""")

# Verbs that change something. They decide wherever they stand in a name.
WRITES = _words("""
    create delete update remove insert add put patch upsert write save store edit modify change replace rename move copy
    clone duplicate append prepend upload publish submit send resend cancel reserve purchase buy sell pay charge refund
    withdraw deposit checkout subscribe register deregister enroll enrol login logout signin signup signout authenticate
    authorize authorise activate enable disable start stop restart reboot pause resume launch terminate kill shutdown
    trigger dispatch deploy rollback revert restore reset clear purge wipe flush truncate destroy erase archive trash
    approve reject accept decline deny grant revoke assign attach detach associate dissociate connect unlink bind invite
    join leave kick ban mute follow reply respond mark pin reschedule postpone renew confirm complete finish close reopen
    merge push import migrate sync synchronize upgrade downgrade install uninstall configure setup initialize initialise
    initiate provision allocate acquire unlock rotate notify announce broadcast tweet increment decrement increase
    decrease adjust toggle press click fill drag hover scroll navigate apply ensure donate redeem invest swap mint
    manage ingest train abort dismiss escalate delegate hire promote demote suspend ship deliver play skip enqueue
    dequeue pop populate remember forget undo redo expire evict invalidate compose prescribe fulfill fulfil
    lend borrow repair amend alter override overwrite rebase reorder resize remind snooze compress decompress emulate
    evolve invoke execute exec process handle claim acknowledge admit discharge transition arm brew boil pick unmute
    rent raise lower begin inject extend interact tweak bump optimize tune refresh rebuild clean prune shuffle
    mutate consume checkin rsvp abandon advance deprecate finalize finalise retry reload distribute failover establish instantiate hide
    retract hibernate rerun propose restrict redact expunge credit debit nominate convene prolong reassign relocate
    rearrange randomize calibrate spend remit disburse transact deduct reimburse payout topup settle dial summon hail sms
    fax init ack
    regenerate reimage recycle reconcile rebalance defer ignore react upvote downvote endorse nudge tap swipe paste mkdir
    rmdir rm mv chmod chown onboard offboard whitelist blacklist allowlist blocklist quarantine remediate liquidate
    airdrop delist preheat defrost dispense irrigate autoscale cordon uncordon defragment stash squash vacate expel
    upd updt rmv chg snd cxl xfer minimize minimise maximize maximise customize customise personalize personalise replenish restock rescind annul forfeit relinquish crosspost prepare persist refuel autofix del relist uncheck deselect freeze handoff flip recharge
    refactor organize organise cleanup teardown takedown nack taint untaint boot honk fix
    accelerate accumulate adjourn administer affix allot automate banish bequeath compensate confine confiscate
    consolidate contribute decommission dedupe deduplicate demolish deplete detonate disband dismantle dissolve divert eject elevate
    eliminate emit empower enact enforce engrave enlist entitle erect evacuate exempt expedite extinguish fabricate
    finetune halt hoist ignite impose inactivate incorporate inflate inform instruct interrupt jettison kickoff
    litigate logoff mandate manufacture mediate mitigate mobilize monetize multicast negotiate neutralize nullify
    obliterate offload orchestrate oust penalize preempt preorder prohibit purify recruit rectify reduce refurbish
    rehire reinstate remap remarket remodel remunerate renegotiate reprice reprint reprogram requisition rescue
    reseed respawn restyle resurrect retain retarget retire retransmit rewind scaffold seek sideload stabilize
    strengthen sublet subsidize substitute supersede suppress teleport thaw transmit transplant uproot upsell vaccinate
    withhold annotate isolate expose cp
    adopt declare nuke disclose unveil boost
    backfill rekey reroute waitlist chargeback unlist
""")

# Verbs that change something, and are nouns as well. They count as verbs only as a name's first word.
WRITES_FIRST = _words("""
    post book order place request report contact email message text call phone comment mention like share vote rate
    tag label flag star bookmark favorite schedule transfer fund link block lock release record log draft trade exchange
    return issue index queue fork commit resolve bid water note escrow stake group fire light feed ring
    wire bill invoice page tip gift award
    forward lease scale drain snapshot backup checkpoint bet wager burn harvest park dock void grade touch
    rollout stage bridge alert hold sweep cap zero double halve adj heat cool mod supply
    vacuum zip
    arrange assemble auction bounce brick buzz exit flash fuse knock lift maintain mount pack pair plug
    polish pour pump punch quit raffle refer seal secure seed shelve shoot shred shrink shut silence snooze soften
    spawn splice sponsor spray squeeze stamp steer stitch tackle throttle throw tie tighten toss tow
    triple twist unload upscale veto wake warm warn waive weld whisper widen yank zap compact pledge sanction permit
    relay triage
""")

# Verbs that change something unless they end a name: "set_status" does, a "data_set" does not.
WRITES_IN_FRONT = _words("""
    set turn switch sign drop empty build make pull type format dim cook split engage end watch
""")

# Nouns that are actions at the end of a name without a verb: "bank_transfer", "git_commit".
WRITES_LAST = _words("commit transfer payment forward scale")

# Verbs that may read or write, or that make something without storing it. The description decides.
OPEN = _words("""
    generate export download verify test simulate evaluate analyze analyse track monitor load open take capture
    screenshot scrape crawl print ask poll receive ping collect use help think demo debug audit benchmark profile recall select render scan define analyze analyse next previous cast
""")

# Verbs without a meaning of their own: the next word decides. "run_search" is a search, "run_job" changes something.
LIGHT = _words("run perform execute exec conduct make do")
LIGHT_READS = _words("search lookup calculation comparison")
LIGHT_OPEN = _words(
    "query queries sql cypher graphql analysis analytics audit scan test tests report request check statement"
)

# Verbs after a noun that is also a verb of OPEN: "monitor_create", "export_list".
MANAGES: dict[str, Literal["read", "write"]] = {
    **dict.fromkeys(_words("create delete update remove start stop cancel send"), "write"),
    **dict.fromkeys(_words("get list"), "read"),
}

# Nouns before "set" at the end of a name where it is a verb: "json_set", but not "data_set".
SETTABLE = _words("json value key config variable var env flag mode status option property cookie header attribute")

# An article after a word of WRITES_FIRST shows that the word is a verb, even inside a name: "github_star_a_repo".
ARTICLES = _words("a an the")

# Services whose name begins the names of their tools. The next word is a verb: "slack_post_message".
SERVICES = _words("""
    slack github gitlab gmail jira linear notion discord telegram twitter linkedin facebook instagram whatsapp spotify youtube
    hubspot salesforce zendesk intercom stripe paypal shopify trello asana todoist airtable zoom outlook teams gcal gdrive
    googlecalendar googledrive googledocs googlesheets dropbox reddit twilio sendgrid mailchimp confluence bitbucket
    pagerduty opsgenie sentry datadog supabase firebase calendly figma browser mobile playwright puppeteer android ios hass
    weaviate pinecone milvus qdrant chroma redis mongodb postgres mysql sqlite dynamodb snowflake bigquery elasticsearch zotero obsidian
    wikipedia arxiv tavily firecrawl heroku netlify vercel cloudflare proxmox grafana prometheus webflow wordpress
    quickbooks xero monday clickup ynab pipedrive airbnb duckduckgo stackoverflow hackernews perplexity bluesky mastodon coingecko binance strava fitbit pg kube k8s aws gcp azure
""")

# Words which show that the word before them is a noun, not a verb: "text_to_speech".
PREPOSITIONS = _words("to by of for per in on from with and or")

# Activities that a call starts, even if the description mentions only their results.
ACTIVITIES = _words("audit scan benchmark crawl backup job")

# Nouns for actions. Performing one changes something: "Performs a money transfer".
DEEDS = _words(
    "transfer payment refund booking purchase reservation trade withdrawal deposit upgrade migration deployment reset"
)

# Programs that can do anything: "Run a bash command" changes something, "Run a report" may not.
PROGRAMS = _words("command commands shell script scripts code")

# Languages that can express anything. With one of these words a "query" may be a DELETE as well as a SELECT.
LANGUAGES = _words("sql cypher graphql cql db database code script command shell")

# Words that turn a read before them into a write: "get_or_create", "search_and_replace", "read_then_mark".
CONJUNCTIONS = _words("or and then")

# A particle after a verb changes what the verb does: "check_in", "sign_up", "look_up".
PHRASAL_WRITES = {
    **dict.fromkeys(_words("check log"), _words("in out off")),
    **dict.fromkeys(_words("clock opt fill"), _words("in out")),
    **dict.fromkeys(_words("set clean back top warm bring hang"), _words("up")),
    **dict.fromkeys(_words("shut tear wind"), _words("down")),
    **dict.fromkeys(_words("spin ramp"), _words("up down")),
    "sign": _words("in up out off"),
    "power": _words("on off cycle"),
    "scan": _words("in out"),
    "turn": _words("on off up down"),
    "switch": _words("on off to"),
    "roll": _words("back out"),
    "take": _words("over down"),
    "hand": _words("over off to"),
    "go": _words("back forward"),
    **dict.fromkeys(_words("show display"), _words("on")),
    "browse": _words("to"),
    "get": _words("rid"),
    "http": _words("post"),
}
PHRASAL_READS = {"look": _words("up at for")}

Objects = tuple[tuple[frozenset[str], frozenset[str]], ...]

# Verbs that change something only with such an object, which may have adjectives: "open_bank_account", "capture_payment".
ACTS_ON: Objects = (
    (_words("generate print"), _words("invoice order payment refund voucher coupon ticket label labels receipt")),
    (_words("print fax mail"), _words("document page")),
    (
        _words("take collect capture give"),
        _words("""payment payments deposit debt donation donations fee fees fund funds charge charges money order authorization
                  access permission permissions refund discount ownership lock"""),
    ),
    (_words("use load"), _words("coupon voucher credit credits points wallet")),
    (
        _words("open file"),
        _words(
            "account ticket position case dispute issue order complaint claim appeal bug lawsuit expense expenses taxes pr"
        )
        | {"pull request", "merge request"},
    ),
    (_words("show display"), _words("notification toast dialog popup banner modal")),
    (_words("extract unpack"), _words("archive tarball method")),
    (_words("check tick"), _words("checkbox box")),
    (_words("sort"), _words("range inbox")),
    (_words("open engage"), _words("door garage gate valve app tab browser url")),
    (_words("next previous"), _words("song track episode webpage slide")),
    (_words("tokenize"), _words("card payment account")),
    (_words("recall"), _words("email message product")),
    (_words("take"), _words("attendance")),
    (_words("cast"), _words("vote votes ballot")),
    (_words("verify"), _words("otp microdeposits")),
    (
        _words("select input"),
        _words("option element tab radio checkbox text value browser playwright puppeteer selenium mobile"),
    ),
    (_words("type drop"), _words("browser playwright puppeteer selenium mobile element")),
    (_words("use"), _words("database workspace profile context")),
)
ACTING_VERBS = frozenset().union(*(verbs for verbs, _ in ACTS_ON))
# The same for reads: "track_package", "verify_signature".
ASKS_OF: Objects = (
    (_words("track monitor"), _words("package parcel shipment order delivery flight")),
    (_words("query select"), _words("row rows record records column columns")),
    (_words("verify"), _words("signature signatures")),
    (_words("scan"), _words("key keys table item items row rows record records qr barcode receipt")),
    (_words("scrape"), _words("url urls page pages webpage webpages website site web html markdown text content")),
    (
        _words("analyze analyse"),
        _words("""
            data dataset text sentiment image images photo document documents file files csv code query queries log logs
            performance trend trends portfolio market stock competitor competitors keyword keywords traffic usage structure
        """),
    ),
    (_words("ask"), _words("question questions docs documents documentation wiki kb")),
    (_words("ping"), _words("server host system api instance service database")),
    (_words("define"), _words("word words")),
)

# Programs of the command line. The next word is a command: "git_pull", "kubectl_scale".
COMMAND_LINES = _words("git kubectl docker podman helm npm redis terraform")
COMMANDS_THAT_SHOW = _words("log logs ps blame reflog top")

# Compound nouns. Neither word is a verb there: "pull_request_read".
COMPOUND_NOUNS = frozenset(
    {
        ("pull", "request"),
        ("merge", "request"),
        ("change", "request"),
        ("feature", "request"),
        ("check", "run"),
        ("check", "suite"),
        ("search", "index"),
        ("read", "replica"),
        ("call", "log"),
        ("text", "message"),
        ("direct", "message"),
        ("log", "group"),
        ("log", "stream"),
        ("access", "request"),
        ("forward", "geocode"),
        ("dry", "run"),
    }
)

# Reads that are also nouns. Before an action they are its object: "list_add", "view_delete".
READS_THAT_ARE_NOUNS = _words(
    "list view query search filter preview display check count diff rank sort forecast average stat desc explain compute estimate"
)

# Writes that are always verbs at the end of a name. After a read they are a second action: "read_write", "fetch_add".
SECOND_HALVES = _words("""
    add delete remove replace write modify insert create send append swap increment decrement clear reset purge destroy
    consume cancel notify fix submit
""")

# Verbs whose particle may end the name: "check_guest_in". After a participle a particle describes a state, as in
# "check_logged_in".
PARTED = _words("check sign log clock opt turn switch")

# Things that can be marked as read: "notifications_read" is as likely a write as a read.
READ_MARKS = _words(
    "message messages notification notifications email emails thread threads chat conversation inbox all as"
)

# Writes that are nouns as well: "list_trash" lists, "list_remove" removes.
WRITES_THAT_ARE_NOUNS = _words(
    "leave swap trash archive store import purchase deposit upgrade launch play process handle"
)

# Words before a verb that say how, not what: "batch_get_items", "async_list_users".
MANNERS = _words("batch bulk try async")

# Work that has a status: "deploy_status" asks for it. Other verbs set a status: "update_status".
JOBS = _words("""
    deploy upload import install sync login migrate restore archive ship refund process checkout purchase deposit claim credit build
""")
STATES = _words("status progress policy policies history score")

# Words that end a name without saying anything: "send_email_tool", "search_api_v2".
ENDINGS = _words("tool tools api function fn endpoint v beta")

# Verbs that are nouns before a word of ASPECTS: "order_status". A status cannot be ordered, but it can be posted.
ASKED_ABOUT = _words("""
    order invoice transfer trade issue commit bid stake group queue index fund book purchase login refund deposit claim
    credit checkout exchange ticket payment process deploy trip place light lock build page block call
""")
ASPECTS = _words(
    "status history info information detail details stats statistics score progress speed height hierarchy"
)

# Work about which only RUNNING_ASPECTS ask: "upload_status" reads, but "upload_details" may upload the details.
RUNNING = _words("upload install import migrate restore ship rollout backup build export download")
RUNNING_ASPECTS = _words("status progress")

# Endings of verbs that no table knows: "anonymize", "gamify", "moderate". What they do is not known.
VERB_ENDINGS = ("ize", "ise", "ify", "ate")
NO_VERBS = _words("climate corporate private candidate template certificate affiliate estate state debate date rate")

# Verbs that are rare in names. They change even a thing to look at: "strip_metadata", "solicit_reviews".
RARE_WRITES = _words("""
    solicit gather strip embed scrub vacuum implement enact spoof hedge offload dump unload tamper encrypt decrypt
    forge correct mail reword flatten censor compile craft wrap unwrap blast garnish vest enrich
    shorten rig
""")

# Verbs of WRITES that are also nouns or adjectives in descriptions: "the complete history", "start and stop".
NO_VERBS_IN_TEXTS = _words("complete start stop clean transition")

# The past of verbs that do not end in "ed".
IRREGULAR = {
    "sent": "send",
    "paid": "pay",
    "sold": "sell",
    "bought": "buy",
    "written": "write",
    "overwritten": "overwrite",
}

# Words of a description which show that a thing is given to the tool, not looked at: "the new limits of a card".
GIVEN = _words("new target desired changed wanted")

# HTTP methods that read.
READ_METHODS = _words("get head")

# Verbs that begin a name even without a separator before the object: "createuser", "getweather".
UNPARTED_WRITES = ("create", "delete", "update", "remove", "insert", "send", "cancel", "upload", "submit")
UNPARTED_READS = ("get", "search", "fetch", "retrieve")

# Words that introduce the verb at the start of a description: "Enables users to", "Lets you".
ENABLERS = _words("allow enable let help")

# Adjectives that begin a description of something to look at: "Current weather in a city".
DESCRIBED_THINGS = _words("current latest recent nearest upcoming historical")

# Verbs that compute. Before a dot or a slash they name a service: "compute.disks.resize".
COMPUTES = _words("compute calculate estimate translate recommend forecast predict explain inspect")


PREFIXES = ("batch", "bulk", "un", "re", "dis", "de")  # "batchupdate", "unfollow", "resend", "disconnect", "deactivate"

# Verbs of reading that occur in descriptions, but not in names.
DESCRIBED_READS = _words("return provide give output answer know learn load obtain access see look measure")

# The same, but only as the first word of a description: "use it to analyze" is about a later step.
OPENING_READS = _words("analyze analyse gather")
