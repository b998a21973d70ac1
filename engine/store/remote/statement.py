"""Provenance: the statement of a record, in the form of in-toto and SLSA, says what was made, from what, and how."""

# The statement also has the record itself, and where the bytes of each file lie, so one signature covers all of it.
# Sources: https://in-toto.io/Statement/v1 and https://slsa.dev/spec/v1.0/provenance.

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.digest import Digest
from engine.key import Key
from engine.store import output
from engine.store.record import Record
from engine.store.remote import envelope
from engine.store.remote.blobs import Blob, parts, sha256_of
from engine.store.remote.envelope import Envelope
from engine.store.remote.keys import Signer
from engine.store.remote.objects import RefusedError
from engine.store.remote.trust import Trust
from engine.store.store import Store
from engine.text import distribution

LARGEST_RECORD = 64 << 20
"""The most bytes of a record's object; the record of an artifact with 10,000 files has about 5 MB."""
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:recipe-build:job:1"
BUILDER = "urn:recipe-build:recipe"
_RECORD = "record"
_FORM = 1
_json = json.JSONEncoder(sort_keys=True).encode
_LEFT_OUT = ("log", "origin")
"""Fields of a record that stay on the machine: a log may hold anything that a step prints."""


@dataclass(frozen=True)
class StoredFile:
    """A file of an artifact at the remote: the SHA-256 of its content, and its blobs in order."""

    sha256: str
    blobs: tuple[Blob, ...]

    @classmethod
    def of(cls, path: Path) -> StoredFile:
        """Read a file, and return it as it would lie at a remote. Raises OSError."""
        whole = hashlib.sha256()
        every = []
        for blob, content in parts(path):
            whole.update(content)
            every.append(blob)
        return cls(whole.hexdigest(), tuple(every))


@dataclass(frozen=True)
class Statement:
    """A record, and where the bytes of its files are."""

    record: Record
    files: Mapping[str, StoredFile]
    signed_at: float
    recipe: str = ""
    """The recipe of a published package; "" for other records."""

    @property
    def is_small(self) -> bool:
        """Whether the statement has the bytes of all files itself."""
        return not self.stored_blobs

    @property
    def stored_blobs(self) -> set[Blob]:
        """The blobs that are objects of their own."""
        return {blob for file in self.files.values() for blob in file.blobs if blob.inline is None}


def write(record: Record, files: Mapping[str, StoredFile], *, recipe: str = "") -> bytes:
    """Return the statement of a record as JSON, signed now; `recipe` is that of a published package."""
    fields = {name: value for name, value in record.fields().items() if name not in _LEFT_OUT}
    content = {
        "form": _FORM,
        "record": fields,
        "blobs": {name: [blob.fields() for blob in file.blobs] for name, file in files.items()},
        "signed_at": round(time.time(), 3),
        "recipe": recipe,
    }
    options, inputs, tools = (_rows(record.key, prefix) for prefix in ("options.", "inputs.", "tools."))
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": file.sha256}} for name, file in sorted(files.items())],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"job": record.job, "step": record.step, "options": options},
                "internalParameters": {"key": dict(record.key)},
                "resolvedDependencies": [
                    *({"name": name, "annotations": {"content": value}} for name, value in inputs.items()),
                    *({"uri": f"pkg:pypi/{name}", "annotations": {"version": value}}
                      for name, value in tools.items()),
                ],
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {distribution.NAME: distribution.version()}},
                "metadata": {
                    "invocationId": record.digest,
                    "startedOn": _moment(record.made_at - record.seconds),
                    "finishedOn": _moment(record.made_at),
                },
                "byproducts": [
                    {"name": "machine", "annotations": dict(record.machine)},
                    {"name": _RECORD, "mediaType": "application/json",
                     "content": base64.b64encode(_json(content).encode()).decode()},
                ],
            },
        },
    }  # fmt: skip
    return _json(statement).encode()


def read(payload: bytes) -> Statement:
    """Return the statement of a signed payload.

    Raises RefusedError for a payload that is no statement of this form, for a file whose path leads out of the
    artifact, and for blobs that cannot be the named files.
    """
    try:
        statement = envelope.parse(payload)
        if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
            raise RefusedError("wrong statement", "the payload is no in-toto statement with SLSA provenance")
        byproducts = statement["predicate"]["runDetails"]["byproducts"]
        content = next(each["content"] for each in byproducts if each["name"] == _RECORD)
        fields = envelope.parse(base64.b64decode(content, validate=True))
        if fields["form"] != _FORM:
            raise RefusedError("newer form", f"the record has the form {fields['form']!r}: another version wrote it")
        record = _record(fields["record"])
        subjects = {str(each["name"]): str(each["digest"]["sha256"]) for each in statement["subject"]}
        named = len(statement["subject"])
        blobs = {str(name): tuple(map(Blob.parse, each)) for name, each in fields["blobs"].items()}
        signed_at, recipe = float(fields["signed_at"]), str(fields.get("recipe", ""))
        if not recipe.isprintable():
            raise ValueError("a text that a terminal would obey")
    except envelope.WRONG as error:
        what = f"the payload has not the fields of a record: {envelope.fault(error)}"
        raise RefusedError("wrong statement", what) from None
    _check(record, subjects, blobs, named=named)
    files = {name: StoredFile(subjects[name], blobs[name]) for name in record.files}
    return Statement(record, files, signed_at, recipe)


def _record(fields: Mapping[str, Any]) -> Record:
    files = {str(name): (int(size), Digest(str(content))) for name, (size, content) in fields["files"].items()}
    key = {str(row): str(value) for row, value in fields["key"].items()}
    rest = {name: value for name, value in fields.items() if name not in ("files", "key", *_LEFT_OUT)}
    rest["gaps"] = tuple(rest.get("gaps", ()))
    record = Record(**rest, key=key, files=files)
    texts = (record.job, record.step, record.artifact, record.binding, record.trace)
    numbers = (record.seconds, record.made_at, record.peak_bytes, record.anonymous_bytes, record.report_version)
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ValueError("a text that a terminal would obey")
    if not all(isinstance(number, int | float) for number in numbers):
        raise TypeError("a number is none")
    return record


def _check(record: Record, subjects: Mapping[str, str], blobs: Mapping[str, Sequence[Blob]], *, named: int) -> None:
    """Raise RefusedError for parts that contradict each other. The statement has `named` subjects."""
    if not (record.files.keys() == subjects.keys() == blobs.keys() and len(subjects) == named):
        raise RefusedError("other files", "the record, the subjects and the blobs name different files")
    for name, (size, _) in record.files.items():
        if not is_inside(name):
            raise RefusedError("path", f"the record has a file whose path leads out of the artifact: {name[:80]!r}")
        if sum(blob.size for blob in blobs[name]) != size:
            raise RefusedError("wrong size", f"the blobs of {name!r} have not the {size} bytes of the file")
        if len(blobs[name]) == 1 and blobs[name][0].sha256 != subjects[name]:
            raise RefusedError("other digest", f"the subject {name!r} has another SHA-256 than its only blob")
    if any(folder in record.files for name in record.files if "/" in name for folder in _folders(name)):
        raise RefusedError("path", "the record has a file that is a folder, too")
    if output.tree(record.files) != record.artifact:
        raise RefusedError("not bound", "the record's artifact is not that of its files")
    own = output.binding(step=record.step, key=record.digest, tree=record.artifact, report=record.report)
    if record.binding != own:
        raise RefusedError("not bound", "the record's binding is not that of its step, key, artifact and report")


def is_inside(name: str) -> bool:
    """Say whether a path stays in its folder: relative, in its shortest form, without `..` and control characters."""
    plain = name.isprintable() and "\\" not in name and len(name) < 4096  # noqa: PLR2004 - the longest path of Linux
    return plain and not any(part in {"", ".", ".."} for part in name.split("/"))


def _folders(name: str) -> Iterator[str]:
    """Yield the folders above a file."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _rows(key: Key, prefix: str) -> dict[str, str]:
    """Return the rows of a key whose names begin with a prefix, without the prefix."""
    return {row.removeprefix(prefix): value for row, value in key.items() if row.startswith(prefix)}


def _moment(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def admitted(raw: bytes, key: Key | None, trust: Trust) -> Statement:
    """Return the statement of an envelope. Raises RefusedError where it is not to be used, or for another key."""
    return judged(raw, key, trust)[0]


def judged(raw: bytes, key: Key | None, trust: Trust) -> tuple[Statement, str]:
    """Return the statement of an envelope, and the identifier of the trusted key that signed it, or "".

    Raises RefusedError, as `admitted` does.
    """
    opened = envelope.decode(raw)
    signer = trust.signer_of(opened)
    checked = read(opened.payload)
    trust.check_time(signer, checked.signed_at)
    if key is not None and dict(checked.record.key) != dict(key):
        raise RefusedError("other key", "the record under this name was made for another key")
    return checked, "" if signer is None else signer.key.id


def envelope_of(store: Store, record: Record, signer: Signer | None) -> Envelope:
    """Return the envelope of a record: the one that came from a remote or went there, else a new one.

    A new envelope is signed if there is a signer, and is kept in the store. Raises OSError for a missing artifact.
    """
    kept = store.envelopes.read(record.digest)
    if kept is not None:
        opened = envelope.decode(kept)
        if opened.signatures or signer is None:
            return opened
    folder = store.artifact_path(record.artifact)
    new = envelope.seal(write(record, {name: StoredFile.of(folder / name) for name in record.files}), signer)
    with store.adding():
        store.keep_envelopes({record.digest: new.encode()})
    return new


@dataclass(frozen=True)
class ProvenanceCheck:
    """The result of a check of all statements of a store: their number, who signed them, and what is wrong."""

    statements: int
    files: int
    signers: Mapping[str, int]
    """The number of statements by the name of the trusted key that signed them; "" stands for no signature."""
    faults: tuple[tuple[Record, str], ...]


def check_store(store: Store, trust: Trust) -> ProvenanceCheck:
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
            signed = read(opened.payload)
            trust.check_time(key, signed.signed_at)
        except RefusedError as error:
            faults.append((record, error.what))
            continue
        name = "" if key is None else key.shown
        signers[name] = signers.get(name, 0) + 1
        if signed.record.key != record.key or signed.record.files != record.files:
            faults.append((record, "the statement is that of another record"))
        elif not store.is_on_remote(record):
            files += len(record.files)
            faults.extend((record, fault) for fault in _differing(store.artifact_path(record.artifact), signed.files))
    return ProvenanceCheck(statements, files, signers, tuple(faults))


def _differing(folder: Path, files: Mapping[str, StoredFile]) -> Iterator[str]:
    for name, file in files.items():
        try:
            sha256 = sha256_of(folder / name)
        except OSError:
            yield f"{name} is missing"
            continue
        if sha256 != file.sha256:
            yield f"{name} has another SHA-256 than its provenance says"
