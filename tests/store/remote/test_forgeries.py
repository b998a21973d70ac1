"""Forged records, blobs and lists: each is refused with its own message, and leaves nothing in the store."""

import base64
import datetime as dt
import json
import os
import time
from pathlib import Path

import pytest
import zstandard
from stores import put

from engine.key import digest_of
from engine.store.remote import envelope, keys, objects, statement, tier
from engine.store.remote.trust import Trust, TrustedKey

KEY = {"step": "x", "code": "c", "options.a": "1", "inputs.model": "m"}
LARGE = "".join(str(number) for number in range(20_000))
NOISE = os.urandom(60_000).hex()[:60_000]
FILES = {"model.onnx": LARGE, "small": "s"}


def envelope_of(change):
    """A forgery of the envelope's JSON, without a new signature."""

    def forge(raw, _signer):
        fields = json.loads(raw)
        changed = change(fields)
        return json.dumps(fields if changed is None else changed).encode()

    return forge


def statement_of(change):
    """A forgery of the statement, signed by the trusted key."""

    def forge(raw, signer):
        fields = json.loads(envelope.decode(raw).payload)
        changed = change(fields)
        return envelope.seal(json.dumps(fields if changed is None else changed).encode(), signer).encode()

    return forge


def content_of(change):
    """A forgery of the record within the statement, signed by the trusted key."""

    def inner(fields):
        part = fields["predicate"]["runDetails"]["byproducts"][-1]
        content = json.loads(base64.b64decode(part["content"]))
        change(content, fields)
        part["content"] = base64.b64encode(json.dumps(content).encode()).decode()

    return statement_of(inner)


def renamed(name):
    """A record whose file `small` has another path, everywhere."""

    def change(content, fields):
        for files in (content["record"]["files"], content["blobs"]):
            files[name] = files.pop("small")
        for subject in fields["subject"]:
            subject["name"] = name if subject["name"] == "small" else subject["name"]

    return content_of(change)


def blob_with(**values):
    return content_of(lambda content, _: content["blobs"]["small"][0].update(values))


def put_in(target, value):
    """A change of one field, named by its path."""

    def change(fields, _=None):
        *way, last = target
        for each in way:
            fields = fields[each]
        fields[last] = value

    return change


def cut(target):
    def change(fields, _=None):
        *way, last = target
        for each in way:
            fields = fields[each]
        del fields[last]

    return change


def resigned(raw, other):
    return envelope.seal(envelope.decode(raw).payload, other).encode()


def flipped(text):
    raw = bytearray(base64.b64decode(text))
    raw[len(raw) // 2] ^= 1
    return base64.b64encode(raw).decode()


def with_trusted_name(raw, signer):
    """Signed by a stranger, under the name of the trusted key."""
    fields = json.loads(resigned(raw, keys.PrivateKey(keys.Ed25519PrivateKey.generate())))
    fields["signatures"][0]["keyid"] = signer.public.id
    return json.dumps(fields).encode()


def bare_signature(raw, signer):
    """The payload signed without the type before it."""
    opened = envelope.decode(raw)
    forged = envelope.Envelope(opened.payload, opened.payload_type, ((signer.public.id, signer.sign(opened.payload)),))
    return forged.encode()


FORM = "no envelope: the record is no DSSE envelope"
FIELDS = "wrong statement: the payload has not the fields of a record"
RECORDS = {
    "no bytes": (lambda raw, _: b"", f"{FORM}: no JSON from line 1, column 1 on"),
    "half of the bytes": (lambda raw, _: raw[: len(raw) // 2], f"{FORM}: no JSON from line 1, column 13 on"),
    "bytes behind the end": (lambda raw, _: raw + b"x", f"{FORM}: no JSON from line 2, column 1 on"),
    "no JSON": (lambda raw, _: b"\x80\x02torch", f"{FORM}: no UTF-8 from byte 0 on"),
    "a list": (lambda raw, _: b"[]", f"{FORM}: a value has another type"),
    "a web page": (lambda raw, _: b"<html>404</html>", f"{FORM}: no JSON from line 1, column 1 on"),
    "a nested bomb": (lambda raw, _: b"[" * 200_000, f"{FORM}: more than 100 lists and objects are within each other"),
    "no payload": (envelope_of(cut(["payload"])), f"{FORM}: 'payload' is missing"),
    "no list of signatures": (envelope_of(cut(["signatures"])), f"{FORM}: 'signatures' is missing"),
    "signatures as text": (envelope_of(put_in(["signatures"], "all")), f"{FORM}: a value has another type"),
    "a payload that is not base64": (envelope_of(put_in(["payload"], "%%%")), f"{FORM}: a value is not in base64"),
    "a signature that is not base64": (
        envelope_of(put_in(["signatures", 0, "sig"], "%%%")),
        f"{FORM}: a value is not in base64",
    ),
    "another type": (
        envelope_of(put_in(["payloadType"], "text/plain")),
        "wrong type: the envelope has the type 'text/pl",
    ),
    "no signature": (envelope_of(put_in(["signatures"], [])), "not signed: the record has no signature"),
    "a changed payload": (
        envelope_of(lambda f: f.update(payload=flipped(f["payload"]))),
        "wrong signature: the signature is",
    ),
    "a changed signature": (
        envelope_of(lambda f: f["signatures"][0].update(sig=flipped(f["signatures"][0]["sig"]))),
        "wrong signature: the",
    ),
    "a short signature": (
        envelope_of(put_in(["signatures", 0, "sig"], "AAAA")),
        "wrong signature: the signature is not",
    ),
    "a signature without the type": (bare_signature, "wrong signature: the signature is not that of the key"),
    "a stranger": (
        lambda raw, _: resigned(raw, keys.PrivateKey(keys.Ed25519PrivateKey.generate())),
        "unknown key: the record is signed",
    ),
    "a stranger under a trusted name": (with_trusted_name, "wrong signature: the signature is not that of the key"),
    "another statement's type": (
        statement_of(put_in(["_type"], "https://example.com")),
        "wrong statement: the payload is no",
    ),
    "another predicate": (
        statement_of(put_in(["predicateType"], "https://x")),
        "wrong statement: the payload is no in-toto",
    ),
    "no predicate": (statement_of(cut(["predicate"])), f"{FIELDS}: 'predicate' is missing"),
    "no byproducts": (
        statement_of(put_in(["predicate", "runDetails", "byproducts"], [])),
        f"{FIELDS}: the record is missing",
    ),
    "a statement that is a list": (statement_of(lambda _: [1]), f"{FIELDS}: a value has another type"),
    "a newer form": (content_of(put_in(["form"], 2)), "newer form: the record has the form 2"),
    "no key": (content_of(cut(["record", "key"])), f"{FIELDS}: 'key' is missing"),
    "an unknown field": (content_of(put_in(["record", "exec"], "rm -rf /")), f"{FIELDS}: a value has another type"),
    "a path to the folder above": (renamed("../small"), "path: the record has a file whose path leads out"),
    "a path two folders above": (renamed("a/../../small"), "path: the record has a file whose path leads out"),
    "an absolute path": (renamed("/etc/cron.d/x"), "path: the record has a file whose path leads out"),
    "the folder itself": (renamed("."), "path: the record has a file whose path leads out"),
    "a path with a double slash": (renamed("a//small"), "path: the record has a file whose path leads out"),
    "a path with a dot": (renamed("a/./small"), "path: the record has a file whose path leads out"),
    "a path of another system": (renamed("a\\..\\small"), "path: the record has a file whose path leads out"),
    "a path with a line break": (renamed("a\nsmall"), "path: the record has a file whose path leads out"),
    "a path that clears the terminal": (renamed("\x1b[2Jsmall"), "path: the record has a file whose path leads out"),
    "a path that is too long": (renamed("a/" * 3000 + "b"), "path: the record has a file whose path leads out"),
    "a file under a file": (renamed("model.onnx/small"), "path: the record has a file that is a folder, too"),
    "a file without a subject": (
        statement_of(lambda f: f["subject"].pop() and None),
        "other files: the record, the subjects",
    ),
    "a subject without a file": (
        statement_of(lambda f: f["subject"].append({"name": "x", "digest": {"sha256": "0" * 64}})),
        "other files: the record",
    ),
    "a file without blobs": (
        content_of(cut(["blobs", "small"])),
        "other files: the record, the subjects and the blobs",
    ),
    "another subject's digest": (
        statement_of(put_in(["subject", 0, "digest", "sha256"], "0" * 64)),
        "other digest: the subject 'model.onnx' has",
    ),
    "no blob for a file": (
        content_of(put_in(["blobs", "small"], [])),
        "wrong size: the blobs of 'small' have not the 1 b",
    ),
    "a blob too much": (
        content_of(lambda c, _: c["blobs"]["small"].append(c["blobs"]["model.onnx"][0])),
        "wrong size: the blobs of 'small'",
    ),
    "a blob without a digest": (
        content_of(cut(["blobs", "small", 0, "sha256"])),
        "wrong blob: the record names a blob in an",
    ),
    "a blob by another digest": (
        blob_with(sha256="d41d8cd98f00b204e9800998ecf8427e"),
        "wrong blob: the record names a blob 'd4",
    ),
    "a blob by a path": (
        blob_with(sha256="../../../../etc/passwd".ljust(64, "x")),
        "wrong blob: the record names a blob '../",
    ),
    "a blob in an unknown encoding": (blob_with(encoding="gzip"), "wrong blob: the record names a blob"),
    "a blob of a negative size": (blob_with(size=-1), "wrong blob: a blob of -1 bytes"),
    "a blob of a petabyte": (blob_with(size=10**15), "wrong blob: a blob of 1000000000000000 bytes"),
    "an object of a petabyte": (blob_with(stored=10**15), "wrong blob: a blob of"),
    "a large file in the record": (
        blob_with(size=5000, inline=base64.b64encode(b"x" * 5000).decode()),
        "wrong blob: a blob of",
    ),
    "another artifact": (
        content_of(put_in(["record", "artifact"], "0" * 32)),
        "not bound: the record's artifact is not that of its files",
    ),
    "another report": (
        content_of(put_in(["record", "report"], {"n": 2})),
        "not bound: the record's binding is not that of its step",
    ),
    "another step": (
        content_of(put_in(["record", "step"], "os:system")),
        "not bound: the record's binding is not that of its step",
    ),
    "no binding": (
        content_of(put_in(["record", "binding"], "")),
        "not bound: the record's binding is not that of its step",
    ),
    "another content's digest": (
        content_of(lambda c, _: c["record"]["files"]["small"].__setitem__(1, "0" * 32)),
        "not bound: the record's artifact is not that of its files",
    ),
    "signed tomorrow": (
        content_of(put_in(["signed_at"], time.time() + 86400)),
        "signed in the future: the record is signed",
    ),
    "signed after all time": (
        content_of(put_in(["signed_at"], 1e300)),
        "signed in the future: the record is signed at no",
    ),
    "signed at no time": (content_of(put_in(["signed_at"], "soon")), f"{FIELDS}: a value is wrong"),
    "signed at no number": (content_of(put_in(["signed_at"], float("nan"))), f"{FIELDS}: a value is wrong"),
    "signed before all time": (content_of(put_in(["signed_at"], float("-inf"))), f"{FIELDS}: a value is wrong"),
    "a blob without end": (blob_with(size=float("inf")), f"{FIELDS}: a value is wrong"),
    "a file without end": (
        content_of(lambda c, _: c["record"]["files"]["small"].__setitem__(0, float("inf"))),
        f"{FIELDS}: a value is wrong",
    ),
    "a step that is no text": (
        content_of(put_in(["record", "step"], "\ud800")),
        f"{FIELDS}: a text has half of a surrogate pair",
    ),
    "a key that is no text": (
        content_of(put_in(["record", "key", "\ud800"], "\udfff")),
        f"{FIELDS}: a text has half of a surrogate pair",
    ),
    "a report without end": (
        content_of(put_in(["record", "report"], {"n": float("inf")})),
        f"{FIELDS}: a value is wrong",
    ),
    "a subject twice": (
        statement_of(lambda f: f["subject"].insert(0, f["subject"][0] | {"digest": {"sha256": "0" * 64}})),
        "other files: the record, the subjects and the blobs name different files",
    ),
    "a job that clears the terminal": (
        content_of(put_in(["record", "job"], "\x1b[2Jbuild")),
        f"{FIELDS}: a value is wrong",
    ),
    "made at no number": (content_of(put_in(["record", "made_at"], float("nan"))), f"{FIELDS}: a value is wrong"),
    "seconds as text": (content_of(put_in(["record", "seconds"], "soon")), f"{FIELDS}: a value has another type"),
}


@pytest.fixture
def shared(tmp_path, machine, remote_at):
    """A record on a remote that is a folder: the machine that pushed it, the remote, its folder and the record."""
    folder = tmp_path / "shared"
    at = remote_at(f"file://{folder}")
    store = machine("a", at, writes=True)
    record = put(store, KEY, FILES)
    store.tier.push(record)
    assert store.tier.wait() is None
    return store, at, folder, record


def refused(other, message):
    """Look the record up, and check that it is refused with a message, counted, and not in the store."""
    taken = other.find(KEY)
    if taken is not None:
        assert not other.bring(taken)
    assert other.tier.counts.refused.total() == 1
    [reason] = other.tier.counts.reasons.values()
    assert reason.startswith(message)
    assert reason in other.tier.summary()
    assert other.find(KEY) is None
    assert not list(other.records())
    assert not list(other.layout.artifacts.iterdir())


@pytest.mark.parametrize("name", RECORDS)
def test_a_forged_record_is_refused(name, shared, machine, pair):
    _, at, folder, _ = shared
    forge, message = RECORDS[name]
    path = folder / objects.record_name(KEY)
    path.write_bytes(forge(path.read_bytes(), pair))
    refused(machine("b", at), message)


def test_the_table_is_as_long_as_promised():
    assert len(RECORDS) + len(BLOBS) >= 60


def test_the_record_of_another_key_is_no_answer(shared, machine):
    store, at, folder, _ = shared
    other_key = {**KEY, "options.a": "2"}
    store.tier.push(put(store, other_key, {"evil": "e"}))
    assert store.tier.wait() is None
    (folder / objects.record_name(KEY)).write_bytes((folder / objects.record_name(other_key)).read_bytes())
    refused(machine("b", at), "other key: the record under this name was made for another key")


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (lambda key: TrustedKey(key, "ci", dt.date(2020, 1, 1)), "expired key: the record is signed after 2020-01-01"),
        (lambda key: TrustedKey(key, "ci", revoked=True), "revoked key: the record is signed by ci, which is revoked"),
    ],
    ids=["expired", "revoked"],
)
def test_a_key_that_counts_no_more_is_refused(shared, machine, pair, listed, message):
    stranger = TrustedKey(keys.PrivateKey(keys.Ed25519PrivateKey.generate()).public)
    refused(machine("b", shared[1], trusts=Trust((listed(pair.public), stranger))), message)


def test_a_record_that_is_too_long_is_not_read(shared, machine, monkeypatch):
    monkeypatch.setattr(tier, "LARGEST_RECORD", 100)
    refused(machine("b", shared[1]), "too long: ")


def packed(content):
    return zstandard.ZstdCompressor().compress(content)


BLOBS = {
    "other bytes": (lambda raw: b"x" * len(raw), "damaged blob: the blob"),
    "a flipped bit": (
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        "damaged blob: the blob|wrong digest: the bytes|wrong size",
    ),
    "half of the bytes": (lambda raw: raw[: len(raw) // 2], "damaged blob: the blob|wrong size: the blob"),
    "no bytes": (lambda raw: b"", "damaged blob: the blob|wrong size: the blob"),
    "bytes behind the end": (lambda raw: raw + raw, "too long: "),
    "another file": (
        lambda raw: packed(b"evil" + LARGE[4:].encode())[: len(raw)],
        "wrong digest: the bytes|damaged blob|wrong size",
    ),
    "a bomb": (lambda raw: packed(bytes(1 << 28)), "wrong size: the blob .* has more bytes|too long"),
    "fewer bytes": (lambda raw: packed(b"few"), "wrong size: the blob .* has fewer bytes"),
}


def blob_in(folder):
    [path] = [path for path in (folder / objects.BLOBS).rglob("*") if path.is_file()]
    return path


@pytest.mark.parametrize("name", BLOBS)
def test_a_forged_blob_is_refused(name, shared, machine):
    import re

    _, at, folder, record = shared
    forge, message = BLOBS[name]
    path = blob_in(folder)
    path.write_bytes(forge(path.read_bytes()))
    other = machine("b", at)
    taken = other.find(KEY)
    assert not other.bring(taken)
    [reason] = other.tier.counts.reasons.values()
    assert re.match(message, reason)
    assert other.find(KEY) is None
    assert not list(other.layout.artifacts.iterdir())
    assert not other.record_path(record.digest).exists()


def test_a_missing_blob_is_told_from_a_missing_record(shared, machine):
    _, at, folder, _ = shared
    blob_in(folder).unlink()
    refused(machine("b", at), "missing blob: the remote lacks the blob")


def test_a_link_in_place_of_a_blob_brings_no_other_file(shared, machine, tmp_path):
    _, at, folder, _ = shared
    secret = tmp_path / "secret"
    secret.write_text("password")
    path = blob_in(folder)
    path.unlink()
    path.symlink_to(secret)
    other = machine("b", at)
    assert not other.bring(other.find(KEY))
    assert not [path for path in other.root.rglob("*") if path.is_file() and b"password" in path.read_bytes()]


def test_a_refused_artifact_is_made_again_and_pushed_over_the_forgery(shared, machine, tmp_path):
    _, at, folder, _ = shared
    path = blob_in(folder)
    good = path.read_bytes()
    path.write_bytes(b"x" * len(good))
    other = machine("b", at, writes=True)
    assert not other.bring(other.find(KEY))
    other.tier.push(put(other, KEY, FILES))
    assert other.tier.wait() is None
    assert path.read_bytes() == good
    third = machine("c", at)
    assert third.bring(third.find(KEY))


LISTS = {
    "no JSON": b"x",
    "no list": b'{"a": 1}',
    "a path": b'[{"key": "a", "object": "../../../etc/passwd", "inputs": {}, "earlier": [], "time": 1}]',
    "an address": b'[{"key": "a", "object": "http://169.254.169.254/x", "inputs": {}, "earlier": [], "time": 1}]',
    "a key that is a path": None,
    "a nested bomb": b"[" * 200_000,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_forged_list_of_machines_is_refused(name, shared, machine):
    _, at, folder, _ = shared
    key_path = json.dumps(
        [{"key": "../../x", "object": objects.record_name(KEY), "inputs": {}, "earlier": [], "time": 1}]
    ).encode()
    path = folder / objects.list_name(KEY)
    path.parent.mkdir(parents=True)
    path.write_bytes(LISTS[name] or key_path)
    other = machine("b", at)
    other.tier.gather(KEY)
    assert other.tier.counts.refused == {"wrong list": 1}
    assert not list(other.records())


def test_a_list_that_names_a_forged_record_brings_nothing(shared, machine, pair):
    _, at, folder, _ = shared
    path = folder / objects.record_name(KEY)
    path.write_bytes(RECORDS["no signature"][0](path.read_bytes(), pair))
    listed = folder / objects.list_name(KEY)
    listed.parent.mkdir(parents=True)
    inputs = {row: value for row, value in KEY.items() if row.startswith("inputs.")}
    entry = {"key": digest_of(KEY), "object": objects.record_name(KEY), "inputs": inputs, "earlier": [], "time": 1}
    listed.write_text(json.dumps([entry]))
    other = machine("b", at)
    other.tier.gather(KEY)
    assert other.tier.counts.refused == {"not signed": 1}
    assert not list(other.records())


def test_without_forgery_the_same_look_up_succeeds(shared, machine):
    other = machine("b", shared[1])
    assert other.bring(other.find(KEY))
    assert not other.tier.counts.refused


def test_the_statement_that_is_pushed_is_read_as_it_was_written(shared):
    store, _, _, record = shared
    read = statement.read(envelope.decode(store.envelopes.read(record.digest)).payload)
    assert read.record.key == record.key
    assert Path(next(iter(read.files))).name == "model.onnx"
