"""Ed25519 keys: who signs what a remote has, and how a signature is made and checked."""

from __future__ import annotations

import base64
import binascii
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from engine.errors import UsageError
from engine.store import revocations
from engine.system import regular

PREFIX = "ed25519:"
VARIABLE = "RECIPE_SIGNING_KEY"
"""The environment variable with the path of a signing key, or with the key itself as PEM text (a secret of a CI)."""
_SECONDS = 10
"""The time limit of a signing command: a build goes on without a remote after a few seconds."""
_SHOWN = 200
"""The most characters of a signing command's own error that are shown."""


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key of 32 bytes."""

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Return the key of a text like `ed25519:BASE64`. Raises UsageError."""
        try:
            raw = base64.b64decode(text.removeprefix(PREFIX), validate=True)
            Ed25519PublicKey.from_public_bytes(raw)
        except (ValueError, binascii.Error):
            raw = b""
        if not text.startswith(PREFIX) or not raw:
            raise UsageError(
                f"{text[:80]!r} is no public key",
                [f"a public key looks like {PREFIX}BASE64, with 32 bytes in base64"],
                "`recipe cache keygen` makes a pair of keys and prints the public one",
            )
        return cls(raw)

    def __str__(self) -> str:
        return PREFIX + base64.b64encode(self.raw).decode()

    @cached_property
    def id(self) -> str:
        """The key's name in envelopes: the first 16 hexadecimal digits of the SHA-256 of its 32 bytes."""
        return revocations.id_of(self.raw)

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Say whether `signature` is this key's signature of the message."""
        try:
            self._loaded.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    @cached_property
    def _loaded(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


@dataclass(frozen=True)
class PrivateKey:
    """An Ed25519 private key on this machine."""

    key: Ed25519PrivateKey
    at_once: ClassVar[int] = 1
    """How many messages are signed at a time."""

    @cached_property
    def public(self) -> PublicKey:
        """The public key of the pair."""
        form = serialization.PublicFormat.Raw
        return PublicKey(self.key.public_key().public_bytes(serialization.Encoding.Raw, form))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return self.key.sign(message)


@dataclass(frozen=True)
class SigningCommand:
    """A command that gets a message as standard input and answers with the signature: 64 bytes, raw or in base64."""

    command: Sequence[str]
    public: PublicKey
    at_once: ClassVar[int] = 8
    """A key management service answers in a tenth of a second or so, however many ask."""

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message. Raises UsageError for a command that fails or signs with another key."""
        name = f"the command that signs, {self.command[0]},"
        try:
            done = subprocess.run(self.command, input=message, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - the user's own command
        except subprocess.TimeoutExpired:
            raise UsageError(f"{name} gave no answer within {_SECONDS} s") from None
        except OSError as error:
            raise UsageError(f"{name} cannot be run: {error.strerror or error}") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            own = f": {lines[0][:_SHOWN]}" if lines else ""
            raise UsageError(f"{name} ended with exit code {done.returncode}{own}")
        answer = done.stdout
        for signature in (answer, _decoded(answer)):
            if self.public.has_signed(message, signature):
                return signature
        raise UsageError(
            f"{name} gave no signature of the key {self.public}",
            hint="the command signs its standard input with Ed25519 and prints the 64 bytes, raw or in base64",
        )


Signer = PrivateKey | SigningCommand
"""What signs messages."""


def generate(path: Path) -> PrivateKey:
    """Write a new pair of keys: `path` (readable by its owner only) and `path.pub`. Raises UsageError, OSError.

    A key that exists is never replaced.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"there is a key at {path} already", hint="name another file with -o") from None
    with open(descriptor, "wb") as file:
        file.write(private)
    pair = PrivateKey(key)
    path.with_name(f"{path.name}.pub").write_text(f"{pair.public}\n")
    return pair


def signer(environ: Mapping[str, str], default: Path, command: Sequence[str] = (), public: str = "") -> Signer | None:
    """Return what signs for this user, or None: the variable RECIPE_SIGNING_KEY, a command, or the file `default`.

    Raises UsageError for a key that cannot be read.
    """
    stated = environ.get(VARIABLE, "")
    if stated.startswith("-----BEGIN"):
        return _private(stated.encode(), f"the variable {VARIABLE}")
    if stated:
        return _read(Path(stated))
    if command:
        if isinstance(command, str) or not all(isinstance(word, str) for word in command):
            raise UsageError(
                f"sign.command is {command!r}", hint='write a list of words, for example command = ["kms-sign", "ci"]'
            )
        if not public:
            raise UsageError("sign.command has no key", hint="sign.key is the public key of the pair, ed25519:BASE64")
        return SigningCommand(tuple(command), PublicKey.parse(public))
    return _read(default) if default.exists() else None


def _read(path: Path) -> PrivateKey:
    try:
        raw = regular.read(path)
    except OSError as error:
        raise UsageError(f"the signing key cannot be read: {path}", [error.strerror or str(error)]) from None
    return _private(raw, str(path))


def _private(pem: bytes, where: str) -> PrivateKey:
    """Return the private key of a PEM text. The text is in no error."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{where} is no Ed25519 private key as PEM", hint="`recipe cache keygen` makes one")
    return PrivateKey(key)


def _decoded(answer: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(answer.split()), validate=True)  # `base64` breaks lines
    except (ValueError, binascii.Error):
        return b""
