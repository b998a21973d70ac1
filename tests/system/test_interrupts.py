"""Interruptions are deferred while an event is shown, and raised before the next one is made."""

import os
import signal
import threading

import pytest

from engine.system import interrupts


@pytest.fixture(autouse=True)
def installed():
    interrupts.restore()  # whatever has run in this process before
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert interrupts.install()
    yield
    interrupts.restore()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def counting(ends):
    try:
        yield from range(3)
    finally:
        ends.append("closed")


def handle(ends, handled, interruptions):
    """Read events, with so many interruptions while each is handled."""
    for number in interrupts.between(counting(ends), str):
        for _ in range(interruptions):
            interrupt()
        handled.append(number)


@pytest.mark.parametrize(("interruptions", "expected"), [(1, [0]), (2, [])])
def test_an_interruption_while_an_event_is_handled_is_raised_behind_it_and_a_second_one_at_once(
    interruptions, expected
):
    ends, handled = [], []
    with pytest.raises(KeyboardInterrupt):
        handle(ends, handled, interruptions)
    assert (handled, ends) == (expected, ["closed"])


def test_an_interruption_while_an_event_is_made_is_raised_there():
    def events():
        yield 1
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        yield 2

    assert list(interrupts.between(events(), str)) == [1, 2]


def test_behind_the_last_event_an_interruption_changes_nothing_but_for_what_may_be_given_up():
    for _ in interrupts.between(counting([]), int):
        pass
    interrupt()
    with pytest.raises(KeyboardInterrupt), interrupts.raised():
        raise AssertionError("not reached")
    with interrupts.deferred():
        pass


def test_what_is_printed_is_deferring_together():
    printed = []

    def show():
        with interrupts.deferred():
            interrupt()
            printed.append("whole")

    with pytest.raises(KeyboardInterrupt):
        show()
    assert printed == ["whole"]


def test_in_a_thread_and_for_a_second_time_nothing_is_installed():
    assert not interrupts.install()
    interrupts.restore()
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(interrupts.install()))
    thread.start()
    thread.join()
    assert outcomes == [False]


def test_a_handler_of_the_caller_stays():
    interrupts.restore()
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("terminated"))
    interrupts.install()
    os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    assert seen == ["terminated"]
