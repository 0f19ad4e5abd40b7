"""Reads and writes are recognised by name and description; in doubt a tool is not recognised as a read (R37)."""

from __future__ import annotations

import time

import pytest

from failsoft.core.effects.recognition import recognise


def every(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize(
    "name",
    every("""
    get_weather list_files search fetch_page find_user read_file lookup_order look_up_order describe_table count_rows
    getWeather listFiles SearchFlights GetObject mcp__github__list_issues github.search_code jira_get_issue
    issues/list-for-repo repos/get calendar.events.list memory.search search/users read_items_items__get
    UsersController_findAll message_get_login_status comment_list order_search pull_request_read issue_read
    get_last_update list_deleted_users get_create_fields calculate_tax compare_prices is_available has_access
    run_search perform_search flight_search display_log check_inventory file_reader latest_update check_user_logged_in
    list_orders check_whether_paid
    top_headlines nearby_restaurants batch_get_items BatchGetItem file_exists calc_tax desc_table ls
    search_api_v2 SearchTool file_reader_tool weather_forecast explain_query GITHUB_LIST_ISSUES should_retry
    getweather searchflights GOOGLEMAPS_PLACE_DETAILS reverse_geocode distance_matrix
    """),
)
def test_a_read_is_recognised_by_its_name(name: str) -> None:
    assert recognise(name).effect == "read"


@pytest.mark.parametrize(
    "name",
    every("""
    pay send set create delete update book_flight transfer_money send_email post_tweet place_order cancel_booking
    sendEmail CreateUser updatePetWithForm mcp__github__create_issue github.create_issue issues/create refunds.create
    create_item_items__post items_partial_update memory_add file_delete ticket_login bank_transfer git_commit
    get_or_create getOrCreate read_and_mark search_and_replace find_one_and_update findOneAndDelete fetch_then_delete
    download_and_install check_in check_out_book checkIn sign_up log_out turn_on mark_as_read mark_all_notifications_read
    set_status jira_set_priority list_add view_delete search_create unfollow_user resend_invoice deactivate_account
    batchUpdate bulk_delete run_job run_shell execute_command process_payment return_items issue_refund comment mention_user
    fetch_and_lock check_and_book find_and_book_flight compare_and_set translate_and_post look_up_and_pay
    take_payment capture_payment open_account make_call check_guest_in checkCartOut turn_lights_off load_and_run
    shopping_list_add_item HassListCompleteItem file_complaint freeze_card unfreeze_card flip_switch bridge_tokens
    wire_money bill_customer disburse_funds settle_invoice deduct_points collect_payment use_voucher get_rid_of_user
    pull_request_review_write services-updater upsert_row reschedule_meeting
    rm rmdir mv mkdir del_user SendEmailTool send_email_v2 bank_transfer_tool forward_email top_up_card regenerate_key
    scale_deployment snapshot_volume backup_database resolve_ticket react_to_message swipe GITHUB_STAR_A_REPOSITORY
    new_event calendar_new_event newTicket generate_invoice shop.generateLabel
    GMAIL_SEND_EMAIL openPullRequest createuser sendemail list_remove list_update archive_results desc_update update_status compute.disks.resize
    slack_post_message github_star_repo LINKEDIN_SHARE_ARTICLE ZOOM_END_MEETING SLACK_SENDS_A_MESSAGE_TO_A_CHANNEL
    open_bank_account capture_card_payment print_shipping_label generate_purchase_order collect_late_fee supply_collateral
    """),
)
def test_a_write_is_recognised_by_its_name(name: str) -> None:
    assert recognise(name).effect == "write"


@pytest.mark.parametrize(
    "name",
    every(
        """run_query execute_sql sql_db_query query_graphql tool flaky x notifications_read convert_lead 42
          read_write fetch_add find_replace read_modify_write select_seat take_photo open_file
          forward_geocode list_trash resolve_library_id convert_job_to_ticket compute.disks getorcreate settings
          address listen cancelled cancellations be_cancelled sending sqlquery searchandreplace
          read_counter_reset latest_release_publish recent_orders_cancel list_item_for_sale
          new_messages generate_report generate_image
          get_access_token fetch_otp bulk_convert_existing_rules list_add_item refund_policy
          post_status report_status transfer_balance adj_balance zero_balance sync_status archive_history order_report
          bug_report daily_summary meeting_schedule movie_rate tax_return anonymize_profile thermostat_temperature
          moderate_reviews solicit_reviews strip_metadata embed_metadata scrub_history vacuum_statistics circulate_news
          implement_recommendations getandlock fetchandstore searchandpay
          scrub_list anonymize_view get_new_address convert_position recall_memory"""
    ),
)
def test_a_name_that_says_nothing_certain_is_neither(name: str) -> None:
    found = recognise(name)
    assert found.effect == "neither"
    assert found.reason


@pytest.mark.parametrize(
    ("name", "description", "effect"),
    [
        ("delete_user", "Returns the deleted user.", "write"),
        ("search_flights", "Sends a request to the airline and returns its flights.", "read"),
        ("get_weather", "Create a picture of the weather.", "read"),
        ("send_report", "Read-only: gets the report.", "write"),
    ],
)
def test_a_name_wins_over_a_description(name: str, description: str, effect: str) -> None:
    assert recognise(name, description).effect == effect


@pytest.mark.parametrize(
    ("description", "effect"),
    [
        ("Gets the weather of a city.", "read"),
        ("Gives an overview of the orders.", "read"),
        ("Gives kudos to a colleague.", "neither"),
        ("Generates and sends an invoice.", "write"),
        ("Run a bash command.", "write"),
        ("Returns free/busy information.", "read"),
        ("A wrapper around Wikipedia. Useful for when you need to answer questions about people.", "read"),
        ("Use this tool to search for messages.", "read"),
        ("This tool retrieves a list of workflows.", "read"),
        ("Creates a folder.", "write"),
        ("Use this tool to send email messages.", "write"),
        ("Transfers coins to an address", "write"),
        ("Log in a user.", "write"),
        ("List, create, close, or select a browser tab.", "write"),
        ("Returns the message and marks it as read.", "write"),
        ("Allows you to search for messages.", "read"),
        ("Enables users to view an order.", "read"),
        ("(Beta) Gets an order.", "read"),
        ("[Orders] Lists all orders.", "read"),
        ("Orders: get one by its number.", "read"),
        ("Quickly find an order.", "read"),
        ("Perform a search for a phrase.", "read"),
        ("Analyzes the mood of a text.", "read"),
        ("Current weather in a city", "read"),
        ("Add two numbers.", "read"),
        ("Calculates the sum of two integers", "read"),
        ("Allows you to create an order.", "write"),
        ("Enables users to delete an order.", "write"),
        ("Enables the alarm.", "write"),
        ("(Beta) Creates an order.", "write"),
        ("Orders: create one.", "write"),
        ("Make a payment.", "write"),
        ("Reply to search results.", "write"),
        ("Create order: returns its number.", "write"),
        ("[WRITE] Gets an order ready.", "write"),
        ("Executes a query.", "write"),
        ("Perform a search and delete what it finds.", "write"),
        ("Open a file for reading or writing.", "write"),
        ("Add two items to the cart.", "write"),
        ("Add numbers to a contact.", "write"),
        ("Make a query to the service.", "neither"),
        ("Converts a lead into a deal.", "neither"),
        ("Query the SQL database.", "neither"),
        ("Resolves a name to an id.", "neither"),
        ("Order history of a customer", "neither"),
        ("", "neither"),
        ("Does the usual thing.", "neither"),
    ],
)
def test_a_description_decides_about_a_name_that_says_nothing(description: str, effect: str) -> None:
    assert recognise("the_tool", description).effect == effect


@pytest.mark.parametrize(
    "description",
    [
        "Returns all unread emails. The emails are marked as read after this function is called.",
        "Gets an attachment and saves it to local disk.",
        "Get a customer, creating one if it does not exist. A new one will be created.",
        "Fetch the next job and delete it from the queue.",
    ],
)
def test_a_read_with_a_described_side_effect_is_not_recognised_as_a_read(description: str) -> None:
    assert recognise("get_thing", description).effect != "read"


@pytest.mark.parametrize(
    ("name", "description", "effect"),
    [
        ("list_trash", "Displays what is in the trash.", "read"),
        ("deploy_status", "Check the status of a deployment.", "read"),
        ("user_info", "Information about a user", "read"),
        ("order_history", "Past orders of a customer", "read"),
        ("add", "Add two numbers", "read"),
        ("user_info", "Updates a user.", "write"),
        ("contact_details", "Capture the contact details of a user.", "neither"),
        ("weather", "Changes the weather of the game.", "write"),
        ("order", "Retrieves an order by its id.", "read"),
        ("order", "Returns the id of the placed order.", "write"),
        ("book_table", "Search for a free table and book it.", "write"),
        ("order_food", "Looks up the restaurant. Places the order.", "write"),
        ("page_report", "Fetches a report, then pages the team.", "write"),
        ("product", "Retrieves a product by its id or handle.", "read"),
        ("payback", "Returns, or refunds, an amount.", "write"),
        ("versions", "Returns all versions, including supported, release candidate, and unstable.", "read"),
        ("queries", "Return a message after creating new saved queries.", "write"),
        ("convert_chapter", "Starts the conversion of a chapter.", "write"),
        ("add", "Add a product", "write"),
        ("frobnicate_compute", "Frobnicates GPU compute resources.", "neither"),
        ("gpu_compute", "GPU compute of a customer.", "read"),
    ],
)
def test_a_name_that_can_mean_both_is_decided_by_its_description(name: str, description: str, effect: str) -> None:
    assert recognise(name, description).effect == effect


def test_the_reason_names_the_word_that_decided() -> None:
    assert recognise("jira_get_issue").reason == '"get" in its name'
    assert recognise("get_or_create_user").reason == '"or create" in its name'
    assert recognise("thing", "Searches for things").reason == 'its description says "Searches"'
    assert recognise("thing", "Perform a search").reason == 'its description says "Perform … search"'
    assert recognise("user_info", "Information about a user").reason == 'its name ends in "info" and has no verb'
    assert recognise("add", "Add two numbers.").reason == 'its description says "Add two numbers"'


@pytest.mark.parametrize(
    "name",
    every(
        """weather stock_price user_profile current_time exchange_rates exchange_rate order_status account_balance news
          flight_status deploy_status upload_progress purchase_history credit_score air_quality tax_rate cpu_usage
          account_info user_info timezone mcp__bank__account_balance object_detection roomAvailability"""
    ),
)
def test_a_name_without_a_verb_reads_if_it_ends_in_information(name: str) -> None:
    assert recognise(name).effect == "read"
    assert "has no verb" in recognise(name).reason or name == "current_time"


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("GET /users/{id}", "read"),
        ("POST /users", "write"),
        ("DELETE /lists/{list_id}", "write"),
        ("delete /search/{id}", "write"),
        ("PUT /view", "write"),
        ("POST /orders/search", "neither"),
        ("GET /orders/export", "read"),
    ],
)
def test_a_request_as_a_name_is_decided_by_its_method(name: str, effect: str) -> None:
    assert recognise(name).effect == effect


@pytest.mark.parametrize("name", every("order_by_id codeOfConduct tax_return check_deposits.mailing"))
def test_a_key_or_a_noun_is_no_verb(name: str) -> None:
    assert recognise(name).effect == "neither"


@pytest.mark.parametrize(
    "name", every("upd_rec usr_upd chg_address rmv_row hold_order find_by_id_or_create get_by_id_and_delete")
)
def test_short_and_second_verbs_write(name: str) -> None:
    assert recognise(name).effect == "write"


@pytest.mark.parametrize(
    "text",
    [
        "_" * 100_000,
        "a" * 100_000,
        "get_" * 50_000,
        "use this tool to " * 20_000,
        "\x00\ud800é" * 9_000,
        "and ",
        "ly " * 30_000,
        "aly" * 30_000,
        "a: " * 30_000,
        "(" * 100_000,
        "[READ] " * 15_000,
        "\u202egnp.teg\u202c" * 9_000,
        "\n" * 100_000,
        "get\n" * 25_000,
        "搜索" * 50_000,
        "add the the " * 9_000,
        "enables you to " * 7_000,
        "execute a " * 10_000,
        "given a b, " * 9_000,
        "web search " * 9_000,
        "returns the " * 9_000,
        "https://" * 12_000,
        "get, " * 20_000,
    ],
)
def test_hostile_names_and_descriptions_take_no_time(text: str) -> None:
    began = time.perf_counter()
    recognise(text, text)
    recognise("x", text)
    assert time.perf_counter() - began < 0.25


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("account_limits", "New limits for an account"),
        ("room_temperature", "Target temperature for a room"),
        ("order_status", "The new status of an order"),
        ("user_profile", "User profile: pass the fields to be changed"),
        ("customer_details", "Customer details to be stored"),
        ("medical_information", "Medical information is recorded in the patient's file"),
        ("contact_information", "Contact information of the caller, written to the CRM"),
        ("payment_information", "Payment information for the order; charges the card"),
        ("daily_news", "Morning digest mailed to everybody"),
        ("moderate_reviews", "Moderates reviews"),
        ("invoice", "Retrieves an invoice and mails it to the customer"),
        ("comment", "Fetches comments; with text given a comment gets created"),
        ("post", "Fetches posts by sending a like to each"),
    ],
)
def test_a_thing_that_the_description_changes_is_not_read(name: str, description: str) -> None:
    assert recognise(name, description).effect != "read"


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("order_history", "History of a customer's purchases"),
        ("weather", "Current weather in a city"),
        ("account_balance", "The balance of an account"),
        ("stock_news", "Stock news for a ticker"),
    ],
)
def test_a_thing_that_the_description_only_names_is_read(name: str, description: str) -> None:
    assert recognise(name, description).effect == "read"
