"""A user's own store that fails: it is logged once, counted, and never a caller's problem."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import DOWN, Scripted, virtual

from failsoft import Runtime
from failsoft.errors import ManifestError
from failsoft.stores.failsafe import METHODS, FailsafeStore
from failsoft.stores.memory import MemoryStore


class Broken(MemoryStore):
    """Fails in every given method; ``says`` is the text of its errors."""

    def __init__(self, *names: str, says: str = "the disk is gone, password=hunter2") -> None:
        super().__init__()
        self.asked: list[str] = []
        for name in names:
            setattr(self, name, lambda *_, name=name, **__: self._fail(name, says))

    def _fail(self, name: str, says: str) -> Any:
        self.asked.append(name)
        raise OSError(says)


@pytest.mark.parametrize("names", [("put",), ("put", "delete"), ("find", "get"), ("flush",), METHODS], ids=" ".join)
@virtual
async def test_a_failing_store_is_logged_once_and_does_not_affect_callers(
    names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken(*names)
    rt = Runtime(store=store)
    rt.add(Scripted(*[DOWN] * 9), id="search", retry={"max_attempts": 3}, breaker={"failure_threshold": 3})
    outcome = await rt.call("search")
    assert outcome.status == "failed"
    assert rt.health("search").state == "open"
    async with rt.turn(thread="chat-1") as turn:
        turn.call("search")
    assert turn.report.outcomes["search-1"].status == "failed"
    rt.memory.forget()
    await rt.flush()
    await rt.close()
    assert store.asked
    said = [record.getMessage() for record in caplog.records if "the store Broken failed" in record.getMessage()]
    assert len(said) == 1
    assert "the disk is gone" in said[0]
    assert "hunter2" not in caplog.text


@virtual
async def test_a_loss_is_reported_once() -> None:
    store = Broken("put")
    rt = Runtime(store=store)
    rt.add(Scripted(*[DOWN] * 3), id="search", retry={"max_attempts": 3}, breaker={"failure_threshold": 3})
    await rt.call("search")
    assert [await rt.flush(), await rt.flush()] == [False, True]


def test_losses_are_the_stores_count_and_our_own() -> None:
    shielded = FailsafeStore(Broken("put"))
    shielded.put("memory", "k", 1)
    shielded._store.lost = 2  # type: ignore[misc]
    assert shielded.lost == 3


def test_a_failed_flush_counts_as_a_loss_if_the_store_does_not_count_losses() -> None:
    class Terse(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            del self.lost

        def flush(self, timeout: float) -> bool:
            return False

    shielded = FailsafeStore(Terse())
    assert (shielded.lost, shielded.flush(0), shielded.lost) == (0, False, 1)


def test_an_object_that_is_not_a_store_is_rejected_with_its_missing_methods() -> None:
    with pytest.raises(
        ManifestError, match=r"store: expected .*sqlite:///.* got dict, which has no put, find, delete, append"
    ):
        Runtime(store={})  # type: ignore[arg-type]


def test_base_exceptions_go_on() -> None:
    class Stopped(MemoryStore):
        def put(self, *_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FailsafeStore(Stopped()).put("memory", "k", 1)


@virtual
async def test_lone_surrogates_in_a_thread_name_are_accepted() -> None:
    store = MemoryStore()
    rt = Runtime(store=store)
    rt.add(Scripted(*[DOWN] * 3), id="search", retry={"max_attempts": 3})
    await rt.call("search", thread="chat-\ud800")
    later = Runtime(store=store)
    later.add(Scripted("fine"), id="search")
    assert [offer.tool for offer in later.threads["chat-\ud800"].offers] == ["search"]
