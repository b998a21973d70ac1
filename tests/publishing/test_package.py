"""A built package as it is published: its digest and the places of its files."""

import hashlib
import subprocess

import pytest

from engine.publishing.package import Manifest, manifest_of


def test_the_digest_is_what_sha256sum_gives_and_files_move_to_the_new_version(built, tmp_path):
    package = built(1)
    placed = package.models[0].placed(5)
    assert sorted(placed) == [f"films_first/5/{name}" for name in ("model.py", "requirements.txt", "weights.bin")]
    lines = subprocess.run(
        "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum",
        shell=True, cwd=tmp_path / "package-0", capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert package.sha256 == hashlib.sha256(lines).hexdigest()


def test_a_decision_is_read_as_it_was_written(built):
    decision = manifest_of(built(1), 4, 12.5)
    assert Manifest.of_bytes(decision.to_bytes(), decision.package, 4) == decision
    assert "films_first/4/model.py" in decision.files


def test_what_is_no_decision_or_of_another_version_or_has_impossible_numbers_is_refused(built):
    for data in (b"", b"{}", b"[]", b"half", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"manifest|Expecting|list"):
            Manifest.of_bytes(data, "films", 4)
    decision = manifest_of(built(1), 4, 12.5)
    text = decision.to_bytes().decode()
    for old, new in (
        ('"version": 4', '"version": 3'), ('"version": 4', '"version": Infinity'), ('"when": 12.5', '"when": 1e300'),
        ('"when": 12.5', '"when": NaN'), ('"bytes": ', '"bytes": 1e999, "size": '),
    ):  # fmt: skip
        assert old in text
        with pytest.raises(ValueError, match="manifest"):
            Manifest.of_bytes(text.replace(old, new).encode(), decision.package, 4)
