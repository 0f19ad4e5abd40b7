"""The pending state of a thread in the store: retry offers, open calls of turns, missing tools.

Rules
-----
- Used only with a store. Without one, all notes are in memory.
- Calls write, and writing only queues. Reading happens when a user asks (``rt.threads[…]``).
- An offer is kept with the arguments of its call while it is valid: a retry after a restart needs them. An offer whose
  arguments are not JSON stays in this process.
- A turn records a call when it accepts it and deletes the record when the call ends. So the records of a dead process
  are its open calls. Turns of one thread must run on one machine at a time: open calls of another machine look like
  those of a dead process.
- Missing tools are kept until they expire, and are read once, when the runtime starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.conversation.thread_state import (
    ABSENT_FOR,
    DANGLES_FOR,
    OFFER_LASTS,
    Absence,
    Dangling,
    Offer,
    remaining_time,
)
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome
from failsoft.stores.ports import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from failsoft.core.model.explanation import Explanation
    from failsoft.stores.ports import Records

Key = tuple[str | None, str]  # tenant, thread


class ConversationStore:
    """The pending records of all threads."""

    def __init__(self, records: Records, run: str, wall: Callable[[], float]) -> None:
        self._records = records
        self.run = run  # identifies this runtime among earlier ones
        self._wall = wall
        self._key_of = key_of

    # -- offers ------------------------------------------------------------------------------------------------------

    def keep_offer(self, key: Key, offer: Offer, ttl: float = OFFER_LASTS) -> None:
        if offer.same is None:  # its arguments are not JSON
            return
        record = {
            "arguments": dict(offer.arguments),
            "args": list(offer.args),
            "explanation": offer.explanation.to_dict(),
            "when": offer.when,
            "timeout": offer.timeout,
            "key": offer.key,
            "same": offer.same,
            "by_agent": offer.by_agent,
        }
        self._records.put("pending", self._offer(key, offer.tool), record, ttl=ttl)

    def take_offer(self, key: Key, offer: Offer) -> bool:
        """Use up an offer. Of several processes only one gets True. A newer offer of the same tool stays."""
        place = self._offer(key, offer.tool)
        record = self._records.take("pending", place)
        if record is not None and record["when"] != offer.when:
            self._records.put("pending", place, record, ttl=OFFER_LASTS)
            return False
        return record is not None

    def drop_offer(self, key: Key, tool: str) -> None:
        self._records.delete("pending", self._offer(key, tool))

    def find_offers(self, key: Key, known: dict[str, Offer], now: float) -> dict[str, Offer]:
        """Find the offers in the store and in this process; details that only this process knows are added."""
        from failsoft.core.model.explanation import Explanation

        offers = {tool: offer for tool, offer in known.items() if offer.same is None}
        scope = self._offer(key)
        for place, record in self._records.find("pending", scope):
            tool = _last_part(place)
            mine = known.get(tool)
            if mine is not None and mine.when == record["when"]:
                offers[tool] = mine
                continue
            remaining = remaining_time(record["when"], self._wall())
            if not remaining:
                continue
            offers[tool] = Offer(
                tool,
                record["arguments"],
                Explanation(**record["explanation"]),
                record["when"],
                now + remaining,
                tuple(record["args"]),
                record["timeout"],
                None,
                record["key"],
                record["same"],
                record.get("by_agent", False),  # not in offers of 0.1.0
            )
        return dict(sorted(offers.items(), key=lambda item: item[1].when))

    # -- calls that may dangle ---------------------------------------------------------------------------------------

    def open_call(self, key: Key, turn_id: str, call_id: str, tool: str) -> None:
        self._keep_call(key, turn_id, call_id, {"tool": tool, "run": self.run})

    def close_call(self, key: Key, turn_id: str, call_id: str) -> None:
        self._records.delete("pending", self._call(key, turn_id, call_id))

    def mark_abandoned(self, key: Key, call: Dangling) -> None:
        record = {"tool": call.tool, "run": self.run, "text": call.text}
        self._keep_call(key, call.turn_id, call.call_id, record)

    def find_calls(self, key: Key, explain: Callable[[Outcome[Any]], Explanation]) -> list[Dangling]:
        """Find the unanswered calls: their turn, or their process, has ended without a result."""
        found = []
        for place, record in self._records.find("pending", self._call(key)):
            if self._is_running(record):
                continue
            *_, turn_id, call_id = _parts(place)
            fault = builtin_faults.cancelled(started=True)
            lost: Outcome[Any] = Outcome(call_id, record["tool"], "cancelled", fault=fault)
            found.append(Dangling(call_id, record["tool"], record.get("text") or explain(lost).model, turn_id))
        return found

    def _is_running(self, record: Mapping[str, Any]) -> bool:
        return record.get("text") is None and record["run"] == self.run

    # -- missing tools -----------------------------------------------------------------------------------------------

    def keep_absence(self, key: Key, tool: str, absence: Absence, now: float) -> None:
        remaining = absence.until - now
        record = {"until": self._wall() + remaining, "why": absence.why}
        self._records.put("availability", self._key_of(*key, tool), record, ttl=remaining)

    def drop_absence(self, key: Key, tool: str) -> None:
        self._records.delete("availability", self._key_of(*key, tool))

    def find_absences(self, now: float) -> Iterator[tuple[Key, str, Absence]]:
        """Find the tools that were missing when the previous process ended; ``why`` has been sanitised."""
        for place, record in self._records.find("availability"):
            remaining = min(record["until"] - self._wall(), ABSENT_FOR)
            yield self._key(place), _last_part(place), Absence(now + remaining, record["why"])

    def _key(self, place: str) -> Key:
        tenant, thread, *_ = _parts(place)
        return None if place.startswith(f"{self._key_of(None)}/") else tenant, thread

    def _keep_call(self, key: Key, turn_id: str, call_id: str, record: dict[str, Any]) -> None:
        self._records.put("pending", self._call(key, turn_id, call_id), record, ttl=DANGLES_FOR)

    def _offer(self, key: Key, *tool: str) -> str:
        return self._key_of(*key, "offer", *tool)

    def _call(self, key: Key, *ids: str) -> str:
        return self._key_of(*key, "call", *ids)


def _parts(place: str) -> list[str]:
    from urllib.parse import unquote

    return [unquote(part, errors="surrogatepass") for part in place.split("/")]


def _last_part(place: str) -> str:
    return _parts(place)[-1]
