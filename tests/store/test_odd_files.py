"""Named pipes, sockets, folders, devices and links in the store: found damaged at once, and mended or made again."""

import pytest
from fire.odd_files import ODD
from fire.odd_files import put as put_odd
from stores import put

from engine.store import verification
from engine.store.store import Store

KEY = {"step": "x", "options.a": "1"}
PLACES = {
    "a record": "records/*.json",
    "a file of an artifact": "artifacts/*/a.txt",
    "an inner folder of an artifact": "artifacts/*/sub",
    "an artifact": "artifacts/*",
    "a file of the pool": "files/*/*",
    "a folder of the pool": "files/*",
    "a log": "logs/*.log",
    "a leftover": "staging/leftover",
    "something in quarantine": "quarantine/leftover",
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", PLACES)
def test_whatever_lies_in_the_place_of_a_file_is_mended_or_made_again(place, kind, tmp_path):
    store = Store(tmp_path / "cache")
    files = {"a.txt": "A", "sub/b.txt": "B"}
    put(store, KEY, files, log=b"spoken\n")
    path = next(iter(sorted(store.root.glob(PLACES[place]))), store.root / PLACES[place])
    put_odd(kind, path)

    again = Store(store.root)
    record = again.find(KEY)
    if record is None:
        put(again, KEY, files, log=b"spoken\n")
        record = again.find(KEY)
    folder = again.artifact_path(record.artifact)
    assert {name: (folder / name).read_text() for name in files} == files
    again.leave()

    verification.verify(store.root, parallel=1)
    assert verification.verify(store.root, parallel=1).damages == []
    assert Store(store.root).find(KEY) is not None
