"""DSSE envelopes: a payload with its type and its signatures; and any JSON from a remote, parsed with bounds."""

# The format of envelopes: https://github.com/secure-systems-lab/dsse.

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from dataclasses import dataclass
from typing import Any

from engine.store.remote.keys import Signer
from engine.store.remote.objects import RefusedError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
DEPTH = 100
"""The most open lists and objects at any place. A record has 8."""

_SURROGATES = ("\\ud", "\\uD")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.?)*"?|[][{}]', re.DOTALL)


WRONG = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError)
"""The errors of code that reads fields of JSON that have another form than expected."""


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
        fields = parse(raw)
        signatures = tuple(
            (str(each.get("keyid", "")), base64.b64decode(each["sig"], validate=True)) for each in fields["signatures"]
        )
        payload = base64.b64decode(fields["payload"], validate=True)
        kind = fields["payloadType"]
    except WRONG as error:
        raise RefusedError("no envelope", f"the record is no DSSE envelope: {fault(error)}") from None
    if kind != PAYLOAD_TYPE:
        raise RefusedError("wrong type", f"the envelope has the type {str(kind)[:80]!r}, not {PAYLOAD_TYPE}")
    return Envelope(payload, kind, signatures)


class TooDeepError(ValueError):
    """More than DEPTH lists and objects are within each other."""


def parse(raw: bytes) -> Any:
    """Return the value of JSON in UTF-8. Raises ValueError for other bytes, and TooDeepError.

    Numbers are finite, and texts can be written as UTF-8.

    Python's own parser stops at the interpreter's limit of recursion. Its stack is then nearly full, and the
    garbage collection that runs there cannot clean up what has nothing to do with the JSON.
    """
    text = raw.decode()
    if text.count("[") + text.count("{") > DEPTH and _depth(text) > DEPTH:  # the first costs nothing
        raise TooDeepError(f"more than {DEPTH} lists and objects are within each other")
    value = _DECODER.decode(text)
    if any(each in text for each in _SURROGATES):
        json.dumps(value, ensure_ascii=False).encode()  # a half of a pair is no text, and no later code can write it
    return value


def _finite(text: str) -> float:
    """Return a number. Raises ValueError for one that is not finite: no record of ours has such a number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
"""One for all texts: to make a decoder costs as much as to read a short text."""


def fault(error: BaseException) -> str:
    """Return what is wrong with JSON, from an error in WRONG. The text has nothing that the JSON's writer chose."""
    match error:
        case json.JSONDecodeError():
            text = f"no JSON from line {error.lineno}, column {error.colno} on"
        case TooDeepError():
            text = str(error)
        case UnicodeDecodeError():
            text = f"no UTF-8 from byte {error.start} on"
        case binascii.Error():
            text = "a value is not in base64"
        case UnicodeEncodeError():
            text = "a text has half of a surrogate pair"
        case KeyError():
            text = f"{error.args[0]!r} is missing"
        case StopIteration():
            text = "the record is missing"
        case TypeError() | AttributeError():
            text = "a value has another type"
        case _:
            text = "a value is wrong"
    return text


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest
