"""Package: a Triton model repository of the validated model, with its tokenizer where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

from engine.errors import StepError
from engine.kit import checkpoint as checkpoints
from engine.kit import onnx_files, ort, ort_tensorrt, token_rows, tokenise, triton, triton_fields, triton_gpu
from engine.kit.execution import Execution
from engine.kit.triton import Config, Signature
from engine.kit.trt import engine_folder, passport
from engine.kit.trt.passport import Passport
from engine.recipe.schema import Recipe, Task
from engine.step import Report, Step

_CONFIG = "config.pbtxt"
_VERSION = "1"
_TEXTS: Mapping[str, int] = {
    "question-answering": 2,
    "feature-extraction": 1,
    "token-classification": 1,
    "fill-mask": 1,
}
"""How many texts make one row of TEXT; any other model may be about one or about two (-1)."""
_SIDES = ("left", "right")
_EMPTY = "An ensemble has no files of its own, but Triton looks for the folder of its version.\n"


class Package(Step):
    """Write the folders that Triton serves: the model, its tokenizer, and the ensemble of both.

    A TensorRT-RTX engine, which no Triton backend loads, becomes one plain folder (`kit/trt/engine_folder.py`).
    """

    makes: ClassVar[str] = "package"
    tools: ClassVar[tuple[str, ...]] = ("onnx", "protobuf", "tokenizers", "tritonclient")
    gates: ClassVar[tuple[str, ...]] = ("bench",)

    model_name: str
    ensemble: str
    tokenizer: bool = True
    max_batch_size: int | None = None
    largest: Mapping[str, int] = {}
    """Axis -> the most that any profile allows."""
    task: Task | None = None
    execution: Execution = Execution()
    """How the model is run, on whichever device of its kind."""
    fields: Mapping[str, Any] = {}
    """Fields of Triton's ModelConfig, verbatim."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Every recipe makes a package."""
        said = recipe.package.triton
        name = said.name or recipe.name
        largest: dict[str, int] = {}
        for profile in recipe.profiles:
            for axis, extent in profile.items():
                largest[axis] = max(largest.get(axis, 0), int(extent.max))
        return cls(
            model_name=name,
            ensemble=said.ensemble or f"{name}_text",
            tokenizer=said.tokenizer,
            max_batch_size=said.max_batch_size,
            largest=largest,
            task=recipe.model.task,
            execution=Execution.for_recipe(recipe).anywhere(),
            fields=said.model_extra or {},
        )

    def run(self, out: Path, *, validated: Path, checkpoint: Path) -> Report:
        """Return {"name", "models", "bytes"}.

        Raises StepError where names collide, Triton has no such field, or cannot serve the model as it must be.
        """
        out.mkdir(parents=True, exist_ok=True)
        engine = passport.load(validated) if (validated / passport.PLAN).is_file() else None
        if engine is not None and engine.largest and not self.largest:  # the profile is one that suits the model
            chosen = self.model_copy(update={"largest": engine.largest})
            return chosen.run(out, validated=validated, checkpoint=checkpoint)
        if self.execution.runtime == "tensorrt-rtx":
            return self._plain(out, validated, checkpoint)
        model, signature = self._engine_config(engine) if engine else self._onnx_config(validated, out.parent)
        folder = _folder(out, model)
        for name in _model_files(validated):
            onnx_files.link_file(validated / name, folder / name)
        models = [model.name]
        if self.tokenizer:
            models += self._add_text(out, model, signature, checkpoint)
        print(f"a Triton repository of {', '.join(models)}")
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        return {"name": models[-1], "models": models, "bytes": size}

    def _engine_config(self, engine: Passport) -> tuple[Config, Signature]:
        """Return the configuration of a native TensorRT engine."""
        signature = Signature(engine.input_list, engine.output_list)
        batch = triton.max_batch(signature, self.max_batch_size, self.largest)
        config = triton.model_config(self.model_name, signature, platform="tensorrt_plan", batch=batch, gpu=True)
        if self.execution.cuda_graph:
            usual = [{name: extents.opt for name, extents in profile.items()} for profile in engine.profiles]
            triton_gpu.cuda_graphs(config, usual)
        triton_fields.merge(config, self.fields)
        axis = signature.batch_axis
        triton_gpu.check_batch(config, self.largest.get(axis) if axis is not None else None)
        triton_gpu.finish(config, profiles=len(engine.profiles))
        return config, signature

    def _onnx_config(self, validated: Path, scratch: Path) -> tuple[Config, Signature]:
        """Return the configuration of an ONNX model, for ONNX Runtime on a CPU or on a GPU."""
        graph = onnx_files.load_graph(validated)
        signature = Signature(onnx_files.inputs(graph), onnx_files.outputs(graph))
        config = triton.model_config(
            self.model_name,
            signature,
            platform="onnxruntime_onnx",
            batch=triton.max_batch(signature, self.max_batch_size, self.largest),
            level=_level(validated, scratch),
            gpu=self.execution.provider != "cpu",
        )
        if self.execution.provider == "tensorrt":
            triton_gpu.tensorrt_provider(config, ort_tensorrt.options(signature.inputs, self.execution))
        triton_fields.merge(config, self.fields)
        if self.execution.provider != "cpu":
            triton_gpu.finish(config, profiles=1)
        return config, signature

    def _plain(self, out: Path, validated: Path, checkpoint: Path) -> Report:
        """Write an engine's folder. Returns what `run` does, without models for Triton."""
        engine = passport.load(validated)
        signature = Signature(engine.input_list, engine.output_list)
        longest, fixed = self._lengths(signature) if token_rows.are_tokens(signature.inputs) else (None, None)
        wanted = self.tokenizer and token_rows.are_tokens(signature.inputs)
        tokeniser = tokenise.load(checkpoint, longest=longest) if wanted else None
        text = None if tokeniser is None else _padding(tokeniser, checkpoint, fixed)
        engine_folder.write(out / self.model_name, validated, version=engine.tensorrt, tokenizer=text)
        print(engine_folder.NOT_TRITON)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        return {"name": self.model_name, "models": [], "bytes": size}

    def _add_text(self, out: Path, model: Config, signature: Signature, checkpoint: Path) -> list[str]:
        """Add the tokenizer and the ensemble of a text model that has one; return their names."""
        if not token_rows.are_tokens(signature.inputs):
            return []
        longest, fixed = self._lengths(signature)
        tokeniser = tokenise.load(checkpoint, longest=longest)
        if tokeniser is None:
            print("the model has no tokenizer: the package takes tokens")
            return []
        texts = _TEXTS.get(checkpoints.task(checkpoint, self.task), -1)
        tokenizer = triton.tokenizer_config(f"{model.name}_tokenizer", model, texts=texts)
        ensemble = triton.ensemble_config(self.ensemble, tokenizer, model, texts=texts)
        names = [model.name, tokenizer.name, ensemble.name]
        if len(set(names)) < len(names):
            raise StepError(
                "two models of the package have the same name", [f"model, tokenizer, ensemble: {', '.join(names)}"],
                "choose others with package.triton.name and package.triton.ensemble",
            )  # fmt: skip
        folder = _folder(out, tokenizer)
        (folder / "model.py").write_bytes(triton.tokenizer_code())
        (folder / "tokenizer.json").write_text(_padding(tokeniser, checkpoint, fixed), "utf-8")
        (folder.parent / "requirements.txt").write_text(_requirements(), "utf-8")
        (_folder(out, ensemble) / "ensemble.txt").write_text(_EMPTY, "utf-8")
        return names[1:]

    def _lengths(self, signature: Signature) -> tuple[int | None, int | None]:
        """Return the most tokens that a row may have, and the number that it must have; None for no such limit."""
        axis = signature.inputs["input_ids"].shape[1]
        return (axis, axis) if isinstance(axis, int) else (self.largest.get(axis), None)


def _folder(out: Path, config: Config) -> Path:
    """Make a model's folder with its configuration, and return the folder of its version."""
    folder: Path = out / config.name / _VERSION
    folder.mkdir(parents=True)
    (folder.parent / _CONFIG).write_text(triton.as_text(config), "utf-8")
    return folder


def _model_files(validated: Path) -> Iterator[str]:
    if (validated / passport.PLAN).is_file():
        yield from (passport.PLAN, passport.FILE)
        return
    yield onnx_files.MODEL
    yield from onnx_files.data_files(onnx_files.load_graph(validated))


def _level(validated: Path, scratch: Path) -> str:
    """Return the optimisation level that Triton must use.

    Triton cannot switch single optimisers off. Where session.json does, what it asks for must come to the same
    without that: at the level `basic` the fusions of higher levels do not run anyway. Raises StepError otherwise.
    """
    said = ort.options(validated)
    level = str(said.get("graph_optimization_level", "all"))
    disabled = tuple(said.get("disabled_optimizers", ()))
    if not disabled:
        return level
    with TemporaryDirectory(dir=scratch) as folder:
        made = []
        for name, without in (("without", disabled), ("with", ())):
            ort.optimise(validated, Path(folder) / name, level=level, disabled=without)
            made.append([path.read_bytes() for path in sorted((Path(folder) / name).iterdir())])
    if made[0] != made[1]:
        raise StepError(
            "Triton cannot serve this model as it was validated: it cannot switch single optimisers off",
            [f"switched off: {', '.join(disabled)}, at the level {level}"],
        )
    return level


def _padding(tokeniser: tokenise.Tokeniser, checkpoint: Path, fixed: int | None) -> str:
    """Return tokenizer.json: cut as in validation, padded to the longest text of a request or to a fixed length."""
    backend = tokeniser.backend
    side = _side(checkpoint)
    token = backend.id_to_token(tokeniser.pad) or ""
    backend.enable_padding(direction=side, pad_id=tokeniser.pad, pad_token=token, length=fixed)
    return str(backend.to_str(pretty=False))


def _requirements() -> str:
    import tokenizers

    return f"# What model.py needs, beside numpy, in Triton's Python.\ntokenizers=={tokenizers.__version__}\n"


def _side(checkpoint: Path) -> str:
    """Return on which side texts are padded: as the tokenizer's settings say, else as its file does, else right."""
    said = str(tokenise.settings(checkpoint / "tokenizer_config.json").get("padding_side")).lower()
    own = (tokenise.settings(checkpoint / "tokenizer.json").get("padding") or {}).get("direction", "right")
    return said if said in _SIDES else str(own).lower()
