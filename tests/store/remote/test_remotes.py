"""What every place keeps: a folder, a real S3 server and a real web server, one contract."""

import asyncio

import pytest

from engine.errors import UsageError
from engine.store.remote.objects import DeniedError, MissingError, RefusedError, RemoteError, shown
from engine.store.remote.remotes import remote_of


def use(remote, work, *, writes=True):
    """Run a coroutine function with the remote's place."""

    url, environ = (remote.url, remote.writer) if writes else (remote.read_only_url, remote.reader)

    async def run():
        place = remote_of(url, environ=environ, writes=writes)
        try:
            return await work(place)
        finally:
            await place.close()

    return asyncio.run(run())


def test_what_was_written_is_read_up_to_a_size_until_it_is_removed(remote):
    async def work(place):
        assert await place.write("a/b", b"x" * 100_000)
        assert await place.read("a/b", most=100_000) == b"x" * 100_000
        for most in (10, 99_999):
            with pytest.raises(RefusedError, match=r"at most \d+|the \d+ bytes"):
                await place.read("a/b", most=most)
        entry = await place.entry("a/b")
        assert (entry.name, entry.size) == ("a/b", 100_000)
        assert entry.modified > 1_700_000_000
        await place.remove("a/b")
        assert await place.entry("a/b") is None
        await place.remove("a/b")
        with pytest.raises(MissingError):
            await place.read("a/b", most=10)
        assert await place.write("a/b", b"first", create=True)
        assert not await place.write("a/b", b"second", create=True)
        assert await place.read("a/b", most=10) == b"first"

    use(remote, work)


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
    remote_of(f"{scheme}://bucket/x", environ=environ | credentials, writes=True).checked()
    wrong = credentials | {f"{prefix}_ALLOW_HTTP": "banana"}
    with pytest.raises(RemoteError, match="banana"):
        remote_of(f"{scheme}://bucket/x", environ=wrong, writes=True).checked()


def test_an_url_is_shown_without_its_secrets():
    assert shown("https://user:password@host:8080/a?sig=secret#x") == "https://host:8080/a"
    assert shown("s3://bucket/prefix") == "s3://bucket/prefix"


@pytest.mark.parametrize("url", ["ftp://host/x", "cache", "", "javascript:x"])
def test_an_unknown_scheme_is_refused_with_those_that_work(url):
    with pytest.raises(UsageError) as refused:
        remote_of(url, environ={}, writes=False)
    assert "s3://" in refused.value.facts[0]
