"""A revoked key counts nowhere: neither with a remote nor without one, and no import of cryptography tells it."""

import base64
import dataclasses
import subprocess
import sys

import pytest
from stores import put

from engine.store import revocations
from engine.store.remote.keys import PublicKey
from engine.store.sealed import sealed
from engine.store.store import Store

KEY = {"step": "x", "code": "c"}
RAW = bytes(range(32))
TEXT = f"ed25519:{base64.b64encode(RAW).decode()}"


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Write the user's list of keys."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RECIPE_TRUST", raising=False)

    def write(*lines):
        path = tmp_path / "config" / "recipe" / "trusted-keys"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    return write


@pytest.fixture
def store(tmp_path):
    """A store with the files of a record that came from a remote."""
    store = Store(tmp_path / "cache")
    record = put(store, KEY, {"weights": "w"})
    brought = dataclasses.replace(record, origin={"remote": "s3://team", "signer": PublicKey(RAW).id})
    store.write(store.record_path(record.digest), sealed(brought.fields()))
    store.leave()
    return store.root


def test_a_record_of_a_revoked_key_is_not_used_without_a_remote_and_own_records_are(listed, store, monkeypatch):
    listed("# keys", "", f"{TEXT} name=ci")
    assert Store(store).find(KEY) is not None
    listed(f"revoked {TEXT} name=ci")
    assert Store(store).find(KEY) is None
    own = Store(store.with_name("own"))
    put(own, KEY, {"weights": "w"})
    assert own.find(KEY) is not None
    listed()
    assert Store(store).find(KEY) is not None
    monkeypatch.setenv("RECIPE_TRUST", f"revoked {TEXT}")
    assert Store(store).find(KEY) is None


def test_lines_that_are_no_keys_revoke_nothing(listed):
    listed("revoked", "revoked ed25519:?", "revoked other:AAAA", f"{TEXT}")
    assert revocations.revoked() == frozenset()


def test_a_build_without_a_remote_needs_no_cryptography(listed, store):
    listed(f"revoked {TEXT}")
    program = f"""
import sys
from pathlib import Path
from engine.store.store import Store
assert Store(Path({str(store)!r})).find({KEY!r}) is None
sys.exit("cryptography" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
