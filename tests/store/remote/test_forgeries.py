"""Forged records, blobs and lists: each is refused with its own message, and leaves nothing in the store."""

import base64
import datetime as dt
import json
import re
import time

import pytest
import zstandard
from stores import pushed

from engine.key import digest_of
from engine.store.remote import envelope, keys, objects, tier
from engine.store.remote.trust import Trust, TrustedKey

KEY = {"step": "x", "code": "c", "options.a": "1", "inputs.model": "m"}
LARGE = "".join(str(number) for number in range(20_000))
FILES = {"model.onnx": LARGE, "small": "s"}


CUT = object()
"""The value of a field that is removed."""


def edit(fields, target, value):
    """Change one field, which is named by its path, such as `signatures.0.sig`."""
    *path, last = (int(each) if each.isdigit() else each for each in target.split("."))
    for each in path:
        fields = fields[each]
    if value is CUT:
        del fields[last]
    else:
        fields[last] = value


def envelope_of(change):
    """A forgery of the envelope's JSON, without a new signature."""

    def forge(raw, _signer):
        fields = json.loads(raw)
        change(fields)
        return json.dumps(fields).encode()

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


def in_envelope(target, value):
    return envelope_of(lambda fields: edit(fields, target, value))


def in_statement(target, value):
    return statement_of(lambda fields: edit(fields, target, value))


def in_content(target, value):
    return content_of(lambda content, _: edit(content, target, value))


def in_record(name, value):
    return in_content(f"record.{name}", value)


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


def with_small(index, value):
    """A record whose file `small` has another size (index 0) or digest (index 1)."""
    return in_record(f"files.small.{index}", value)


def of_stranger(raw, signer=None):
    """Signed by a stranger, under the name of the trusted key if that is given."""
    stranger = keys.PrivateKey(keys.Ed25519PrivateKey.generate())
    fields = json.loads(envelope.seal(envelope.decode(raw).payload, stranger).encode())
    fields["signatures"][0]["keyid"] = (signer or stranger).public.id
    return json.dumps(fields).encode()


def flipped(fields, name):
    raw = bytearray(base64.b64decode(fields[name]))
    raw[len(raw) // 2] ^= 1
    fields[name] = base64.b64encode(raw).decode()


def bare_signature(raw, signer):
    """The payload signed without the type before it."""
    opened = envelope.decode(raw)
    forged = envelope.Envelope(opened.payload, opened.payload_type, ((signer.public.id, signer.sign(opened.payload)),))
    return forged.encode()


FORM = "no envelope: the record is no DSSE envelope"
SIGNATURE = "wrong signature: the signature is not that of the key"
STATEMENT = "wrong statement: the payload is no in-toto"
FIELDS = "wrong statement: the payload has not the fields of a record"
FILES_DIFFER = "other files: the record, the subjects and the blobs name different files"
SIZE = "wrong size: the blobs of 'small' have not the 1 b"
BLOB = "wrong blob: the record names a blob"
ARTIFACT = "not bound: the record's artifact is not that of its files"
BINDING = "not bound: the record's binding is not that of its step"
ENDLESS = float("inf")
PATHS = (
    "../small", "a/../../small", "/etc/cron.d/x", ".", "a//small", "a/./small", "a\\..\\small", "a\nsmall",
    "\x1b[2Jsmall", "a/" * 3000 + "b",
)  # fmt: skip
RECORDS = {
    "no bytes": (lambda raw, _: b"", f"{FORM}: no JSON from line 1, column 1 on"),
    "half of the bytes": (lambda raw, _: raw[: len(raw) // 2], f"{FORM}: no JSON from line 1, column 13 on"),
    "bytes behind the end": (lambda raw, _: raw + b"x", f"{FORM}: no JSON from line 2, column 1 on"),
    "no JSON": (lambda raw, _: b"\x80\x02torch", f"{FORM}: no UTF-8 from byte 0 on"),
    "a list": (lambda raw, _: b"[]", f"{FORM}: a value has another type"),
    "a web page": (lambda raw, _: b"<html>404</html>", f"{FORM}: no JSON from line 1, column 1 on"),
    "a nested bomb": (lambda raw, _: b"[" * 200_000, f"{FORM}: more than 100 lists and objects are within each other"),
    "no payload": (in_envelope("payload", CUT), f"{FORM}: 'payload' is missing"),
    "no list of signatures": (in_envelope("signatures", CUT), f"{FORM}: 'signatures' is missing"),
    "signatures as text": (in_envelope("signatures", "all"), f"{FORM}: a value has another type"),
    "a payload that is not base64": (in_envelope("payload", "%%%"), f"{FORM}: a value is not in base64"),
    "a signature that is not base64": (in_envelope("signatures.0.sig", "%%%"), f"{FORM}: a value is not in base64"),
    "another type": (in_envelope("payloadType", "text/plain"), "wrong type: the envelope has the type 'text/pl"),
    "no signature": (in_envelope("signatures", []), "not signed: the record has no signature"),
    "a changed payload": (envelope_of(lambda fields: flipped(fields, "payload")), SIGNATURE),
    "a changed signature": (envelope_of(lambda fields: flipped(fields["signatures"][0], "sig")), SIGNATURE),
    "a short signature": (in_envelope("signatures.0.sig", "AAAA"), SIGNATURE),
    "a signature without the type": (bare_signature, SIGNATURE),
    "a stranger": (lambda raw, _: of_stranger(raw), "unknown key: the record is signed"),
    "a stranger under a trusted name": (of_stranger, SIGNATURE),
    "another statement's type": (in_statement("_type", "https://example.com"), STATEMENT),
    "another predicate": (in_statement("predicateType", "https://x"), STATEMENT),
    "no predicate": (in_statement("predicate", CUT), f"{FIELDS}: 'predicate' is missing"),
    "no byproducts": (in_statement("predicate.runDetails.byproducts", []), f"{FIELDS}: the record is missing"),
    "a statement that is a list": (statement_of(lambda _: [1]), f"{FIELDS}: a value has another type"),
    "a newer form": (in_content("form", 2), "newer form: the record has the form 2"),
    "no key": (in_record("key", CUT), f"{FIELDS}: 'key' is missing"),
    "an unknown field": (in_record("exec", "rm -rf /"), f"{FIELDS}: a value has another type"),
    **{
        f"the path {name[:20]!r}": (renamed(name), "path: the record has a file whose path leads out") for name in PATHS
    },
    "a file under a file": (renamed("model.onnx/small"), "path: the record has a file that is a folder, too"),
    "a file without a subject": (statement_of(lambda fields: fields["subject"].pop() and None), FILES_DIFFER),
    "a subject without a file": (
        statement_of(lambda fields: fields["subject"].append({"name": "x", "digest": {"sha256": "0" * 64}})),
        FILES_DIFFER,
    ),
    "a subject twice": (
        statement_of(lambda f: f["subject"].insert(0, f["subject"][0] | {"digest": {"sha256": "0" * 64}})),
        FILES_DIFFER,
    ),
    "a file without blobs": (in_content("blobs.small", CUT), FILES_DIFFER),
    "another subject's digest": (in_statement("subject.0.digest.sha256", "0" * 64), "other digest: the subject 'model"),
    "no blob for a file": (in_content("blobs.small", []), SIZE),
    "a blob too much": (content_of(lambda c, _: c["blobs"]["small"].append(c["blobs"]["model.onnx"][0])), SIZE),
    "a blob without a digest": (in_content("blobs.small.0.sha256", CUT), f"{BLOB} in an unknown form"),
    "a blob by another digest": (blob_with(sha256="d41d8cd98f00b204e9800998ecf8427e"), f"{BLOB} 'd4"),
    "a blob by a path": (blob_with(sha256="../../../../etc/passwd".ljust(64, "x")), f"{BLOB} '../"),
    "a blob in an unknown encoding": (blob_with(encoding="gzip"), BLOB),
    "a blob of a negative size": (blob_with(size=-1), "wrong blob: a blob of -1 bytes"),
    "a blob of a petabyte": (blob_with(size=10**15), "wrong blob: a blob of 1000000000000000 bytes"),
    "an object of a petabyte": (blob_with(stored=10**15), "wrong blob: a blob of"),
    "a large file in the record": (
        blob_with(size=5000, inline=base64.b64encode(b"x" * 5000).decode()),
        "wrong blob: a blob of",
    ),
    "another artifact": (in_record("artifact", "0" * 32), ARTIFACT),
    "another content's digest": (with_small(1, "0" * 32), ARTIFACT),
    "another report": (in_record("report", {"n": 2}), BINDING),
    "another step": (in_record("step", "os:system"), BINDING),
    "no binding": (in_record("binding", ""), BINDING),
    "signed tomorrow": (in_content("signed_at", time.time() + 86400), "signed in the future: the record is signed"),
    "signed after all time": (in_content("signed_at", 1e300), "signed in the future: the record is signed at no"),
    "signed at no time": (in_content("signed_at", "soon"), f"{FIELDS}: a value is wrong"),
    "signed at no number": (in_content("signed_at", float("nan")), f"{FIELDS}: a value is wrong"),
    "signed before all time": (in_content("signed_at", -ENDLESS), f"{FIELDS}: a value is wrong"),
    "a blob without end": (blob_with(size=ENDLESS), f"{FIELDS}: a value is wrong"),
    "a file without end": (with_small(0, ENDLESS), f"{FIELDS}: a value is wrong"),
    "a report without end": (in_record("report", {"n": ENDLESS}), f"{FIELDS}: a value is wrong"),
    "a step that is no text": (in_record("step", "\ud800"), f"{FIELDS}: a text has half of a surrogate pair"),
    "a key that is no text": (in_record("key.\ud800", "\udfff"), f"{FIELDS}: a text has half of a surrogate pair"),
    "a job that clears the terminal": (in_record("job", "\x1b[2Jbuild"), f"{FIELDS}: a value is wrong"),
    "made at no number": (in_record("made_at", float("nan")), f"{FIELDS}: a value is wrong"),
    "seconds as text": (in_record("seconds", "soon"), f"{FIELDS}: a value has another type"),
}


@pytest.fixture
def shared(tmp_path, machine, folder):
    """A record on a remote that is a folder: the machine that pushed it, the remote, its folder and the record."""
    store = machine("a", folder, writes=True)
    return store, folder, tmp_path / "shared", pushed(store, KEY, FILES)


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
    pushed(store, other_key, {"evil": "e"})
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
    "a flipped bit": (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "damaged blob|wrong digest|wrong size"),
    "half of the bytes": (lambda raw: raw[: len(raw) // 2], "damaged blob: the blob|wrong size: the blob"),
    "no bytes": (lambda raw: b"", "damaged blob: the blob|wrong size: the blob"),
    "bytes behind the end": (lambda raw: raw + raw, "too long: "),
    "another file": (
        lambda raw: packed(b"evil" + LARGE[4:].encode())[: len(raw)],
        "damaged blob|wrong digest|wrong size",
    ),
    "a bomb": (lambda raw: packed(bytes(1 << 28)), "wrong size: the blob .* has more bytes|too long"),
    "fewer bytes": (lambda raw: packed(b"few"), "wrong size: the blob .* has fewer bytes"),
}


def blob_in(folder):
    [path] = [path for path in (folder / objects.BLOBS).rglob("*") if path.is_file()]
    return path


@pytest.mark.parametrize("name", BLOBS)
def test_a_forged_blob_is_refused(name, shared, machine):
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


def test_a_refused_artifact_is_made_again_and_pushed_over_the_forgery(shared, machine):
    _, at, folder, _ = shared
    path = blob_in(folder)
    good = path.read_bytes()
    path.write_bytes(b"x" * len(good))
    other = machine("b", at, writes=True)
    assert not other.bring(other.find(KEY))
    pushed(other, KEY, FILES)
    assert path.read_bytes() == good
    third = machine("c", at)
    assert third.bring(third.find(KEY))


def listed(key, name):
    return json.dumps([{"key": key, "object": name, "inputs": {}, "earlier": [], "time": 1}]).encode()


LISTS = {
    "no JSON": b"x",
    "no list": b'{"a": 1}',
    "a path": listed("a", "../../../etc/passwd"),
    "an address": listed("a", "http://169.254.169.254/x"),
    "a key that is a path": listed("../../x", objects.record_name(KEY)),
    "a nested bomb": b"[" * 200_000,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_forged_list_of_machines_is_refused(name, shared, machine):
    _, at, folder, _ = shared
    path = folder / objects.list_name(KEY)
    path.parent.mkdir(parents=True)
    path.write_bytes(LISTS[name])
    other = machine("b", at)
    other.tier.gather(KEY)
    assert other.tier.counts.refused == {"wrong list": 1}
    assert not list(other.records())


def test_a_list_that_names_a_forged_record_brings_nothing(shared, machine, pair):
    _, at, folder, _ = shared
    path = folder / objects.record_name(KEY)
    path.write_bytes(RECORDS["no signature"][0](path.read_bytes(), pair))
    record_list = folder / objects.list_name(KEY)
    record_list.parent.mkdir(parents=True)
    record_list.write_bytes(listed(digest_of(KEY), objects.record_name(KEY)).replace(b"{}", b'{"inputs.model": "m"}'))
    other = machine("b", at)
    other.tier.gather(KEY)
    assert other.tier.counts.refused == {"not signed": 1}
    assert not list(other.records())
