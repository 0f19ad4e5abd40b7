"""Read-back rules for the services of BFCL."""

from __future__ import annotations

from typing import Any

from bench.yardstick.readback.rule import Arguments, Look, Rule, fields, is_error, listed, same

# --- files -------------------------------------------------------------------------------------------------------------


async def changed_directory(look: Look, arguments: Arguments) -> bool | None:
    folder = arguments["folder"].strip("/")
    if folder in ("", ".", "..", "~"):
        return None  # where it was before is not known
    path = (await look("pwd"))["current_working_directory"]
    return bool(path.rsplit("/", 1)[-1] == folder)


async def _names(look: Look) -> list[str]:
    answer = await look("ls", a=True)
    return list(answer["current_directory_content"])


def is_listed(argument: str) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        return arguments[argument] in await _names(look)

    return rule


def is_gone(argument: str) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        return arguments[argument] not in await _names(look)

    return rule


async def wrote_file(look: Look, arguments: Arguments) -> bool | None:
    if not arguments.get("file_name"):
        return None
    answer = await look("cat", file_name=arguments["file_name"])
    return not is_error(answer) and str(answer["file_content"]) == arguments["content"]


async def copied(look: Look, arguments: Arguments) -> bool | None:
    source, destination = arguments["source"], arguments["destination"].rstrip("/")
    original, copy = [await look("cat", file_name=name) for name in (source, destination)]
    if not is_error(copy):
        return bool(copy == original)
    found = await look("find", path=".", name=source)
    return f"./{destination}/{source}" in found["matches"]


# --- the vehicle ---------------------------------------------------------------------------------------------------------


def status(option: str, wanted: Any) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        return same(await look("displayCarStatus", option=option), wanted(arguments))

    return rule


async def locked(look: Look, arguments: Arguments) -> bool | None:
    doors = (await look("displayCarStatus", option="doors"))["doorStatus"]
    wanted = "unlocked" if arguments["unlock"] else "locked"
    return all(doors.get(door) == wanted for door in arguments["door"])


def _pedal(arguments: Arguments) -> Arguments:
    force = 1000.0 * arguments["pedalPosition"]
    return {"brakePedalStatus": "pressed" if force else "released", "brakePedalForce": force}


def _parking_brake(arguments: Arguments) -> Arguments:
    if arguments["mode"] == "engage":
        return {"parkingBrakeStatus": "engaged", "parkingBrakeForce": 500.0, "slopeAngle": 10.0}
    return {"parkingBrakeStatus": "released", "parkingBrakeForce": 0.0, "slopeAngle": 10.0}


# --- other services ------------------------------------------------------------------------------------------------------


async def placed_order(look: Look, arguments: Arguments) -> bool | None:
    history = await look("get_order_history")
    if is_error(history):
        return None
    ids = [int(id) for id in history["history"] if str(id).isdecimal()]
    return bool(ids) and same(await look("get_order_details", order_id=max(ids)), arguments)


async def cancelled_order(look: Look, arguments: Arguments) -> bool | None:
    order = await look("get_order_details", order_id=arguments["order_id"])
    return None if is_error(order) else bool(order["status"] == "Cancelled")


def watched(argument: str, *, wanted: bool) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        answer = await look("get_watchlist")
        if not isinstance(answer, dict) or is_error(answer):
            return None
        return (arguments[argument] in answer["watchlist"]) is wanted

    return rule


def logged_in(read: str, key: str, *, one_account: bool = False) -> Rule:
    """Ask whether there is a login. Whose it is, is known if there is one account only."""

    async def rule(look: Look, _: Arguments) -> bool | None:
        if not (await look(read))[key]:
            return False
        return True if one_account else None

    return rule


async def logged_out(look: Look, _: Arguments) -> bool | None:
    return not (await look("trading_get_login_status"))["status"]


async def sent_message(look: Look, arguments: Arguments) -> bool | None:
    answer = await look("view_messages_sent")
    return None if is_error(answer) else arguments["message"] in answer["messages"].get(arguments["receiver_id"], [])


async def added_contact(look: Look, arguments: Arguments) -> bool | None:
    answer = await look("get_user_id", user=arguments["user_name"])
    return not is_error(answer) and answer.get("user_id") is not None


async def posted(look: Look, arguments: Arguments) -> bool | None:
    wanted = {"tags": [], "mentions": [], **arguments}
    return any(same(tweet, wanted) for tweet in await look("search_tweets", keyword=arguments["content"]))


async def commented(look: Look, arguments: Arguments) -> bool | None:
    answer = await look("get_tweet_comments", tweet_id=arguments["tweet_id"])
    if is_error(answer):
        return None
    return any(comment.get("content") == arguments["comment_content"] for comment in answer)


def ticket(wanted: Any) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        answer = await look("get_ticket", ticket_id=arguments["ticket_id"])
        return None if is_error(answer) else same(answer, wanted(arguments))

    return rule


def booking(holds: Any) -> Rule:
    async def rule(look: Look, arguments: Arguments) -> bool | None:
        answer = await look("get_booking_history", access_token=arguments["access_token"])
        return None if is_error(answer) else bool(holds(answer["booking_history"], arguments))

    return rule


def _has_booking(bookings: Any, arguments: Arguments) -> bool:
    wanted = fields("card_id", "travel_date", "travel_from", "travel_to", "travel_class")(arguments)
    return any(same(one, wanted) for one in bookings.values())


RULES: dict[str, Rule] = {
    "cd": changed_directory,
    "mkdir": is_listed("dir_name"),
    "touch": is_listed("file_name"),
    "echo": wrote_file,
    "cp": copied,
    "mv": is_gone("source"),
    "rm": is_gone("file_name"),
    "rmdir": is_gone("dir_name"),
    "lockDoors": locked,
    "startEngine": status(
        "engine", lambda given: {"engineState": "running" if given["ignitionMode"] == "START" else "stopped"}
    ),
    "pressBrakePedal": status("brakePedal", _pedal),
    "activateParkingBrake": status("parkingBrake", _parking_brake),
    "setHeadlights": status("headlights", fields(headlightStatus="mode")),
    "place_order": placed_order,
    "cancel_order": cancelled_order,
    "add_to_watchlist": watched("stock", wanted=True),
    "remove_stock_from_watchlist": watched("symbol", wanted=False),
    "trading_logout": logged_out,
    "authenticate_twitter": logged_in("posting_get_login_status", "login_status", one_account=True),
    "message_login": logged_in("message_get_login_status", "login_status"),
    "ticket_login": logged_in("ticket_get_login_status", "login_status"),
    "authenticate_travel": logged_in("travel_get_login_status", "status"),
    "send_message": sent_message,
    "add_contact": added_contact,
    "post_tweet": posted,
    "comment": commented,
    "create_ticket": listed("get_user_tickets", fields("title", "description", "priority")),
    "close_ticket": ticket(lambda _: {"status": "Closed"}),
    "resolve_ticket": ticket(lambda given: {"status": "Resolved", "resolution": given["resolution"]}),
    "edit_ticket": ticket(lambda given: given["updates"]),
    "book_flight": booking(_has_booking),
    "cancel_booking": booking(lambda bookings, given: given["booking_id"] not in bookings),
    "register_credit_card": listed(
        "get_all_credit_cards", fields("card_number", "expiration_date"), at="credit_card_list"
    ),
}
