"""TRT prepare: what TensorRT needs to know about the ONNX graph, and everything that needs no TensorRT, on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from engine import digest, tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.onnx.opsets import READ_AS_STANDARD
from engine.kit.triton import embedding
from engine.recipe.shape_values import Values
from engine.recipe.values import Profile
from engine.runtimes import axes
from engine.runtimes import profiles as trt_profiles
from engine.runtimes.preparation import CONTRIBUTED
from engine.runtimes.tensorrt import memory, prepared_graph, sparsity
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents, Onnx, PreparedGraph
from engine.runtimes.tensorrt.spec import Engines
from engine.step import Step

if TYPE_CHECKING:
    import onnx

    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.schema import Recipe


class TrtPrepare(Step):
    """Prepare the ONNX graph for TensorRT: embeddings, profiles and checks that need no GPU."""

    makes: ClassVar[str] = "prepared"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = onnx_files.TOOLS
    keyed_if_set: ClassVar[tuple[str, ...]] = ("shape_values", "sparse_weights", "embeds", "task")

    profiles: tuple[Profile, ...] = ()
    shape_values: tuple[Mapping[str, Values], ...] = ()
    """The values of inputs that the profiles state; empty where they state none."""
    sparse_weights: bool = False
    """Whether TensorRT looks for weights with the pattern 2:4, so that they are counted."""
    embeds: bool = False
    """Whether the engine computes the embedding of each text, if the checkpoint says how its hidden states are pooled.

    Otherwise a server copies the hidden states of all tokens to the CPU for the same.
    """
    task: str | None = None
    """The task that the recipe names, where `embeds` is true; None where the checkpoint's config names the task."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for TensorRT and TensorRT-RTX; None for a runtime without engines."""
        runtime, task, triton = recipe.runtime, recipe.model.task, recipe.package.triton
        if not isinstance(runtime, Engines):
            return None
        answers = not runtime.product.anywhere and triton.tokenizer and triton.postprocess
        embeds = bool(answers and (task is None or tasks.find(task).embeds))
        return cls(
            profiles=recipe.profiles,
            shape_values=recipe.shape_values,
            sparse_weights=bool(recipe.tensorrt.get("sparse_weights")),
            embeds=embeds,
            task=task if embeds else None,
        )

    def code_used(self) -> tuple[str, ...]:
        """Return the modules of the model's task, which tell whether its answers are embeddings."""
        return (*super().code_used(), *(tasks.modules(self.task) if self.embeds else ()))

    def inputs_used(self) -> tuple[str, ...]:
        """Return the inputs; the checkpoint states the longest input of a recipe without profiles, and the pooling."""
        return tuple(name for name in self.inputs() if name != "checkpoint" or self.embeds or not self.profiles)

    def run(self, out: Path, *, checked: Path, checkpoint: Path | None = None) -> None:
        """Write into `out` the graph to compile, and beside the graph what its compilation has to know about it.

        Without profiles in the recipe, the graph gets the usual profile of text models (`profiles.usual`). Raises
        StepError where the graph was fused for ONNX Runtime, or where a profile does not fit the graph.
        """
        model = self._with_embedding(checked, checkpoint, out)
        graph = onnx_files.load_graph(model)
        _refuse_fused(graph)
        if model != out:
            for name in onnx_files.files(graph):
                onnx_files.link_file(model / name, out / name)
        prepared_graph.write(
            out, self._prepared(out, graph, self.profiles or bench_inputs.usual_profiles(graph, checkpoint))
        )

    def _with_embedding(self, checked: Path, checkpoint: Path | None, out: Path) -> Path:
        """Return the folder of the graph to compile: `out` for a graph that computes embeddings, else `checked`.

        Hidden states stay on the GPU then, unless a client requests them.
        """
        if not self.embeds or checkpoint is None or checkpoints.kind(checkpoint) == "onnx":
            return checked
        embeds = tasks.find(checkpoints.task(checkpoint, self.task)).embeds
        return embedding.pooled(checked, checkpoint, out) if embeds else checked

    def _prepared(self, folder: Path, graph: onnx.ModelProto, profiles: Sequence[Profile]) -> PreparedGraph:
        inputs = onnx_files.inputs(graph)
        forecast = memory.forecast(graph, axes.by_name(trt_profiles.greatest(profiles), axes.shapes(inputs)))
        return PreparedGraph(
            model=onnx_files.MODEL,
            onnx=Onnx(
                digest=digest.of_tree({name: digest.of_file(folder / name) for name in onnx_files.files(graph)}),
                bytes=onnx_files.size(folder, graph),
            ),
            inputs=_tensors(inputs),
            outputs=_tensors(onnx_files.outputs(graph)),
            profiles=tuple(
                {name: Extents(min=least, opt=usual, max=most) for name, (least, usual, most) in shapes.items()}
                for shapes in trt_profiles.shapes(inputs, profiles)
            ),
            values=tuple(
                {name: Extents(min=each.min, opt=each.opt, max=each.max) for name, each in values.items()}
                for values in self.shape_values
            ),
            forecast=str(forecast),
            sparse=sparsity.counted(folder) if self.sparse_weights else None,
        )


def _refuse_fused(model: onnx.ModelProto) -> None:
    """Raise StepError for ONNX Runtime's fused operators, which TensorRT would read as ONNX operators of equal name."""
    nodes = onnx_files.nodes(model)
    fused = [node for node in nodes if node.domain == CONTRIBUTED and node.op_type not in READ_AS_STANDARD]
    if fused:
        names = sorted({node.op_type for node in fused})
        raise StepError(
            f"the ONNX graph was fused for ONNX Runtime: {', '.join(names)}",
            [f"{len(fused)} nodes are of the domain {CONTRIBUTED}, which only ONNX Runtime has"],
            "TensorRT wants the unfused graph and fuses on its own: build from the model that was exported",
        )


def _tensors(values: Mapping[str, Input]) -> dict[str, EngineTensor]:
    return {name: EngineTensor(dtype=value.dtype, shape=value.shape) for name, value in values.items()}
