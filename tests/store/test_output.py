"""The output of a job as the store takes it."""

import pytest

from engine.store import output


@pytest.mark.parametrize("flushes", [True, False])
def test_an_output_is_flushed_to_the_disk_where_that_is_asked_for(tmp_path, monkeypatch, flushes):
    (tmp_path / "out" / "folder").mkdir(parents=True)
    for name in ("one", "folder/two"):
        (tmp_path / "out" / name).write_text(name)
    flushed = []
    monkeypatch.setattr(output, "flush", flushed.append)
    files = output.take(tmp_path / "out", flushes=flushes)
    assert {name: size for name, (size, _) in files.items()} == {"one": 3, "folder/two": 10}
    assert {path.name for path in flushed} == ({"one", "two"} if flushes else set())
