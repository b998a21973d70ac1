"""Whose signatures count: the user's list of public keys, with the time until which each counts."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.store import disk
from engine.store.remote.envelope import Envelope
from engine.store.remote.keys import PublicKey
from engine.store.remote.objects import UntrustedError
from engine.system import regular

NONE = "none"
"""The word by which a user trusts a remote without signatures."""
_AHEAD = 300.0
"""Seconds that the clock of a signer may be ahead of this machine's clock."""
_REVOKED, _UNTIL, _NAME = "revoked", "until=", "name="


@dataclass(frozen=True)
class TrustedKey:
    """A line of the list: a public key, a name for messages, the last day on which it may sign, or its revocation."""

    key: PublicKey
    name: str = ""
    until: dt.date | None = None
    revoked: bool = False

    @classmethod
    def parse(cls, line: str, where: str) -> TrustedKey:
        """Return the key of a line such as `ed25519:BASE64 name=ci until=2027-01-31`. Raises UsageError."""
        words = line.split()
        revoked = words[0] == _REVOKED
        key, *fields = words[1:] if revoked and len(words) > 1 else words
        name, until = "", None
        for field in fields:
            if field.startswith(_NAME):
                name = field.removeprefix(_NAME)
            elif field.startswith(_UNTIL):
                until = day(field.removeprefix(_UNTIL), where)
            else:
                raise UsageError(
                    f"{where}: {field!r} is no field of a trusted key",
                    ["fields: name=NAME, until=YEAR-MONTH-DAY; a line may begin with the word `revoked`"],
                )
        return cls(PublicKey.parse(key), name, until, revoked)

    def __str__(self) -> str:
        fields = [_REVOKED] if self.revoked else []
        fields.append(str(self.key))
        fields += [f"{_NAME}{self.name}"] if self.name else []
        fields += [f"{_UNTIL}{self.until}"] if self.until else []
        return " ".join(fields)

    @property
    def shown(self) -> str:
        """The key in messages: its name, or its identifier."""
        return self.name or self.key.id


@dataclass(frozen=True)
class Trust:
    """The signatures that count. With `everything`, nothing needs a signature (`trust: none`)."""

    keys: tuple[TrustedKey, ...] = ()
    everything: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing of any remote can be used."""
        return not self.everything and all(key.revoked for key in self.keys)

    def signer_of(self, envelope: Envelope) -> TrustedKey | None:
        """Return the trusted key that signed an envelope; None without a signature if everything is trusted.

        Raises UntrustedError: a missing, wrong or unknown signature, or one of a revoked key.
        """
        for key in self.keys:
            if any(key.key.has_signed(envelope.message, signature) for _, signature in envelope.signatures):
                if key.revoked:
                    raise UntrustedError("revoked key", f"the record is signed by {key.shown}, which is revoked")
                return key
        if self.everything:
            return None
        if not envelope.signatures:
            raise UntrustedError("not signed", "the record has no signature")
        names = ", ".join(name[:16] for name, _ in envelope.signatures)
        known = {key.key.id for key in self.keys}
        if any(name in known for name, _ in envelope.signatures):
            raise UntrustedError("wrong signature", f"the signature is not that of the key that it names, {names}")
        raise UntrustedError("unknown key", f"the record is signed by {names}, which is not on your list")

    def described(self, envelope: Envelope) -> str:
        """Return who signed an envelope, for people; never an error."""
        if not envelope.signatures:
            return "not signed"
        try:
            key = self.signer_of(envelope)
        except UntrustedError as error:
            return error.what
        return "signed by nobody on your list" if key is None else f"signed by {key.shown}"

    def check_time(self, key: TrustedKey | None, signed_at: float) -> None:
        """Raise UntrustedError for a record that is signed in the future or after the last day of its key."""
        if signed_at > time.time() + _AHEAD:
            raise UntrustedError("signed in the future", f"the record is signed at {_shown(signed_at)}")
        if key is not None and key.until is not None and _date(signed_at) > key.until:
            raise UntrustedError("expired key", f"the record is signed after {key.until}, the last day of {key.shown}")

    def counts(self, key_id: str) -> bool:
        """Say whether records that the key `key_id` signed may still be used; "" is a record without a signature."""
        listed = next((key for key in self.keys if key.key.id == key_id), None)
        if listed is not None:
            return not listed.revoked
        return self.everything


def parse(lines: Iterable[str], where: str) -> Trust:
    """Return the trust of a list of keys, a key a line; empty lines and lines that begin with # count for nothing.

    Raises UsageError for a line that is no key, and for the word `none` beside keys.
    """
    stated = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    stated = [(number, line) for number, line in stated if line and not line.startswith("#")]
    if [line for _, line in stated] == [NONE]:
        return Trust(everything=True)
    return Trust(tuple(TrustedKey.parse(line, f"{where}:{number}") for number, line in stated))


def read(path: Path) -> tuple[TrustedKey, ...]:
    """Return the keys of the user's file, which may be missing. Raises UsageError."""
    try:
        text = regular.read(path).decode()
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise UsageError(f"the list of trusted keys cannot be read: {path}", [str(error)]) from None
    return parse(text.splitlines(), str(path)).keys


def write(path: Path, keys: Sequence[TrustedKey]) -> None:
    """Write the user's file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "# Whose records of remotes `recipe` uses; `recipe cache trust --help` explains the lines.\n"
    text += "".join(f"{key}\n" for key in keys)
    disk.replace(path, text.encode(), fresh=path.with_name(f"{path.name}.new"))


def day(text: str, where: str) -> dt.date:
    """Return a day like 2027-01-31; `where` is for the UsageError about other texts."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: {text!r} is no day", hint="a day is written like 2027-01-31") from None


def _date(seconds: float) -> dt.date:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).date()


def _shown(seconds: float) -> str:
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return "no possible time"
