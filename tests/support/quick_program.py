"""The program with short measurements: a copy whose steps and load tests measure for half a second, not for many.

For tests of what becomes of the figures. Figures of so short a measurement are no proof of which model is faster.
"""

import shutil
from pathlib import Path

import once
from program import Program

ENGINE = Path(__file__).parents[2] / "engine"
_SHORT = "Budget(seconds=0.5, warm_up=0.2, rounds=4)"
_LONG = {
    "bench": "Budget()",
    "measure_layouts": "Budget(seconds=6.0, rounds=8)",
    "measure_runtimes": "Budget()",
    "race": "Budget(seconds=3.0, warm_up=1.0)",
}
"""The budget of each step that measures, as its module has it."""
_LOADS = "_SECONDS, _WARM_UP = 4.0, 1.0"
"""How long `recipe prove` puts each load on a server, as its module has it."""


def copied() -> Path:
    """Return the entry of the import path for a copy of the program with short budgets: do not write into it."""
    return once.made("quick-program", _copy)


def quick(folder: Path) -> Program:
    """Return the program that measures for a short time, in the project `folder`."""
    program = Program(folder)
    program.environment["PYTHONPATH"] = str(copied())
    return program


def _copy(place: Path) -> None:
    for name in ("engine", "recipe_build"):  # with the times that bytecode files name
        shutil.copytree(ENGINE.parent / name, place / name, copy_function=shutil.copy2)
    for name, long in _LONG.items():
        module = place / "engine" / "steps" / f"{name}.py"
        before, budget, after = module.read_text().partition(f"budget: ClassVar[Budget] = {long}\n")
        assert budget, f"{module.name} has another budget by now"
        module.write_text(before + budget.replace(long, _SHORT) + after)
    prove = place / "engine" / "commands" / "prove.py"
    assert _LOADS in prove.read_text()
    prove.write_text(prove.read_text().replace(_LOADS, "_SECONDS, _WARM_UP = 0.4, 0.1"))
