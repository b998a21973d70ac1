"""`recipe cache import` of what is no whole archive: one clear error at once, and what is whole is taken."""

import io
import os
import time
import zipfile

import pytest
from team_machine import Machine, fetched_in

_HANG = 30
"""Seconds: a limit that only a hang, or retries on a local file, reach."""
_CENTRAL = b"PK\x01\x02"
"""The first bytes of an entry in an archive's index."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A machine, and an archive of its only record."""
    folder = tmp_path_factory.mktemp("exported")
    machine = Machine(folder / "machine", fetched_in(folder / "project"))
    machine.keygen()
    machine("build", "r.yaml", "--to", "fetch", expect=0)
    machine("cache", "export", "r.yaml", "-o", str(folder / "whole.zip"), expect=0)
    return machine, (folder / "whole.zip").read_bytes()


def edited(at, new):
    """Return what replaces bytes of the archive's index, counted from its first entry."""

    def edit(raw):
        data = bytearray(raw)
        start = data.find(_CENTRAL) + at
        data[start : start + len(new)] = new
        return bytes(data)

    return edit


def compressed(_):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"v1/records/aa/{'a' * 64}.json", b"0" * 10_000_000)
    return stream.getvalue()


DAMAGES = {
    "half": lambda raw: raw[: len(raw) // 2],
    "no bytes": lambda _: b"",
    "other bytes": lambda _: b"no archive" * 100,
    "no end": lambda raw: raw[:-10],
    "no beginning": lambda raw: raw[200:],
    "a flipped bit": lambda raw: raw[:300] + bytes([raw[300] ^ 1]) + raw[301:],
    "a hole": lambda raw: raw[:100] + bytes(400) + raw[500:],
    "a size beyond its end": edited(20, (1 << 24).to_bytes(4, "little") * 2),
    "a place beyond its end": edited(42, (1 << 30).to_bytes(4, "little")),
    "a password": edited(8, b"\x01\x00"),
    "another method": edited(10, b"\x63\x00"),
    "compressed objects": compressed,
}


def imported(machine, path):
    start = time.monotonic()
    done = machine("cache", "import", str(path), "--cache", str(path.parent / "cache"), expect=1)
    assert time.monotonic() - start < _HANG
    assert "error in recipe itself" not in done.stderr
    assert done.stderr.count("error:") == 1
    assert str(path) in done.stderr
    return done


@pytest.mark.sample(4)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_archive_is_one_clear_error(exported, tmp_path, damage):
    machine, raw = exported
    path = tmp_path / "damaged.zip"
    path.write_bytes(damage(raw))
    imported(machine, path)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "make",
    [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path.name)],
    ids=["a named pipe", "a folder", "a device", "a link to itself"],
)
def test_what_is_no_file_is_no_archive(exported, tmp_path, make):
    path = tmp_path / "special.zip"
    make(path)
    assert "cannot be used as an archive" in imported(exported[0], path).stderr


def test_a_whole_archive_is_taken(exported, tmp_path):
    machine, raw = exported
    (tmp_path / "whole.zip").write_bytes(raw)
    taken = machine("cache", "import", str(tmp_path / "whole.zip"), "--cache", str(tmp_path / "cache"), expect=0)
    assert "1 records taken" in taken.stdout
