"""The provenance of what a store has: signed statements of records, and a check of files against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.store.record import Record
from engine.store.remote import blobs, envelope, statement
from engine.store.remote.envelope import Envelope
from engine.store.remote.keys import Signer
from engine.store.remote.objects import RefusedError
from engine.store.remote.statement import StoredFile
from engine.store.remote.trust import Trust
from engine.store.store import Store


@dataclass(frozen=True)
class ProvenanceCheck:
    """The result of a check of all statements of a store: their number, who signed them, and what is wrong."""

    statements: int
    files: int
    signers: Mapping[str, int]
    """The number of statements by the name of the trusted key that signed them; "" stands for no signature."""
    faults: tuple[tuple[Record, str], ...]


def of(store: Store, record: Record, signer: Signer | None) -> Envelope:
    """Return the envelope of a record: the one that came from a remote or went there, else a new one.

    A new envelope is signed if there is a signer, and is kept in the store. Raises OSError for a missing artifact.
    """
    kept = store.envelopes.read(record.digest)
    if kept is not None:
        opened = envelope.decode(kept)
        if opened.signatures or signer is None:
            return opened
    folder = store.artifact_path(record.artifact)
    new = envelope.seal(statement.write(record, {name: StoredFile.of(folder / name) for name in record.files}), signer)
    with store.adding():
        store.keep_envelopes({record.digest: new.encode()})
    return new


def check(store: Store, trust: Trust) -> ProvenanceCheck:
    """Hold the store's statements against the list of trusted keys, and its files against the statements."""
    signers: dict[str, int] = {}
    faults: list[tuple[Record, str]] = []
    statements = files = 0
    for record in store.records():
        raw = store.envelopes.read(record.digest)
        if raw is None:
            continue
        statements += 1
        try:
            opened = envelope.decode(raw)
            key = trust.signer_of(opened) if opened.signatures or record.origin else None
            read = statement.read(opened.payload)
            trust.check_time(key, read.signed_at)
        except RefusedError as error:
            faults.append((record, error.what))
            continue
        name = "" if key is None else key.shown
        signers[name] = signers.get(name, 0) + 1
        if read.record.key != record.key or read.record.files != record.files:
            faults.append((record, "the statement is that of another record"))
        elif not store.is_away(record):
            files += len(record.files)
            faults.extend((record, fault) for fault in _differing(store.artifact_path(record.artifact), read.files))
    return ProvenanceCheck(statements, files, signers, tuple(faults))


def _differing(folder: Path, files: Mapping[str, StoredFile]) -> Iterator[str]:
    for name, file in files.items():
        try:
            sha256 = blobs.sha256_of(folder / name)
        except OSError:
            yield f"{name} is missing"
            continue
        if sha256 != file.sha256:
            yield f"{name} has another SHA-256 than its provenance says"
