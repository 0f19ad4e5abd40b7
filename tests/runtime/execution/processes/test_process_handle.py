"""Our side of a process: frames as they come in, in whatever pieces."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator

import pytest

from failsoft.runtime.execution.processes import wire
from failsoft.runtime.execution.processes.process_handle import OutOfStep, Process, ProcessGone
from failsoft.runtime.execution.processes.readiness import Blocking
from failsoft.runtime.execution.processes.worker_attempt import next_frame
from failsoft.runtime.execution.waiting import run_blocking

Pair = tuple[Process, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    process = Process(ours, None)
    yield process, theirs
    process.hang_up()
    theirs.close()


def take(process: Process, seconds: float = 0.2) -> object:
    frame = run_blocking(next_frame(Blocking(), process, time.monotonic() + seconds))
    return None if frame is None else (frame[0], pickle.loads(frame[1]))


def test_two_frames_in_one_read_are_two_frames(pair: Pair) -> None:
    process, theirs = pair
    theirs.sendall(wire.pack(wire.READY, 1) + wire.pack(wire.READY, 2))
    assert take(process) == (wire.READY, 1)
    assert take(process) == (wire.READY, 2)
    assert take(process, 0.01) is None


def test_a_frame_in_pieces_is_one_frame(pair: Pair) -> None:
    process, theirs = pair
    whole = wire.pack(wire.VALUE, "x" * 100)
    for piece in (whole[:2], whole[2:7]):
        theirs.sendall(piece)
        assert take(process, 0.01) is None
    theirs.sendall(whole[7:] + wire.pack(wire.READY, 2)[:3])
    assert take(process) == (wire.VALUE, "x" * 100)
    assert take(process, 0.01) is None


def test_the_exit_status_is_read_from_the_last_frame(pair: Pair) -> None:
    process, theirs = pair
    theirs.sendall(wire.pack(wire.READY, 1) + wire.pack(wire.VALUE, "half")[:9] + wire.death(-11))
    theirs.shutdown(socket.SHUT_WR)
    assert take(process) == (wire.READY, 1)
    with pytest.raises(ProcessGone) as ended:
        take(process)
    assert ended.value.status == -11


def test_nothing_is_collected_after_a_last_frame(pair: Pair) -> None:
    """A process that announces its own end could fill the application's memory until its deadline."""
    process, theirs = pair
    theirs.sendall(wire.death(0) + b"x")
    with pytest.raises(OutOfStep):
        take(process)


def test_an_end_without_a_last_frame_has_no_status(pair: Pair) -> None:
    process, theirs = pair
    theirs.close()
    with pytest.raises(ProcessGone) as ended:
        take(process)
    assert ended.value.status is None


def test_unread_input_is_detected(pair: Pair) -> None:
    process, theirs = pair
    assert not process.has_read()
    process.send(b"a call")
    assert not process.has_read()
    theirs.shutdown(socket.SHUT_WR)
    theirs.recv(3)
    assert not process.has_read()
    theirs.recv(3)
    assert process.has_read()


def test_sending_to_the_dead_is_no_error_and_known(pair: Pair) -> None:
    process, theirs = pair
    theirs.close()
    assert process.send(b"a call") == 6
    assert not process.has_read()


def test_sending_more_than_fits_says_how_much_did(pair: Pair) -> None:
    process, _ = pair
    sent = process.send(bytes(10_000_000))
    assert 0 < sent < 10_000_000
    assert process.send(b"more") == 0
