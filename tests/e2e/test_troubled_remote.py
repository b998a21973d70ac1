"""Remotes in trouble: a build names the trouble in one line and goes on, soon, and shows no secret."""

import base64
import gzip
import shutil
import time
from urllib.parse import quote

import pytest
from team_machine import Machine, fetched_in
from troubled_servers import Troubled, body, dripping, status

PASSWORD = "p4ss-w0rd-of-the-remote"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAMPLE"
_HANG = 60
"""Seconds: a limit that only a hang reaches; the program's own limits are a few seconds."""
_BUILD = ("build", "r.yaml", "--to", "fetch")
_OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return fetched_in(tmp_path_factory.mktemp("fetched") / "project")


@pytest.fixture(scope="module")
def settings(files, tmp_path_factory):
    """The settings of a user who has a signing key."""
    first = Machine(tmp_path_factory.mktemp("first") / "project", files)
    first.keygen()
    return first.settings


@pytest.fixture
def machine(files, settings, tmp_path):
    """A machine that pushes and reads."""
    each = Machine(tmp_path / "machine", files)
    shutil.copytree(settings, each.settings)
    return each


def built(machine, **variables):
    """Build one job, and return the only line about the remote."""
    machine.environment |= variables
    start = time.monotonic()
    done = machine(*_BUILD, expect=0)
    assert time.monotonic() - start < _HANG
    lines = [line for line in done.stderr.splitlines() if "remote" in line]
    assert len(lines) == 1, done.stderr
    assert "built    fetch" in done.stderr
    assert not leaks(machine, done.stdout + done.stderr)
    return lines[0]


def forms(secret):
    """Return a secret as texts have it."""
    login = f"user:{secret}"
    return {
        secret, quote(secret, safe=""), repr(secret)[1:-1], base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.b64encode(login.encode()).decode().rstrip("="), *secret.split("\n"),
    }  # fmt: skip


def leaks(machine, text, *secrets):
    """Return where a secret can be read: in the output, the store, or the packages."""
    places = {"the output": text.encode()}
    for folder in ("cache", "build"):
        for path in (machine.folder / folder).rglob("*"):
            if path.is_file():
                places[str(path)] = path.read_bytes()
    every = {form.encode() for secret in (PASSWORD, SECRET, *secrets) for form in forms(secret)}
    return [(place, form) for place, content in places.items() for form in every if form in content]


def web(server):
    return {"RECIPE_REMOTE": f"http://user:{PASSWORD}@127.0.0.1:{server.port}/x"}


def bucket(server):
    return {
        "RECIPE_REMOTE": "s3://bucket/x", "AWS_ENDPOINT_URL": f"http://user:{PASSWORD}@127.0.0.1:{server.port}",
        "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
    }  # fmt: skip


def of_s3(line, code):
    return body(f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode(), line=line)


@pytest.mark.parametrize("pushes", ["0", "1"], ids=["reads", "pushes"])
@pytest.mark.parametrize(
    ("answer", "cause", "advice"),
    [
        (status("401 Unauthorized"), "401 Unauthorized", "RECIPE_REMOTE_TOKEN"),
        (status("403 \x1b[31mForbidden"), "403 Forbidden", "RECIPE_REMOTE_TOKEN"),
        (status("302 Found", "Location: /"), "302 Found", "the remote's URL"),
        (status("500 Oh"), "500 Internal Server Error", ""),
        (body(b"<html>Who are you?</html>"), "no envelope", ""),
    ],
    ids=["401", "403", "302", "500", "a page"],
)
@pytest.mark.sample(2)
def test_a_web_server_that_refuses_is_named_once(machine, answer, cause, advice, pushes):
    with Troubled(answer) as server:
        line = built(machine, RECIPE_PUSH=pushes, **web(server))
    assert f"http://127.0.0.1:{server.port}/x" in line
    assert cause in line
    assert advice in line
    assert line.isprintable()


@pytest.mark.parametrize("pushes", ["0", "1"], ids=["reads", "pushes"])
@pytest.mark.parametrize(
    ("answer", "cause", "advice"),
    [
        (of_s3("403 Forbidden", "SignatureDoesNotMatch"), "the credentials are refused", "AWS_SECRET_ACCESS_KEY"),
        (of_s3("404 Not Found", "NoSuchBucket"), "no such bucket", "make it"),
        (status("401 Unauthorized"), "the credentials are refused", "AWS_ACCESS_KEY_ID"),
    ],
    ids=["wrong secret", "no bucket", "401"],
)
@pytest.mark.sample(2)
def test_a_bucket_that_refuses_is_named_once(machine, answer, cause, advice, pushes):
    with Troubled(answer) as server:
        line = built(machine, RECIPE_PUSH=pushes, **bucket(server))
    assert "s3://bucket/x" in line
    assert cause in line
    assert advice in line


def test_a_missing_bucket_on_a_real_server_is_named_once(machine, seaweed):
    variables = seaweed.environ("reader") | {"RECIPE_REMOTE": "s3://nobody-made-this/x", "RECIPE_PUSH": "0"}
    assert "no such bucket" in built(machine, **variables)


def test_a_wrong_secret_on_a_real_server_is_named_once(machine, seaweed):
    variables = seaweed.environ("writer") | {"RECIPE_REMOTE": seaweed.url("x"), "AWS_SECRET_ACCESS_KEY": SECRET}
    assert "the credentials are refused" in built(machine, **variables)


SLOW = {
    "headers": dripping(_OK, b"X-A: b\r\n"),
    "a status": dripping(b"", b"H"),
    "preliminary answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": dripping(_OK + b"Content-Length: 4000\r\n\r\n", b"x"),
    "chunks": dripping(_OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "nothing": dripping(b"", b""),
}


@pytest.mark.parametrize("place", [web, bucket])
@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
@pytest.mark.sample(1)
def test_a_server_that_sends_a_byte_now_and_then_costs_seconds(machine, answer, place):
    with Troubled(answer) as server:
        assert "is left alone" in built(machine, **place(server))


WRONG = {
    "a junk date": status("200 OK", "Last-Modified: yesterday or so"),
    "a date after the last one": status("200 OK", "Last-Modified: Wed, 21 Oct 99999 07:28:00 GMT"),
    "a length that is no number": body(b"abc", "Content-Length: many"),
    "a negative length": body(b"abc", "Content-Length: -5"),
    "a length of many digits": body(b"abc", f"Content-Length: {'9' * 5000}"),
    "two lengths": body(b"abc", "Content-Length: 3", "Content-Length: 5"),
    "fewer bytes": body(b"abc", "Content-Length: 10000"),
    "chunks that are none": body(b"zz\r\nabc\r\n", "Transfer-Encoding: chunked"),
    "half of a compressed body": body(gzip.compress(b"x" * 1000)[:20], "Content-Encoding: gzip"),
    "a header with NUL": _OK + b"X: a\0b\r\n\r\n",
    "a header without end": _OK + b"X: " + b"a" * 2_000_000,
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "no protocol": b"\x16\x03\x01\xff\r\n\r\n",
    "no answer": b"",
    "another protocol from now on": status("101 Switching Protocols"),
    "deep JSON": body(b"[" * 100_000),
    "a number without end": body(b'{"payload": 1' + b"0" * 4000 + b"}"),
}


@pytest.mark.parametrize("place", [web, bucket])
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
@pytest.mark.sample(2)
def test_an_answer_that_is_wrong_fails_no_build(machine, answer, place):
    with Troubled(answer) as server:
        built(machine, **place(server))


@pytest.mark.parametrize(
    "token", ["tokän-of-the-team", "first-line\nsecond-line", "a\x01token-of-the-team", "\udcff\udcfetoken-bytes"]
)
@pytest.mark.sample(1)
def test_a_token_that_no_header_may_have_is_named_without_its_value(machine, token):
    with Troubled(status("404 Not Found")) as server:
        line = built(machine, RECIPE_REMOTE=f"http://127.0.0.1:{server.port}/x", RECIPE_REMOTE_TOKEN=token)
    assert "RECIPE_REMOTE_TOKEN must be one line of ASCII characters" in line
    assert not leaks(machine, line, *token.encode("utf-8", "replace").decode().split("\n"))


@pytest.mark.parametrize("password", ["open#door-of-mine", "open/door-of-mine", "open?door-of-mine"])
@pytest.mark.parametrize("what", ["build", "push"])
@pytest.mark.sample(2)
def test_a_password_that_splits_its_url_is_refused_without_its_value(machine, password, what):
    words = _BUILD if what == "build" else ("cache", "push", "r.yaml", "--remote")
    url = f"https://user:{password}@host.invalid/x"
    machine.environment |= {"RECIPE_REMOTE": url} if what == "build" else {}
    refused = machine(*words, *(() if what == "build" else (url,)), expect=2)
    assert "%23 for #" in refused.stderr
    assert "door" not in refused.stdout + refused.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"AWS_ENDPOINT_URL": "no URL"}, {"AWS_ENDPOINT_URL": f"http://user:{PASSWORD}\n@h"}, {"AWS_REGION": "ä\n"},
        {"AWS_SESSION_TOKEN": "first-line\nsecond-line"}, {"AWS_TIMEOUT": "soon"}, {"AWS_PROXY_URL": "::"},
        {"RECIPE_REMOTE": "s3:///x"}, {"AWS_ALLOW_HTTP": "banana"},
    ],
)  # fmt: skip
@pytest.mark.sample(2)
def test_settings_that_the_library_refuses_fail_no_build(machine, variables):
    with Troubled(status("500 Oh")) as server:
        line = built(machine, **{**bucket(server), **variables})
    assert not leaks(machine, line, "first-line\nsecond-line")


@pytest.mark.whole("the tests of one refusal each look for the secrets, too")
def test_a_build_with_a_remote_leaves_no_secret_anywhere(machine, nginx, tmp_path):
    token = "hf_own-token-of-the-hub"
    machine.uses(nginx.url("secrets"), HF_TOKEN=token, AWS_SECRET_ACCESS_KEY=SECRET)
    printed = [machine(*_BUILD, *more, expect=0) for more in ((), ("--json",), ("--refresh",), ("-v", "--refresh"))]
    for words in (
        ("cache", "push", "r.yaml", "--remote", nginx.url("secrets")), ("why", "r.yaml"), ("show", "r.yaml"),
        ("doctor", "--bundle", str(machine.folder / "build" / "bundle.tar.gz")), ("cache", "verify", "--remote"),
    ):  # fmt: skip
        (machine.folder / "build").mkdir(exist_ok=True)
        printed.append(machine(*words))
    with Troubled(status("500 Oh")) as server:
        machine.uses(f"http://user:{nginx.password}@127.0.0.1:{server.port}/x")
        printed.append(machine(*_BUILD, "--refresh", expect=0))
    text = "".join(done.stdout + done.stderr for done in printed)
    assert not leaks(machine, text, nginx.password, token)
