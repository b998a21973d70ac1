"""The steps of docs/sharing.md by which a new key takes the place of an old one."""

import datetime as dt
import time

import pytest
from stores import pushed

from engine.cli import main
from engine.store.remote import keys, settings, trust
from engine.store.remote.trust import Trust

DAY = 86400.0


def key_of(number):
    return {"step": "x", "code": "c", "options.a": str(number)}


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Run `recipe cache trust` and return the list that it has written."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RECIPE_TRUST", raising=False)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["cache", "trust", *words])
        assert ended.value.code == 0
        return Trust(trust.read(settings.trusted_keys_path()))

    return run


def test_the_steps_of_a_rotation(machine, folder, listed, tmp_path, monkeypatch):
    old, new = (keys.generate(tmp_path / f"{name}.key") for name in ("old", "new"))
    listed("--key", str(old.public), "--name", "ci")
    ci = machine("ci", folder, writes=True, signer=old)
    pushed(ci, key_of(1), {"weights": "1"})

    # 1. Every machine that pulls trusts the new key beside the old one.
    both = listed("--key", str(new.public), "--name", "ci-new")
    # 2. The machine that pushes signs with the new key.
    ci = machine("ci", folder, writes=True, signer=new, trusts=both)
    pushed(ci, key_of(2), {"weights": "2"})
    signers = [machine("b", folder, trusts=both).find(key_of(number)).origin["signer"] for number in (1, 2)]
    assert signers == [old.public.id, new.public.id]
    # 3. The old key gets a last day. What it signed until then still counts, what it signs later does not.
    ended = listed("--key", str(old.public), "--name", "ci", "--until", dt.datetime.now(dt.UTC).date().isoformat())
    assert machine("c", folder, trusts=ended).find(key_of(1)) is not None
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now + 2 * DAY)
        thief = machine("thief", folder, writes=True, signer=old)
        pushed(thief, key_of(3), {"weights": "3"})
        reader = machine("d", folder, trusts=ended)
        assert reader.find(key_of(3)) is None
        assert reader.tier.counts.refused == {"expired key": 1}


def test_the_steps_after_a_key_was_lost(machine, folder, listed, tmp_path):
    old, new = (keys.generate(tmp_path / f"{name}.key") for name in ("old", "new"))
    listed("--key", str(old.public), "--name", "ci")
    ci = machine("ci", folder, writes=True, signer=old)
    pushed(ci, key_of(1), {"weights": "1"})
    brought = machine("b", folder, trusts=Trust(trust.read(settings.trusted_keys_path())))
    assert brought.bring(brought.find(key_of(1)))

    # 1. Every machine revokes the old key and trusts the new one.
    without = listed("--revoke", str(old.public), "--key", str(new.public), "--name", "ci-new")
    assert machine("b", folder, trusts=without).find(key_of(1)) is None, "what the store has counts no more, either"
    # 2. The machine that has built the records pushes them again, with the new key.
    again = machine("ci", folder, writes=True, signer=new, trusts=without)
    again.tier.push(again.find(key_of(1)))
    assert again.tier.wait() is None
    assert again.tier.counts.pushed == 1
    # 3. Every machine has them again.
    assert machine("b", folder, trusts=without).find(key_of(1)).origin["signer"] == new.public.id
