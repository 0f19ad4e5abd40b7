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
    url address rate rates fee fees by of speed height hierarchy
""")

# Converting one of MEASURES only computes. Converting one of CONVERTED changes its type: "convert_lead".
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

# A name without a verb that ends in one of these reads: weather cannot be sent or changed. Words that are imperatives or
# orders too ("report", "schedule", "quote") are not here: "bug_report" may file a report.
INFORMATION = split_words("""
    weather humidity forecast prices balances rates history statistics stats info information metadata overview
    standings leaderboard ranking rankings uptime distance directions coordinates elevation population news headlines
    definition definitions synonyms lyrics earnings dividends financials fundamentals statements holdings trends reviews
    ratings specs documentation docs facts trivia datetime timezone mean median variance deviation percentage
    detection recognition classification extraction translation calculation comparison estimation prediction
    recommendation recommendations suggestions quality capabilities matrix validation geolocation scores jokes joke timeline requirements arrivals departures
    diagnostics insights analytics metrics transcript transcripts captions subtitles eta parsing dependencies backlinks analysis research
    sentiment showtimes lineage breakdown usage
""")

# The same, but these can be changed, so the words before must be owners: "account_balance", but not "zero_balance".
INFORMATION_OF = split_words("""
    price balance profile profiles time date details detail availability score scores status health quota usage schema
    schemas indexes size logs location limits temperature position positions performance summary
    calendar roster directory catalog catalogue hierarchy tree graph conditions results responses interactions digest
    lag values headers breakdown conflicts participants listings height width depth speed age
    density stats rank standing leaderboards allocation exposure volatility yield volume liquidity expiry expiration
    sentiment amortization comparison benchmark outlook risk trend permissions quotas terms hours menu facts biography
    bio abi eta lag uptime latency throughput bandwidth fingerprint hash length count counts entropy signature
    ownership provenance lineage structure layout outline showtimes meanings etymology pronunciation antonyms rhymes
    examples counts occupancy vacancies arrears
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
    candidate salary lab medication provider headcount payslip timesheet dependency traffic earnings contract league
    concert calendar seat survey http request replication helm transaction cost inventory region tax insurance policy
    incident metric audience ad keyword competitor sku brand category warehouse passport visa claim benefit role
    permission grid route station road map street neighborhood property mortgage interest inflation crime school
    teacher homework exam quiz lesson textbook library podcast audiobook radio tv band genre actor director cinema
    theater festival ticket sports club tournament fixture nutrition ingredient meal diet calorie workout exercise
    heart glucose allergy symptom doctor hospital pharmacy prescription blood vaccine genome protein molecule
    chemical planet satellite asteroid earthquake tide sun moon wind rain snow uv pollen flood power energy solar meter
    tariff grid outage fuel parking toll bike scooter ferry airport airline airplane gate baggage lounge terminal
    packet port subnet vlan dns ssl certificate http https tcp url link header cookie browser tab screen keyboard
    clipboard process heap stack kernel fan bios firmware usb bluetooth wifi printer camera microphone speaker function
    method variable symbol module library test coverage build commit diff release artifact registry secret vault inbox
    mailbox mail newsletter subscriber list guild emoji reaction sticker poll contractor department office shift leave
    pto holiday applicant interview vacancy skill manager lead opportunity quote stage territory quota commission
    forecast case faq nft defi validator chain bridge block mempool oracle yield liquidity pool swap futures options
    forex commodity etf index sector ip hostname asn mac email phone postal zip currency language locale timezone word
    sentence paragraph text book paper journal author citation doi isbn museum painting hexagon color font icon logo
    patent trademark court judge law bill vote election candidate party government census
""")

# A name that ends in one of these reads only if the description begins with one too: "daily_summary" may send a summary.
THINGS_TO_LOOK_AT = INFORMATION | INFORMATION_OF | split_words("summary tree progress count result results")

# Words that begin a description of such a thing, besides the words of its name.
DESCRIBE_A_THING = THINGS_TO_LOOK_AT | split_words("past general basic full all data")

# Nouns before "rate": "exchange_rate" is a number, "movie_rate" rates one.
RATED = split_words(
    "exchange tax interest heart growth error conversion currency unemployment inflation birth mortality frame hit"
)

# Words that identify one thing among others: "product_by_handle".
KEYS = split_words("id ids handle slug name key uuid number code url path hash symbol sku")

# Nouns before a plural, but no verbs: "balance_accounts" changes them.
NOUNS_BEFORE = OWNERS - split_words("""
    balance host document stock model image table bank water exercise screen fuel pool map author budget judge lead flood patent
    channel bond option power hash cost season shift mail stage vault register toll tax commission train heart paper grid
    journal poll vote list process quote claim link film page site record track project service fund person chain season
""")

# Nouns that alone name what is read: "artist", "product_by_handle". What may be ordered or started is not here.
READ_ALONE = split_words("""
    account user customer client member employee patient student driver person team company organization vendor supplier merchant
    seller buyer product item portfolio hotel restaurant venue place movie film song album artist episode recipe video playlist
    node folder website repo repository branch device vehicle city country region weather location avatar cart blog article menu shop
    enterprise metaobject listing topic license changelog me page collection
""")
