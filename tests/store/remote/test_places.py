"""What every place keeps: a folder, a real S3 server and a real web server, one contract."""

import asyncio

import pytest

from engine.errors import UsageError
from engine.store.remote.objects import DeniedError, MissingError, RefusedError, RemoteError, shown
from engine.store.remote.places import place_of


def use(remote, work, *, writes=True):
    """Run a coroutine function with the remote's place."""

    async def run():
        place = place_of(
            remote.url if writes else remote.read_only_url,
            environ=remote.writer if writes else remote.reader,
            writes=writes,
        )
        try:
            return await work(place)
        finally:
            await place.close()

    return asyncio.run(run())


def test_what_was_written_is_read_again(remote):
    async def work(place):
        assert await place.write("a/b", b"x" * 100_000)
        return await place.read("a/b", most=100_000), await place.entry("a/b")

    content, entry = use(remote, work)
    assert content == b"x" * 100_000
    assert (entry.name, entry.size) == ("a/b", 100_000)
    assert entry.modified > 1_700_000_000


def test_a_missing_object_is_no_failure_of_the_place(remote):
    async def work(place):
        assert await place.entry("nothing") is None
        await place.remove("nothing")
        with pytest.raises(MissingError):
            await place.read("nothing", most=10)

    use(remote, work)


def test_create_leaves_what_is_there(remote):
    async def work(place):
        first = await place.write("a", b"first", create=True)
        second = await place.write("a", b"second", create=True)
        return first, second, await place.read("a", most=10)

    assert use(remote, work) == (True, False, b"first")


def test_an_object_larger_than_allowed_is_refused(remote):
    async def work(place):
        await place.write("a", b"x" * 11)
        with pytest.raises(RefusedError, match=r"at most 10|the 10 bytes"):
            await place.read("a", most=10)

    use(remote, work)


def test_a_removed_object_is_gone(remote):
    async def work(place):
        await place.write("a", b"x")
        await place.remove("a")
        return await place.entry("a")

    assert use(remote, work) is None


def test_who_may_only_read_cannot_write(remote):
    if remote.url.startswith("file"):
        pytest.skip("the folder's own permissions decide, and tests may run as root")

    async def work(place):
        with pytest.raises(DeniedError) as refused:
            await place.write("a", b"x")
        return str(refused.value)

    assert "secret" not in use(remote, work, writes=False)


def test_objects_are_listed_where_the_place_can_list(remote):
    async def work(place):
        await place.write("one/a", b"1")
        await place.write("two/b", b"22")
        return [(entry.name, entry.size) async for entry in place.list("two")]

    if remote.url.startswith("http"):
        with pytest.raises(RemoteError, match="cannot be listed"):
            use(remote, work)
    else:
        assert use(remote, work) == [("two/b", 2)]


@pytest.mark.parametrize(("scheme", "prefix"), [("s3", "AWS"), ("gs", "GOOGLE"), ("az", "AZURE")])
def test_settings_of_the_connection_are_no_settings_of_the_bucket(scheme, prefix):
    environ = {f"{prefix}_ALLOW_HTTP": "true", f"{prefix}_PROXY_URL": "http://127.0.0.1:1", f"{prefix}_PAGER": "less"}
    credentials = {"GOOGLE_BEARER_TOKEN": "token", "AZURE_STORAGE_ACCOUNT_NAME": "team"}
    place_of(f"{scheme}://bucket/x", environ=environ | credentials, writes=True).checked()
    wrong = credentials | {f"{prefix}_ALLOW_HTTP": "banana"}
    with pytest.raises(RemoteError, match="banana"):
        place_of(f"{scheme}://bucket/x", environ=wrong, writes=True).checked()


def test_an_url_is_shown_without_its_secrets():
    assert shown("https://user:password@host:8080/a?sig=secret#x") == "https://host:8080/a"
    assert shown("s3://bucket/prefix") == "s3://bucket/prefix"


@pytest.mark.parametrize("url", ["ftp://host/x", "cache", "", "javascript:x"])
def test_an_unknown_scheme_is_refused_with_those_that_work(url):
    with pytest.raises(UsageError) as refused:
        place_of(url, environ={}, writes=False)
    assert "s3://" in refused.value.facts[0]
