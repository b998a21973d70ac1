"""Writes the text that makes the variants differ."""

from pathlib import Path
from typing import ClassVar

from engine.step import Report, Step
from fire_steps.telling import announced


class Seed(Step):
    """Writes the text that makes the variants differ."""

    makes: ClassVar[str] = "seeded"
    text: str

    def run(self, out: Path) -> Report:
        with announced("seed", self.text, {}, seconds=0.001) as identity:
            (out / "text.txt").write_text(self.text)
        print(f"wrote {self.text}")
        return {"identity": identity}
