"""Modules that are loaded when one of their attributes is first read."""

import importlib
import sys

import pytest

from engine.builder.lazy_modules import loading_lazily


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Write modules into a package `lazy_room`, which can be imported."""
    package = tmp_path / "lazy_room"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name, text: (package / f"{name}.py").write_text(text)
    for name in [each for each in sys.modules if each.partition(".")[0] == "lazy_room"]:
        del sys.modules[name]


def test_a_module_is_loaded_when_an_attribute_is_read(room):
    room("late", "import sys\nsys.late = sys.__dict__.get('late', 0) + 1\nVALUE = 1")
    with loading_lazily("lazy_room."):
        late = importlib.import_module("lazy_room.late")
    assert not hasattr(sys, "late")
    try:
        assert (late.VALUE, late.VALUE, sys.late) == (1, 1, 1)
        assert late.__spec__.loader is late.__loader__
    finally:
        del sys.late


def test_only_modules_whose_name_begins_so_are_lazy(room):
    room("early", "import sys\nsys.early = 1")
    with loading_lazily("another_room."):
        importlib.import_module("lazy_room.early")
    assert sys.__dict__.pop("early") == 1


def test_ctrl_c_while_a_module_is_loaded_is_raised_and_the_module_is_whole_afterwards(room):
    room(
        "slow",
        "import sys\nFIRST = 1\nif not sys.__dict__.get('again'):\n"
        "    sys.again = True\n    raise KeyboardInterrupt\nLAST = 2",
    )
    with loading_lazily("lazy_room."):
        importlib.import_module("lazy_room.slow")
    try:
        with pytest.raises(KeyboardInterrupt):
            from lazy_room.slow import LAST
        from lazy_room.slow import LAST
    finally:
        del sys.again
    assert LAST == 2
