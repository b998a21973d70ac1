"""The archive of results: what it holds, and that nothing private is in it."""

import json
import tarfile

import pytest

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
        ("TensorRT 10.13.3, T4 (sm_75)", "TensorRT 10.13.3, T4 (sm_75)"),
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
