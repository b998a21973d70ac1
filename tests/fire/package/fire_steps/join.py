"""Joins both halves with what was taken in, through words of its own that lie beside it."""

from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.helper import joined
from fire_steps.telling import announced


class Join(Step):
    """Joins both halves with what was taken in, through words of its own that lie beside it."""

    makes: ClassVar[str] = "joined"

    def run(self, out: Path, *, left_half: Path, right_half: Path, taken: Path) -> Report:
        inputs = {"left": left_half, "right": right_half, "taken": taken}
        with announced("join", "", inputs, seconds=0.005) as identity:
            texts = [path.read_text() for folder in inputs.values() for path in sorted(folder.iterdir())]
            (out / "joined.txt").write_text(joined(texts))
        return {"identity": identity}
