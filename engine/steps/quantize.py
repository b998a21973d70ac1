"""Quantize: int8 for the CPU, by ONNX Runtime's dynamic quantisation."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit import int8, onnx_files, ort
from engine.step import Report, Step

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

_WITHOUT_VNNI = frozenset({"avx2", "avx512"})
_KEPT_APART = ("SkipLayerNormFusion",)
_FREE_INITIALIZERS = 4  # the IR version since which weights need not be inputs as well: folding leaves them out
_HALF = ("FLOAT16", "BFLOAT16")


class Quantize(Step):
    """Quantise what dynamic quantisation does well; leave the rest and say so."""

    makes: ClassVar[str] = "quantized"
    tools: ClassVar[tuple[str, ...]] = ("numpy", "onnx", "onnxruntime")

    reduce_range: bool = False
    """Whether weights keep to 7 bits.

    Without VNNI, x86 multiplies uint8 by int8 with VPMADDUBSW, whose 16-bit sums saturate; ONNX Runtime's guide
    "Quantize ONNX Models" advises this for AVX2 and AVX512 wherever weights are quantised per channel.
    """

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for int8 on ONNX Runtime's CPU provider."""
        target = recipe.target
        provider = target.provider or ("cpu" if target.device == "cpu" else "cuda")
        if (recipe.precision, target.runtime, provider) != ("int8", "onnxruntime", "cpu"):
            return None
        return cls(reduce_range=target.isa in _WITHOUT_VNNI)

    def run(self, out: Path, *, fused: Path) -> Report:
        """Return {"quantized": {operator: count}, "left": ["2 Conv", ...], "bytes": [before, after]}.

        Where nothing was quantised, "unquantized" says why and the model is handed on as it came.
        """
        before = _size(fused)
        with TemporaryDirectory(dir=out.parent) as folder:
            try:
                model = self._quantised(fused, Path(folder))
            except _LeftAloneError as reason:
                print(f"not quantised: {reason}")
                onnx_files.link(fused, out)
                return {
                    "quantized": {},
                    "left": int8.left(onnx_files.load_graph(fused)),
                    "bytes": [before, before],
                    "unquantized": str(reason),
                }
            counted, left = int8.counted(model), int8.left(model)
            _save(model, out, Path(folder))
        after = _size(out)
        print(f"quantised {', '.join(f'{count} {name}' for name, count in counted.items())}: {before} -> {after} bytes")
        if left:
            print(f"left as they are: {', '.join(left)}")
        ort.session(out, threads=1)  # a model that cannot be opened must not leave this step
        return {"quantized": counted, "left": left, "bytes": [before, after]}

    def _quantised(self, fused: Path, scratch: Path) -> onnx.ModelProto:
        """Return the quantised model. Raises _LeftAloneError, or StepError where the quantiser breaks down."""
        _look_at(onnx_files.load_graph(fused))
        print("folding constants")
        ort.optimise(fused, scratch / "folded", level="basic", disabled=("ConstantSharing",))
        model = _recent(onnx_files.load(scratch / "folded"))
        if any(graph.sparse_initializer for graph in onnx_files.graphs(model.graph)):  # folding makes constants such
            raise _LeftAloneError("it stores weights as sparse tensors, which ONNX Runtime's quantiser cannot read")
        print(f"quantising weights to {7 if self.reduce_range else 8} bits, a scale per channel")
        quantised = int8.quantise(model, scratch, reduce_range=self.reduce_range)
        if not int8.counted(quantised):
            raise _LeftAloneError("it has no operator that dynamic quantisation makes faster")
        return quantised


class _LeftAloneError(Exception):
    """Why the model is handed on as it came."""


def _look_at(model: onnx.ModelProto) -> None:
    import onnx

    if done := int8.signs(model):
        raise _LeftAloneError(f"it is quantised already ({', '.join(done)})")
    halves = {onnx.TensorProto.DataType.Value(name) for name in _HALF}
    if any(tensor.data_type in halves for tensor in onnx_files.tensors(model)):
        raise _LeftAloneError("its weights are in half precision, and only single precision can be quantised")


def _recent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in an opset that knows the quantising operators."""
    from onnx import version_converter

    opset = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), 0)
    if opset >= int8.OLDEST_OPSET:
        return model
    model.ir_version = max(model.ir_version, _FREE_INITIALIZERS)
    try:
        return version_converter.convert_version(model, int8.OLDEST_OPSET)
    except Exception as error:  # the converter raises RuntimeError for operators that it has no adapter for
        reason = f"it is written in opset {opset}, too old for int8, and cannot be converted to {int8.OLDEST_OPSET}"
        raise _LeftAloneError(f"{reason} ({error})") from error


def _save(model: onnx.ModelProto, out: Path, scratch: Path) -> None:
    """Write the model so that serving it does not undo what makes it fast.

    ONNX Runtime fuses a residual addition with the normalisation behind it, into a kernel that is slower on a CPU
    (see `Fuse.residual`). So a transformer is optimised here, without that fusion, and served at the level `basic`.
    Convolutions want the layouts that only the level `all` gives, chosen by the CPU that serves them: models with
    more of these than normalisations are left to it.
    """
    operators = [node.op_type for node in onnx_files.nodes(model)]
    if operators.count("LayerNormalization") <= operators.count("Conv"):
        onnx_files.save(model, out)
        return
    onnx_files.save(model, scratch / "quantised")
    ort.optimise(scratch / "quantised", scratch / "optimised", level="extended", disabled=_KEPT_APART)
    onnx_files.save(onnx_files.load(scratch / "optimised"), out)
    ort.save_options(out, level="basic", disabled=_KEPT_APART)


def _size(directory: Path) -> int:
    names = [onnx_files.MODEL, *onnx_files.data_files(onnx_files.load_graph(directory))]
    return sum((directory / name).stat().st_size for name in names)
