"""Steps with a kept file, such as a timing cache."""

from pathlib import Path
from typing import ClassVar

from engine.step import KEPT, Step


class Tune(Step):
    """A step that adds a line to the kept file of earlier runs."""

    makes: ClassVar[str] = "tuned"
    tools: ClassVar[tuple[str, ...]] = ("pyyaml",)
    kept_by: ClassVar[tuple[str, ...]] = ("tools.pyyaml", "options.gpu")
    gpu: str = "T4"
    number: int = 0

    def run(self, out: Path) -> dict[str, int]:
        notes = out.parent / KEPT
        before = notes.read_text() if notes.exists() else ""
        notes.write_text(before + f"{self.number}\n")
        (out / "done").write_text("")
        return {"known": len(before.splitlines())}


class Fail(Tune):
    """A step that fails after writing its kept file."""

    def run(self, out: Path) -> dict[str, int]:
        super().run(out)
        raise ValueError("no")
