"""Which envelopes of a remote are admitted: signed by a trusted key in its time, for the key that was asked for."""

from __future__ import annotations

from engine.key import Key
from engine.store.remote import envelope, statement
from engine.store.remote.errors import RefusedError
from engine.store.remote.statement import Statement
from engine.store.remote.trust import Trust

LARGEST_RECORD = 64 << 20
"""The most bytes of a record's object; the record of an artifact with 10,000 files has about 5 MB."""


def admitted(raw: bytes, key: Key | None, trust: Trust) -> Statement:
    """Return the statement of an envelope. Raises RefusedError where it is not to be used, or for another key."""
    return judged(raw, key, trust)[0]


def judged(raw: bytes, key: Key | None, trust: Trust) -> tuple[Statement, str]:
    """Return the statement of an envelope, and the identifier of the trusted key that signed it, or "".

    Raises RefusedError, as `admitted` does.
    """
    opened = envelope.decode(raw)
    signer = trust.signer_of(opened)
    read = statement.read(opened.payload)
    trust.check_time(signer, read.signed_at)
    if key is not None and dict(read.record.key) != dict(key):
        raise RefusedError("other key", "the record under this name was made for another key")
    return read, "" if signer is None else signer.key.id
