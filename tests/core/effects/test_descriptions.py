"""Words that flip a verb's meaning in a description, in both directions, by groups. "not read": a write or undecided (R37)."""

from __future__ import annotations

import pytest

from failsoft.core.effects.recognition import recognise

# Why, what the descriptions of the group are, and the descriptions.
DESCRIPTIONS = [
    (
        "the first verb has another one beside it",
        "write",
        [
            "Gets or sets the volume.",
            "Get or create a label.",
            "Search for a flight and book the cheapest one.",
            "Looks at the queue, takes the next job and runs it.",
            "Generates and emails a report.",
            "Finds the issue and closes it.",
        ],
    ),
    (
        "a particle or the object of the first verb",
        "write",
        [
            "Checks in a guest.",
            "Hangs up the call.",
            "Rolls back the last deployment.",
            "Opens a support ticket.",
            "Opens the garage door for a visitor.",
            "Files a complaint.",
            "Performs a money transfer between two accounts.",
        ],
    ),
    (
        "what is given back or shown to a person is no answer",
        "not read",
        [
            "Returns some items of a delivered order.",
            "Returns the book to the library.",
            "Shows a notification to the user.",
            "Displays a message on the lobby screen.",
            "Gets an OTP sent to the phone.",
            "Obtains a new API key.",
            "Loads rows into the warehouse.",
            "Converts a work item to a different type.",
        ],
    ),
    (
        "the same verbs with other objects",
        "read",
        [
            "Returns the status of a delivery.",
            "Shows the notifications of a user.",
            "Gets the new messages.",
            "Fetches and returns a guide.",
            "Lists chats and groups that the user belongs to.",
            "Converts the gallon to liter.",
            "Round a number to the nearest integer.",
        ],
    ),
    (
        "words before the verb",
        "write",
        [
            "This will book a table.",
            "Lets the agent cancel an order.",
            "For sending an email to a customer.",
            "Given an email address, adds the user to the list.",
            "Helper that creates an invoice.",
        ],
    ),
    (
        "a search named without a verb, and a query that can only select",
        "read",
        [
            "Wikipedia search.",
            "Weather lookup by city",
            "Given a city, returns its weather.",
            "Execute a SELECT query on the database",
        ],
    ),
    (
        "a condition names another tool's action, and an address is no sentence",
        "not write",
        [
            "Takes a picture of the screen, if you need to press a button.",
            "Fetches a playlist, see [modify](https://example.com/create/modify-video) there.",
        ],
    ),
    (
        "a query that may also change something",
        "not read",
        ["Execute a SELECT, INSERT or UPDATE query", "Runs a select query. Also accepts INSERT and DELETE"],
    ),
    (
        "a file that is answered",
        "read",
        [
            "Exports the rows as CSV.",
            "Downloads an attachment. Returns base64-encoded content.",
            "Download an attachment as an embedded resource.",
            "Analyze locks: blocked queries and deadlocks.",
            "Reports whether the service is up.",
        ],
    ),
    (
        "a file that is stored, and a report that is sent",
        "not read",
        [
            "Exports the rows as CSV to a bucket.",
            "Downloads the archive to the local disk. Returns the content type.",
            "Exports the report as HTML and emails it to the team.",
            "Reports a user to the moderators.",
        ],
    ),
]


def holds(effect: str, expected: str) -> bool:
    return effect != expected.removeprefix("not ") if expected.startswith("not ") else effect == expected


@pytest.mark.parametrize(("why", "expected", "descriptions"), DESCRIPTIONS, ids=[why for why, _, _ in DESCRIPTIONS])
def test_words_that_flip_a_description(why: str, expected: str, descriptions: list[str]) -> None:
    judged = {text: recognise("the_tool", text) for text in descriptions}
    wrong = {text: found for text, found in judged.items() if not holds(found.effect, expected)}
    assert not wrong, why


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("get_label", "Gets a label or creates it."),
        ("get_link", "Gets or creates a link to a file."),
        ("read_volume", "Get or set the volume."),
        ("list_branches", "List, create or delete branches."),
        ("GetRide", "Books a ride to a destination."),
        ("conversations_getTeams", "Set the workspaces that connect to a channel."),
    ],
)
def test_a_read_whose_description_begins_with_a_write_beside_it_is_not_a_read(name: str, description: str) -> None:
    assert recognise(name, description).effect == "neither"
