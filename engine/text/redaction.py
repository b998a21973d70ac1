"""Secrets: what no text of this program may show, in every form that the program or a library writes it."""

# The one place that knows secrets: whatever leaves the program as text (streams, logs, snapshots, reports) goes through
# `redacted`. It imports what it needs when there is a secret, because most commands have none.

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

INSTEAD = "[redacted]"
_NAME = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|CONNECTION_STRING|_KEY$", re.IGNORECASE)
_NO_NAME = re.compile(r"_(PATH|FILE|DIR|ID)$", re.IGNORECASE)
_SIGNED = re.compile(r"[?&][^=&]*(?:sig|token|key|secret|passw|credential)[^=&]*=([^&#\s]+)", re.IGNORECASE)
_SHORTEST = 8
"""The least length in characters of a secret: a shorter value could be an ordinary word."""
_SHORTEST_PART = 6
"""The least length of a password in a URL, and of a line of a secret with several lines."""
_PEM = "-----"
_KNOWN = re.compile(r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|nvapi-)[A-Za-z0-9_-]{20,}")
"""Tokens that their first letters give away."""
_LOGIN = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")
_learned: set[str] = set()


def is_secret(name: str) -> bool:
    """Say whether an environment variable of this name holds a secret."""
    return _NAME.search(name) is not None and _NO_NAME.search(name) is None


def learn(words: Iterable[str]) -> None:
    """Remember the secrets of URLs that are in no environment variable, for example of the command line."""
    _learned.update(secret for word in words for secret in _of_url(word))


def redacted(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a text with `[redacted]` in the place of secrets: those of variables and of URLs, and known tokens."""
    if not text:
        return text
    for form in _forms(frozenset(_learned.union(_of_variables(environment)))):
        if form in text:
            text = text.replace(form, INSTEAD)
    return _LOGIN.sub(rf"\1{INSTEAD}@", _KNOWN.sub(INSTEAD, text))


def digest(secret: str) -> str:
    """Return what stands for a secret where its changes must show, for example in a key."""
    import hashlib

    raw = secret.encode("utf-8", "surrogateescape")
    return f"secret with the digest {hashlib.blake2b(raw, digest_size=16).hexdigest()}"


def redacted_bytes(raw: bytes, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return a text in UTF-8 with `[redacted]` in the place of secrets. Other bytes stay as they are."""
    return redacted(raw.decode("utf-8", "surrogateescape"), environment).encode("utf-8", "surrogateescape")


def _of_variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        is_path = name == "RECIPE_SIGNING_KEY" and not value.startswith(_PEM)
        if is_secret(name) and len(value) >= _SHORTEST and not is_path and not os.path.exists(value):
            yield value
        if "://" in value:
            yield from _of_url(value)


def _of_url(url: str) -> Iterator[str]:
    """Yield the secrets in a URL: `user:password`, the password, and signatures. A password may have `#` and `/`."""
    rest = url.partition("://")[2]
    login = rest.rpartition("@")[0]
    password = login.partition(":")[2]
    if len(password) >= _SHORTEST_PART:
        yield password
    if password or (len(login) >= _SHORTEST and url.startswith("http") and "/" not in login):
        yield login
    yield from (match[1] for match in _SIGNED.finditer(rest) if len(match[1]) >= _SHORTEST)


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """Return everything that stands for a secret in a text, the longest first."""
    if not secrets:
        return ()
    from urllib.parse import unquote

    plain = {each for secret in secrets for each in (secret, secret.strip(), unquote(secret))}
    lines = {line.strip() for secret in plain for line in secret.splitlines() if not line.startswith(_PEM)}
    plain |= {line for line in lines if len(line) >= _SHORTEST_PART}
    written = {form for each in plain for form in _written(each)}
    written |= {form for each in written for form in _written(each)}  # for example JSON that is quoted in a URL
    return tuple(sorted(written | {form for each in plain for form in _base64(each)}, key=len, reverse=True))


def _written(text: str) -> Iterator[str]:
    """Yield a text as URLs, JSON, Python, HTML and XML have it."""
    import html
    import json
    from urllib.parse import quote

    raw = text.encode("utf-8", "surrogateescape")
    yield text
    for quoted in (quote(raw), quote(raw, safe=""), quote(raw, safe="").replace("%20", "+")):
        yield from (quoted, re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted))
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    yield repr(raw)[2:-1]
    yield html.escape(text)
    yield html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    yield html.escape(text, quote=False)


def _base64(text: str) -> Iterator[str]:
    import base64

    raw = text.encode("utf-8", "surrogateescape")
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        yield encoded.decode().rstrip("=")
