"""DSSE envelopes: a payload with its type and its signatures (https://github.com/secure-systems-lab/dsse)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from engine.store.remote import untrusted
from engine.store.remote.errors import RefusedError
from engine.store.remote.keys import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"


@dataclass(frozen=True)
class Envelope:
    """A payload and its signatures, each with the name of its key. The names prove nothing."""

    payload: bytes
    payload_type: str
    signatures: tuple[tuple[str, bytes], ...]

    @property
    def message(self) -> bytes:
        """What is signed: the pre-authentication encoding of type and payload."""
        kind = self.payload_type.encode()
        return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(self.payload), self.payload)

    def encode(self) -> bytes:
        """Return the envelope as JSON."""
        signatures = [{"keyid": key, "sig": base64.b64encode(each).decode()} for key, each in self.signatures]
        rest = json.dumps({"payloadType": self.payload_type, "signatures": signatures}, sort_keys=True).encode()
        # The payload is most of it, and base64 has no character that JSON would escape.
        return b'{"payload": "%s", %s\n' % (base64.b64encode(self.payload), rest[1:])


def seal(payload: bytes, signer: Signer | None) -> Envelope:
    """Return the envelope of a payload, signed where there is a signer."""
    bare = Envelope(payload, PAYLOAD_TYPE, ())
    if signer is None:
        return bare
    return Envelope(payload, PAYLOAD_TYPE, ((signer.public.id, signer.sign(bare.message)),))


def decode(raw: bytes) -> Envelope:
    """Return the envelope in JSON. Raises RefusedError for other bytes."""
    try:
        fields = untrusted.parse(raw)
        signatures = tuple(
            (str(each.get("keyid", "")), base64.b64decode(each["sig"], validate=True)) for each in fields["signatures"]
        )
        payload = base64.b64decode(fields["payload"], validate=True)
        kind = fields["payloadType"]
    except untrusted.WRONG as error:
        raise RefusedError("no envelope", f"the record is no DSSE envelope: {untrusted.fault(error)}") from None
    if kind != PAYLOAD_TYPE:
        raise RefusedError("wrong type", f"the envelope has the type {str(kind)[:80]!r}, not {PAYLOAD_TYPE}")
    return Envelope(payload, kind, signatures)
