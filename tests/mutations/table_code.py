"""Edits of the program's own code, in a copy of its source tree: each counts for the steps that run it."""

from mutations.actions import append, edit, mode, remove, rewrite, touch, write
from mutations.graph import split
from mutations.mutation import changes, nothing

S = "source"
_STEPS = ("fetch", "export", "reference", "shape_infer", "fuse", "quantize", "validate", "bench", "package")
_KIT = {
    "kit/accuracy/measure": "validate",
    "kit/inputs/bench_inputs": "validate bench",
    "kit/accuracy/thresholds": "validate",
    "kit/inputs/cases": "reference fuse quantize validate bench",
    "kit/checkpoints/checkpoint": "fetch export reference quantize validate bench package",
    "kit/accuracy/comparison": "quantize validate",
    "kit/checkpoints/sentences": "fetch export reference quantize validate bench package",
    "kit/inputs/synthetic": "export reference fuse quantize validate bench",
    "store/disk": "fetch export reference shape-infer fuse quantize validate bench package",
    "machine/cpu": "validate bench",
    "kit/quantization/dynamic/dynamic_int8": "quantize",
    "kit/accuracy/equivalence": "fuse quantize",
    "runtimes/onnxruntime/fusion": "fuse",
    "kit/checkpoints/hub": "fetch package",
    "kit/quantization/precisions": "fuse quantize",
    "kit/bench/interleaving": "bench",
    "kit/accuracy/gate": "validate",
    "kit/onnx/passes/linear_layers": "quantize",
    "kit/checkpoints/model_files": "fetch package",
    "kit/onnx/onnx_files": "fetch export reference shape-infer fuse quantize validate bench package",
    "runtimes/onnxruntime/session": "export reference shape-infer fuse quantize validate bench package",
    "kit/reference/reference_cases": "reference quantize",
    "runtimes/onnxruntime/runner": "validate bench",
    "runtimes/onnxruntime/triton": "package",
    "runtimes/registry": "validate bench package",
    "runtimes/runtime": "validate bench package",
    "runtimes/triton_images": "validate bench package",
    "runtimes/onnxruntime/spec": "validate bench package",
    "kit/inputs/samples": "reference quantize",
    "kit/onnx/shapes": "shape-infer",
    "kit/bench/stats": "export reference quantize validate bench package",
    "kit/inputs/token_rows": "fetch export reference fuse quantize validate bench package",
    "kit/inputs/tokenizer": "reference quantize validate package",
    "kit/triton/config": "package",
    "kit/triton/fields": "package",
    "kit/triton/repository": "package",
}
"""Who runs each module, as its imports say when a program for that runs over them, and as a reader sees."""
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
    *(_edited(f"{name}.py", jobs) for name, jobs in _KIT.items()),
    _changed("another constant in a step", "steps/reference.py", "_PROGRESS = 100", "_PROGRESS = 50", "reference"),
    _changed("another comparison in the kit", "kit/quantization/dynamic/dynamic_int8.py", "<= operators.count",
            "< operators.count", "quantize"),
    _changed("another default of an option that the recipe sets", "steps/bench.py", "threads: int | None = None",
            "threads: int | None = 1", "bench"),
    _changed("another word among the built-in sentences", "kit/inputs/texts.txt", "\n", "!\n", "reference quantize"),
    *(nothing(f"a docstring in {file}", S, edit(f"src/engine/{file}", '"""', '"""Anew: '))
      for file in ("steps/bench.py", "steps/export.py", "runtimes/onnxruntime/session.py", "kit/onnx/onnx_files.py")),
    nothing("the docstring of a field", S, edit("src/engine/steps/bench.py", '"""The number of threads; None',
            '"""How many threads; None')),
    nothing("the remark on a constant", S, edit("src/engine/kit/checkpoints/model_files.py", '"""Folders of a model',
            '"""All folders of a model')),
    nothing("comments and blank lines in a step", S, rewrite("src/engine/steps/fuse.py", _spread_out)),
    nothing("comments and blank lines in the kit", S, rewrite("src/engine/kit/checkpoints/checkpoint.py", _spread_out)),
    nothing("other quotes", S, rewrite("src/engine/steps/shape_infer.py", lambda text: text.replace('"symbolic": ',
            "'symbolic': "))),
    nothing("line ends of another system in a step", S, rewrite("src/engine/steps/fuse.py",
            lambda text: text.replace("\n", "\r\n"))),
    nothing("the code touched", S, touch("src/engine")),
    nothing("the code read-only", S, mode(0o444, "src/engine/steps/fuse.py",
            "src/engine/runtimes/onnxruntime/session.py")),
    nothing("the compiled code removed", S, remove("src/engine/steps/__pycache__", "src/engine/kit/__pycache__")),
    *(nothing(f"a statement more in {file}", S, append(f"src/engine/{file}", "\n_EDITED = 1\n"))
      for file in ("builder/loop.py", "report/plain.py", "commands/why.py", "cli.py", "events.py",
            "kit/checkpoints/packages.py", "kit/quantization/half/half.py",
            "runtimes/pytorch/runner.py", "runtimes/tensorrt/spec.py", "runtimes/tensorrt/runner.py",
            "steps/trt_build.py", "steps/validate_onnx.py")),
    nothing("a new module that nobody imports", S, write("src/engine/kit/unrelated.py", '"""New."""\n\nVALUE = 1\n')),
    nothing("a new step that the recipe does not want", S, write("src/engine/steps/mark.py", _NEW_STEP)),
    changes("a new step that every recipe wants", S, write("src/engine/steps/mark.py", _PLANNED), causes={"mark": ()}),
    nothing("a step edited and edited back", S, append("src/engine/steps/fuse.py", "_EDITED = 1\n"),
            rewrite("src/engine/steps/fuse.py", lambda text: text.removesuffix("_EDITED = 1\n"))),
)  # fmt: skip
