"""The archive of results: what it holds, and that nothing private is in it."""

import json
import tarfile

import pytest

from engine.errors import StoreError
from engine.report import bundle

PRIVATE = {"/home/ada": "HOME", "ada": "USER", "thinkpad": "HOST"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/models/a.onnx", "HOME/models/a.onnx"),
        ("/home/grace/x and /Users/grace/y", "HOME/x and HOME/y"),
        ("ada@thinkpad: adapter", "USER@HOST: adapter"),
        ("hf_abcdefghijklmnop", "TOKEN"),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer TOKEN"),
        ("https://me:pass@host.example/x?token=abcdef", "https://host.example/x?token=TOKEN"),
        ("GPU-01234567-89ab-cdef-0123-456789abcdef", "GPU-ID"),
        ("at 192.168.1.20, by a.b@example.org", "at ADDRESS, by ADDRESS"),
        ("listening on 10.0.0.7:8001, http://10.0.0.8/v2", "listening on ADDRESS:8001, http://ADDRESS/v2"),
        ("fe80::1ff:fe23:4567:890a and 00:1b:44:11:3a:b7", "ADDRESS and ADDRESS"),
        ("TensorRT 10.13.3, T4 (sm_75), tensorrt==10.13.0.35", "TensorRT 10.13.3, T4 (sm_75), tensorrt==10.13.0.35"),
        ("std::add at 12:30:45", "std::add at 12:30:45"),
    ],
)
def test_private_words_are_replaced_and_others_stay(text, expected):
    assert bundle.redacted(text, PRIVATE) == expected


def test_a_bundle_holds_the_machine_the_records_the_logs_and_the_passports(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "open-sesame-1")
    store = tmp_path / "cache"
    for name in ("records/a.json", "logs/a.log", "artifacts/b/passport.json", "artifacts/b/model.plan"):
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("open-sesame-1 and /home/grace/model")
    target = tmp_path / "results.tar.gz"
    assert bundle.write(target, store, {"gpu": "T4", "home": "/home/grace"}) == 4
    with tarfile.open(target) as archive:
        texts = {each.name: archive.extractfile(each).read().decode() for each in archive.getmembers()}
    assert {name.removeprefix("recipe-results/") for name in texts} == {
        "machine.json", "records/a.json", "logs/a.log", "artifacts/b/passport.json",
    }  # fmt: skip
    assert json.loads(texts["recipe-results/machine.json"]) == {"gpu": "T4", "home": "HOME"}
    assert not any(word in text for text in texts.values() for word in ("sesame", "grace"))
    with pytest.raises(StoreError, match="cannot be written"):
        bundle.write(tmp_path / "missing" / "results.tar.gz", tmp_path, {})
