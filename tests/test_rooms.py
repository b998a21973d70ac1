"""The rooms of the house: nothing lies in a corridor, no imports go round in a circle, and the map shows each room."""

import graphlib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "engine"
ROOMS = sorted(path.name for path in ENGINE.iterdir() if (path / "__init__.py").is_file())
KIT = sorted(path.name for path in (ENGINE / "kit").iterdir() if (path / "__init__.py").is_file())
_FLAT = 15
"""The most files that may lie beside the rooms of `engine/`."""
MAP = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_the_kit_is_rooms_and_nothing_else():
    assert len(KIT) > 5
    assert [path.name for path in (ENGINE / "kit").glob("*.py")] == ["__init__.py"]


def test_few_files_lie_beside_the_rooms():
    flat = list(ENGINE.glob("*.py"))
    assert 0 < len(flat) <= _FLAT, sorted(path.name for path in flat)


def test_no_imports_go_round_in_a_circle():
    graph = grimp.build_graph("engine")  # those that only a type checker reads, too
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert sum(map(len, imports.values())) > len(imports)
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle


def test_the_map_shows_every_room_and_every_file_beside_them():
    rooms = [*ROOMS, *(f"kit/{name}" for name in KIT)]
    lost = [room for room in rooms if f"`{room}`" not in MAP and f"`{room}/`" not in MAP]
    files = sorted(path.stem for path in ENGINE.glob("*.py") if not path.stem.startswith("__"))
    lost += [file for file in files if file not in MAP]
    assert lost == [], "say in docs/architecture.md what they are for"
