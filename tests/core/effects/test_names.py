"""Words that flip a verb's meaning in a name, in both directions, by groups. "not read": a write or undecided (R37)."""

from __future__ import annotations

import pytest

from failsoft.core.effects.recognition import recognise

# Why, what the names of the group are, and the names.
NAMES = [
    (
        "a read followed by a write does both",
        "write",
        """get_or_create_user find_or_create getOrInsert fetch_or_create_session lookup_or_insert fetch_and_delete
        read_and_mark list_and_purge view_and_ack peek_and_pop getAndSet get_and_increment check_and_reserve
        search_and_replace scan_and_fix compare_and_swap test_and_set read_then_delete receive_and_ack load_or_create""",
    ),
    (
        "two bare verbs without a conjunction are a read and a write, or a read of the second as a noun",
        "not read",
        "fetch_delete find_replace_all fetch_add find_replace",
    ),
    (
        "behind a read, a participle or a noun says what is read",
        "read",
        """list_deleted_items get_archived_chats count_created_users get_cancelled_orders list_blocked_users is_deleted
        has_been_sent get_last_modified find_removed_rows view_merged_prs get_closed_issues list_open_orders
        get_create_schema list_delete_candidates get_settings get_posts get_comments get_order get_booking
        list_transfers get_payment get_commit list_releases get_log get_message get_schedule list_forks get_votes""",
    ),
    (
        "a particle makes another verb of check, log, sign, turn",
        "write",
        """check_in check_out check_in_guest checkOutBook check_guest_in check_off_item log_in sign_up turn_on
        turn_lights_off switch_on power_off hang_up go_back spin_up_instance tear_down_stack warm_up_cache shut_down""",
    ),
    (
        "a noun with that particle is read",
        "read",
        "get_check_ins list_checkouts get_checkin_history list_sign_ins get_sign_in_logs check_user_logged_in",
    ),
    (
        "to mark as read changes the mark",
        "write",
        "mark_as_read mark_message_read markConversationAsSeen notifications.markAllRead message_mark_read",
    ),
    ("a mark that was set is read", "read", "get_read_receipts list_read_messages list_unread"),
    (
        "a query can be in any language, and change something there",
        "not read",
        "run_query execute_query sql_query run_sql query_db graphql_query run_cypher exec_statement",
    ),
    ("a search cannot", "read", "run_search perform_lookup do_search execute_search do_list_objects"),
    (
        "running anything else does what it does",
        "write",
        "run_script run_job run_workflow run_payroll execute_trade perform_refund make_booking conduct_trade",
    ),
    (
        "load, sync, export, open, watch, receive: the object or the description decides",
        "not read",
        """load_data load_csv_into_table load_model export_report open open_document watch_pods monitor_price track_event
        receive_message poll_queue next_message download_file capture_photo take_screenshot""",
    ),
    (
        "some objects decide that it is a write",
        "write",
        """open_account open_ticket open_pull_request open_garage_door capture_payment payments.capture accounts.open
        generate_invoice print_shipping_label collect_late_fee use_voucher file_expense_report select_option
        show_toast display_notification extract_archive extract_method check_checkbox sort_range
        show_on_screen browse_to_url""",
    ),
    (
        "some, that it only asks",
        "read",
        "extract_text sort_rows show_ontology browse_topics track_package trackShipment track_order verify_signature query_rows",
    ),
    ("pulling and pushing move data", "write", "git_pull git_push docker_pull pull_changes push_to_crm sync_contacts"),
    ("the command of a program shows", "read", "git_log git_blame docker_ps docker_logs kubectl_logs kubectl_top"),
    (
        "the command of a program changes",
        "write",
        "git_tag kubectl_scale kubectl_rollout redis_set docker_run helm_rollback",
    ),
    (
        "a preview, an estimate and a validation leave everything as it is",
        "read",
        """preview preview_changes order_preview invoice_preview validate_address estimate_gas calculate_quote get_quote
        plan_preview""",
    ),
    (
        "unless something is done with it",
        "write",
        "apply_preview_changes delete_preview publish_preview send_quote create_estimate",
    ),
    (
        "a simulation or a test may be sent somewhere, and a dry run ends where the tool says",
        "not read",
        "simulate simulate_payment test_webhook test_connection dry_run dry_run_migration dryRun ping verify_email quote",
    ),
    ("a test that is sent is sent", "write", "send_test_email trigger_test_event resend_verification_email"),
    ("a check of a connection asks", "read", "check_connection check_health health_check is_alive get_ping"),
    ("to resolve a matter closes it", "write", "resolve_ticket resolve_incident resolve_dispute resolve_comment"),
    ("to resolve a name looks it up", "read", "resolve_hostname resolve_dns resolve_url resolve_symbol"),
    (
        "nouns that are verbs at the start",
        "write",
        """star_repo follow_user like_post bookmark_page reserve_table hold_seat place_hold book_hotel log_workout
        record_sale report_bug post_message email_customer text_user page_oncall forward_call label_node draft_reply""",
    ),
    (
        "and nouns behind a read",
        "read",
        """list_stargazers list_followers list_bookmarks list_holds search_bookings get_logs search_logs list_requests
        get_request get_forwarding_rules list_labels list_drafts""",
    ),
    (
        "a nominal compound tells of a state",
        "read",
        "order_status lock_status light_status door_status upload_progress currency_exchange_rates cursor_position",
    ),
    (
        "a record that is converted becomes another",
        "not read",
        "convert_lead convert_to_order convert_quote_to_invoice convertExcelToSheets convert_work_item_type",
    ),
    (
        "a measure or a notation does not",
        "read",
        "convert_currency convert_timezone convert_units convert_to_celsius convert_markdown_to_html",
    ),
    ("a token is issued when it is asked for", "not read", "get_access_token request_otp generate_token fetch_otp"),
    (
        "nouns alone are looked at",
        "read",
        "album_tracks console_logs channels_replies product_by_handle pageByHandle viewsqueries.results wikipedia_summary",
    ),
    (
        "but not a word alone, which may be a verb or a thing that is made",
        "neither",
        "blocks hangs sleeps works validates hotels flights artist product card level_4 slow_one step step_1 delay loop",
    ),
    (
        "but not with a word before them that may be a verb, nor the name of an act",
        "not read",
        "balance_accounts water_plants run_tests munge_records cancellations settings order_by_id dedupe_list",
    ),
    ("a switch at the end", "write", "maintenance_on lights_off metafieldsSet json_set"),
    ("and what only ends like one", "not write", "depends_on data_set based_on"),
    (
        "a verb behind a noun that may be a verb",
        "write",
        "monitor_create export_cancel verify_start firecrawl_monitor_delete",
    ),
    ("a read behind one", "read", "monitor_list firecrawl_monitor_get pods_top nodes_log"),
    ("commands on hashes, lists and sets write", "write", "hset lpush rpop sadd srem zadd xdel xack"),
    ("or read", "read", "hget hgetall llen lrange smembers zrange hexists"),
    ("a verb behind current acts", "not read", "current_user_follow_playlist"),
    ("what it says about the current one is read", "read", "current_user_saved_shows current_user_playlists"),
    ("the next of what is played", "write", "next_song previous_track next_slide cast_vote watch_repo"),
    ("a unit that becomes another", "read", "gallon_to_liter celsius_to_fahrenheit"),
    ("leave is also what employees take", "not write", "list_employee_leave"),
    ("a version is no action", "read", "deal_search.v1 contacts/search/v2 search_api_v2"),
]


def holds(effect: str, expected: str) -> bool:
    return effect != expected.removeprefix("not ") if expected.startswith("not ") else effect == expected


@pytest.mark.parametrize(("why", "expected", "names"), NAMES, ids=[why for why, _, _ in NAMES])
def test_words_that_flip_a_name(why: str, expected: str, names: str) -> None:
    wrong = {name: recognise(name) for name in names.split() if not holds(recognise(name).effect, expected)}
    assert not wrong, why
