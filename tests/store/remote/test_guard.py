"""The guard: whatever a library raises is a RemoteError, and no request takes longer than its limit."""

import asyncio
import itertools
from types import SimpleNamespace

import pytest

from engine.errors import StepError
from engine.store.remote import guard
from engine.store.remote.guard import GuardedRemote
from engine.store.remote.objects import DeniedError, Entry, MissingError, RemoteError


class PanicError(BaseException):
    """Stands for a panic of obstore, which is no Exception."""


class FakeTransport:
    """Raises an error in every request, or hangs where there is none."""

    def __init__(self, error=None, pages=()):
        self._error = error
        self._pages = pages

    async def _fail(self, *_, **__):
        if self._error is not None:
            raise self._error
        await asyncio.sleep(600)

    read = write = entry = remove = close = upload = sha256 = _fail

    async def list(self, _):
        for page in self._pages:
            yield page
        await self._fail()

    def meaning(self, error, place):
        return MissingError(place) if isinstance(error, LookupError) else None


REQUESTS = {
    "read": lambda place: place.read("a", most=10),
    "write": lambda place: place.write("a", b"x"),
    "create": lambda place: place.write("a", b"x", create=True),
    "entry": lambda place: place.entry("a"),
    "remove": lambda place: place.remove("a"),
    "sha256": lambda place: place.sha256("a", 10),
    "list": lambda place: all_of(place.list("a")),
}
ERRORS = [
    ValueError("Invalid date"), UnicodeEncodeError("ascii", "ä", 0, 1, "no ASCII"), EOFError(),
    OverflowError("too large"), RecursionError("deep"), OSError(5, "Input/output error"), PanicError("panicked"),
    StopIteration(), MemoryError(), NotImplementedError(), TimeoutError(), ConnectionResetError(),
]  # fmt: skip


async def all_of(listing):
    return [each async for each in listing]


def guarded(transport):
    return GuardedRemote("s3://bucket", lambda: transport)


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_every_error_is_an_error_of_the_remote(error, request_):
    with pytest.raises(RemoteError) as raised:
        asyncio.run(request_(guarded(FakeTransport(error))))
    assert "s3://bucket" in raised.value.what
    assert raised.value.what.isprintable()


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_request_that_hangs_ends(request_, monkeypatch):
    monkeypatch.setattr(guard, "PATIENCE", 0.05)
    monkeypatch.setattr(guard, "_LISTED", 0.05)
    with pytest.raises(RemoteError, match="no answer in time"):
        asyncio.run(asyncio.wait_for(request_(guarded(FakeTransport())), 30))


def test_an_error_for_users_stays_as_it_is():
    with pytest.raises(StepError):
        asyncio.run(guarded(FakeTransport(StepError("the file changed"))).read("a", most=1))


def test_what_is_missing_is_missing_and_a_write_into_nothing_is_an_error():
    place = guarded(FakeTransport(LookupError()))
    assert asyncio.run(place.entry("a")) is None
    with pytest.raises(RemoteError) as raised:
        asyncio.run(place.write("a", b"x"))
    assert not isinstance(raised.value, MissingError)


def test_settings_that_open_no_place_are_an_error_of_the_first_request():
    def opened():
        raise ValueError("banana is no region")

    place = GuardedRemote("s3://bucket", opened)
    with pytest.raises(DeniedError, match="banana"):
        asyncio.run(place.read("a", most=1))
    asyncio.run(place.close())


def test_a_listing_that_begins_again_and_again_ends():
    pages = [[Entry("a", 1, 0.0)]] * 3
    with pytest.raises(RemoteError, match="again and again"):
        asyncio.run(all_of(guarded(FakeTransport(pages=pages)).list("a")))


async def pieces(size):
    for _ in range(3):
        yield bytes(size)


@pytest.mark.parametrize(("size", "is_too_slow"), [(1000, True), (200_000, False)])
def test_an_answer_that_arrives_too_slowly_ends(monkeypatch, size, is_too_slow):
    seconds = itertools.count(0, 2)  # each piece takes two seconds
    monkeypatch.setattr(guard, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    answer = all_of(guard.measured("a", pieces(size)))
    if is_too_slow:
        with pytest.raises(RemoteError, match="too slow"):
            asyncio.run(answer)
    else:
        assert asyncio.run(answer) == [bytes(size)] * 3


def test_an_error_of_many_lines_is_one_line_without_the_query_of_a_url():
    error = ValueError("\n GET https://host/x?sig=abc failed\x1b[31m\n\nDebug")
    assert guard.first_line(error) == "GET https://host/x failed [31m"
