"""The left half of a diamond."""

from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.telling import announced


class Left(Step):
    """The left half of a diamond."""

    makes: ClassVar[str] = "left_half"

    def run(self, out: Path, *, seeded: Path) -> Report:
        with announced("left", "", {"seeded": seeded}, seconds=0.05) as identity:
            (out / "left.txt").write_text("left of " + (seeded / "text.txt").read_text())
        print("the left half")
        return {"identity": identity}
