"""Steps of a search of toy models: quick, and with few imports."""

from typing import ClassVar

from engine.step import Frozen, Step


class Prepare(Step):
    """Makes what all trials have in common."""

    makes: ClassVar[str] = "prepared"

    def run(self, out):
        (out / "text.txt").write_text("common")


class Made(Step):
    """Makes the model of a point."""

    makes: ClassVar[str] = "model"
    precision: str
    tiles: int
    levels: int
    runtime: str

    def run(self, out, *, prepared):
        (out / "text.txt").write_text((prepared / "text.txt").read_text() + self.precision)


class Figures(Frozen):
    """The fields of a point."""

    precision: str = "high"
    tiles: int = 0
    levels: int = 0
    runtime: str = "slow"
    copies: int = 1

    @property
    def milliseconds(self):
        """The time of a call, which is least at tiles 3, levels 1, precision lowest, copies 2."""
        base = {"high": 8.0, "low": 5.0, "lowest": 3.0}[self.precision]
        runtime = 0.8 + 0.1 * abs(self.levels - 1) if self.runtime == "quick" else 1.0
        return base * runtime * (1 + 0.1 * abs(self.tiles - 3)) * (1 + 0.05 * abs(self.copies - 2))


class ToyRace(Step):
    """Says what the contestants take, the first of which is the baseline."""

    makes: ClassVar[str] = "raced"
    contestants: tuple[Figures, ...]
    cut: float | None = None

    def run(self, out, *, model):
        (out / "done").write_bytes((model / "text.txt").read_bytes())
        return {"milliseconds": [each.milliseconds for each in self.contestants]}
