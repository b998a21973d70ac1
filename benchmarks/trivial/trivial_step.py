"""A step that does almost nothing, so that a build of it measures the build tool's own work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine.step import Source, Step

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Trivial(Step):
    """Copies one small text: the file `in/NUMBER.txt` beside the recipe's model."""

    makes: ClassVar[str] = "trivial"

    number: int
    text: Source | None = None

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        step = super().for_recipe(recipe)
        if step is None:
            return None
        folder = Path(recipe.model.source.removeprefix("file:")).parent
        return cls(number=step.number, text=Source(uri=f"file:{folder}/in/{step.number}.txt"))

    def run(self, out: Path, *, text: Path) -> None:
        (out / f"{self.number}.txt").write_bytes(text.read_bytes())
