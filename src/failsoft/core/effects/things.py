"""Tables of the nouns by which reads and writes are recognised: things that are looked at, and whose they are.

As in ``words``, no row is the name of one tool.
"""

from __future__ import annotations

from failsoft.core.effects.words import split_words

# Words after which a word of WRITES_FIRST is a noun: "order_status", "transfer_history".
LOOKED_AT = split_words("""
    status state info information detail details history list count counts stats statistics summary metadata balance
    limit limits score usage
    results result total totals schema version price prices cost type types report reports log logs id
    url address rate rates fee fees by of
""")

# "convert" only computes with the first, but changes the type of the second: "convert_lead", "convert_job_to_signal".
MEASURES = split_words("""
    currency currencies amount amounts money unit units time times timezone timezones timestamp timestamps date dates temperature
    coordinates number numbers base binary decimal hex color colors colour text string markdown html json xml csv yaml case
    address addresses id ids identifiers length weight distance value values price prices speed degrees latex
    liter litre gallon meter metre mile kilometer kilometre foot feet inch kilogram gram pound ounce celsius fahrenheit kelvin
""")
CONVERTED = split_words("""
    lead prospect quote trial order account user channel conversation task issue signal ticket case incident invoice
    subtask customer deal opportunity contact existing draft visitor guest card physical virtual position points miles
""")

# Getting one of these has it issued: "get_access_token", "fetch_otp".
ISSUED = split_words("token otp passcode nonce")

# "resolve" closes a ticket, but only looks up one of these.
LOOKED_UP = split_words("""
    id ids url urls uri dns domain host hostname name names ref refs path symbol symbols handle doi slug library address
    alias type
""")

# A name that ends in one of these, and has no verb, reads: nobody sends or changes "the weather". Words that are imperatives
# or orders too ("report", "schedule", "quote") are not here: "bug_report" may file one.
INFORMATION = split_words("""
    weather humidity forecast prices balances rates history statistics stats info information metadata overview
    standings leaderboard ranking rankings uptime distance directions coordinates elevation population news headlines
    definition definitions synonyms lyrics earnings dividends financials fundamentals statements holdings trends reviews
    ratings specs documentation docs facts trivia datetime timezone mean median variance deviation percentage
    detection recognition classification extraction translation calculation comparison estimation prediction
    recommendation recommendations suggestions quality capabilities matrix validation geolocation scores jokes joke timeline requirements arrivals departures
    diagnostics insights analytics metrics transcript transcripts captions subtitles eta parsing dependencies backlinks analysis research
""")

# The same, but these can be changed, so the words before must be owners: "account_balance", but not "zero_balance".
INFORMATION_OF = split_words("""
    price balance profile profiles time date details detail availability score scores status health quota usage schema
    schemas indexes size logs location limits temperature position positions performance summary
""")
OWNERS = split_words("""
    account user customer client member employee patient student driver guest traveler passenger contact person team company
    organization org group tenant vendor supplier merchant seller buyer product item stock share ticker coin crypto
    token asset fund bond portfolio market bank card wallet loan credit payment invoice order subscription shipment package
    parcel delivery flight train bus trip hotel room restaurant table booking reservation appointment event course class
    game match season server host node pod service system cpu gpu disk memory ram network db database collection file
    folder document page site website domain repo repository git branch project sprint job task run pipeline workflow
    deployment queue device sensor battery vehicle car city country local world air water ocean outdoor session thread
    channel chat app api model agent public personal current my movie film song album artist episode recipe place venue article
    video timer points loyalty reward cursor mouse door tracking listing campaign budget gas parcel
    playlist track audio console network cluster namespace container image volume data quality measure balance cash market sales search
    security knowledge payroll deal google web cloud linux windows
""")

# The same, but only if the description begins with such a thing, too: "daily_summary" may send one.
THINGS_TO_LOOK_AT = INFORMATION | INFORMATION_OF | split_words("summary tree progress count result results")

# Words that begin a description of such a thing, besides the words of its name.
DESCRIBE_A_THING = THINGS_TO_LOOK_AT | split_words("past general basic full all data")

# Nouns before "rate": "exchange_rate" is a number, "movie_rate" rates one.
RATED = split_words(
    "exchange tax interest heart growth error conversion currency unemployment inflation birth mortality frame hit"
)

# Words that tell one thing from the others: "product_by_handle".
KEYS = split_words("id ids handle slug name key uuid number code url path hash symbol sku")

# Nouns before a plural, but no verbs: "balance_accounts" changes them.
NOUNS_BEFORE = OWNERS - split_words("balance host document stock model image table bank water")

# Nouns that alone name what is read: "artist", "product_by_handle". Those that may be ordered or started are not here.
READ_ALONE = OWNERS - split_words("""
    order booking reservation appointment event course game match subscription payment invoice credit share stake token
    asset fund loan bid project sprint job task run pipeline workflow deployment queue train bus trip flight shipment package
    delivery timer reward loyalty personal public current my domain api chat session search data security measure balance track image water
""") | split_words(
    "artist avatar cart blog article menu shop node enterprise metaobject listing topic license changelog me"
)
