"""A built package as it is published: its digest and the places of its files."""

import hashlib
import subprocess


def test_the_digest_is_what_sha256sum_gives(built, tmp_path):
    package = built(1)
    lines = subprocess.run(
        "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum",
        shell=True, cwd=tmp_path / "package-0", capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert package.sha256 == hashlib.sha256(lines).hexdigest()


def test_files_of_the_built_version_move_to_the_new_one(built):
    placed = built(1).models[0].placed(5)
    assert sorted(placed) == [f"films_first/5/{name}" for name in ("model.py", "requirements.txt", "weights.bin")]
