"""Edits of the program's own code, in a copy of its source tree: each counts for the steps that run it."""

from mutations.actions import append, edit, mode, remove, rewrite, touch, write
from mutations.mutation import changes, nothing, split

S = "source"
_STEPS = ("fetch", "export", "reference", "shape_infer", "fuse", "quantize", "validate", "bench", "package")
_UNUSED = (
    "builder/loop", "report/plain", "commands/why", "cli", "events", "kit/checkpoints/packages",
    "kit/quantization/half/half", "runtimes/pytorch/runner", "runtimes/tensorrt/spec", "runtimes/tensorrt/runner",
    "steps/trt_build", "steps/validate_onnx",
)  # fmt: skip
_NEW_STEP = '''"""Marks."""

from pathlib import Path
from typing import ClassVar

from engine.step import Step


class Mark(Step):
    """Marks the model."""

    makes: ClassVar[str] = "marked"

    def run(self, out: Path, *, exported: Path) -> None:
        out.mkdir()
'''
_PLANNED = _NEW_STEP.replace(
    "    def run(self, out: Path, *, exported: Path) -> None:\n        out.mkdir()\n",
    """    after: ClassVar[str] = "shape-infer"

    @classmethod
    def for_recipe(cls, _recipe):
        return cls()

    def run(self, out: Path, *, model: Path) -> None:
        import shutil

        shutil.copytree(model, out, dirs_exist_ok=True)
""",
)


def _edited(file: str, jobs: str):
    causes, spreads = split(jobs, "code")
    return changes(
        f"a statement more in {file}",
        S,
        append(f"src/engine/{file}", "\n_EDITED = 1\n"),
        causes=causes,
        spreads=spreads,
    )


def _changed(says: str, file: str, old: str, new: str, jobs: str):
    causes, spreads = split(jobs, "code")
    return changes(says, S, edit(f"src/engine/{file}", old, new), causes=causes, spreads=spreads)


def _spread_out(text: str) -> str:
    """Put blank lines and a comment between the statements of a module."""
    return text.replace("\n\n\ndef ", "\n\n\n\n\n# a remark\ndef ").replace(
        "import annotations\n", "import annotations  # new\n"
    )


TABLE = (
    *(_edited(f"steps/{name}.py", name.replace("_", "-")) for name in _STEPS),
    _changed("another constant in a step", "steps/reference.py", "_PROGRESS = 100", "_PROGRESS = 50", "reference"),
    _changed("another comparison in the kit", "kit/quantization/dynamic/dynamic_int8.py", "<= operators.count",
            "< operators.count", "quantize"),
    _changed("another default of an option that the recipe sets", "steps/bench.py", "threads: int | None = None",
            "threads: int | None = 1", "bench"),
    _changed("another word among the built-in sentences", "kit/inputs/texts.txt", "\n", "!\n", "reference quantize"),
    nothing("docstrings of modules, of a field and of a constant", S,
            *(edit(f"src/engine/{file}", '"""', '"""Anew: ') for file in ("steps/bench.py", "steps/export.py",
            "runtimes/onnxruntime/session.py", "kit/onnx/onnx_files.py")),
            edit("src/engine/steps/bench.py", '"""The number of threads; None', '"""How many threads; None'),
            edit("src/engine/kit/checkpoints/model_files.py", '"""Folders of a model', '"""All folders of a model')),
    nothing("comments and blank lines", S, rewrite("src/engine/steps/fuse.py", _spread_out),
            rewrite("src/engine/kit/checkpoints/checkpoint.py", _spread_out)),
    nothing("other quotes", S, rewrite("src/engine/steps/shape_infer.py", lambda text: text.replace('"symbolic": ',
            "'symbolic': "))),
    nothing("line ends of another system in a step", S, rewrite("src/engine/steps/fuse.py",
            lambda text: text.replace("\n", "\r\n"))),
    nothing("the code touched, some of it read-only, and compiled code removed", S, touch("src/engine"),
            mode(0o444, "src/engine/steps/fuse.py", "src/engine/runtimes/onnxruntime/session.py"),
            remove("src/engine/steps/__pycache__", "src/engine/kit/__pycache__")),
    nothing("a statement more in what no job of the recipe runs", S,
            *(append(f"src/engine/{file}.py", "\n_EDITED = 1\n") for file in _UNUSED)),
    nothing("a new module that nobody imports", S, write("src/engine/kit/unrelated.py", '"""New."""\n\nVALUE = 1\n')),
    nothing("a new step that the recipe does not want", S, write("src/engine/steps/mark.py", _NEW_STEP)),
    changes("a new step that every recipe wants", S, write("src/engine/steps/mark.py", _PLANNED), causes={"mark": ()}),
)  # fmt: skip
