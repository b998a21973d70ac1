"""A project with steps that take as long, and end, as its recipe says: for what a build shows on a terminal."""

from __future__ import annotations

from pathlib import Path

from engine.testing import install

STEPS = '''
"""Steps that wait, fail, or need a GPU."""
import time
from typing import ClassVar

from engine.gpus import names
from engine.step import Device, Hardware, Step, StepError


class Slow(Step):
    """Wait for some seconds, and print how far the wait is."""

    makes: ClassVar[str] = "slow"
    number: int = 0
    seconds: float = 0.0

    def run(self, out):
        for part in range(10):
            print(f"part {part + 1} of 10")
            time.sleep(self.seconds / 10)
        (out / "number").write_text(str(self.number))


class Last(Step):
    """Fail, or run on a GPU only, where the recipe says so."""

    makes: ClassVar[str] = "last"
    fails: bool = False
    gpu: str = ""

    def hardware(self):
        if not self.gpu:
            return None
        return Hardware(devices=(Device(name=self.gpu, sm=names.find(self.gpu).sm),), tool="tensorrt")

    def run(self, out, *, slow):
        if self.fails:
            raise StepError("the number is wrong", ["it is 0"], "write another number")
        (out / "number").write_text((slow / "number").read_text())
'''


class Project:
    """A folder with a recipe `r.yaml` of two jobs, `slow` and `last`, or with a matrix of such recipes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        for name in ("Slow", "Last"):
            install(self.site, "recipe.steps", name.lower(), f"terminal_steps:{name}")
        (self.site / "terminal_steps.py").write_text(STEPS)
        for empty in ("pyproject.toml", "model.onnx"):
            (folder / empty).touch()
        self.recipe()

    def recipe(self, *, seconds: float = 0, last: str = "{}", variants: int = 1) -> None:
        """Write the recipe: its slow job takes some seconds, and its last job has the options `last`."""
        many = variants > 1
        text = f"""\
name: {"a-network-with-a-long-name-${steps.slow.number}" if many else "net"}
model: {{source: model.onnx}}
steps: {{slow: {{number: 0, seconds: {seconds}}}, last: {last}}}
"""
        if many:
            text += f"matrix: {{steps.slow.number: [{', '.join(map(str, range(variants)))}]}}\n"
        (self.folder / "r.yaml").write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the program finds the steps."""
        return {"PYTHONPATH": str(self.site), "RECIPE_TRUST_CACHE": "1"}
