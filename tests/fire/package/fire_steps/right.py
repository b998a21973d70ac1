"""The right half of a diamond."""

from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.telling import announced


class Right(Step):
    """The right half of a diamond."""

    makes: ClassVar[str] = "right_half"

    def run(self, out: Path, *, seeded: Path) -> Report:
        with announced("right", "", {"seeded": seeded}, seconds=0.02) as identity:
            (out / "right.txt").write_text("right of " + (seeded / "text.txt").read_text())
        print("the right half")
        return {"identity": identity}
