"""A project with a small ONNX model and a recipe for a T4, which builds in seconds on a machine with a fake T4."""

import graphs
import onnx
from onnx import helper

RECIPE = """\
name: {name}
model: {{source: model.onnx}}
target: {{device: T4, runtime: tensorrt}}
precision: {precision}
tensorrt: {{version: "10.x"}}
profiles: [{{batch: [1, 2, 4]}}]
"""
ANYWHERE = ("fetch", "reference", "shape-infer", "quantize", "validate-onnx", "trt-prepare")
ON_T4 = ("trt-build", "validate", "package")


def project_in(folder, *, precisions=("fp16",)):
    """Make a project in a new folder: the recipe `recipes/netN.yaml` for each precision."""
    (folder / "recipes").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    ends = [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, ["batch", 4])]
    graph = graphs.graph([helper.make_node("MatMul", ["x", "w"], ["y"])], *ends, [graphs.weight("w", 8, 4)])
    onnx.save(graph, folder / "recipes" / "model.onnx")
    for number, precision in enumerate(precisions):
        (folder / "recipes" / f"net{number}.yaml").write_text(RECIPE.format(name=f"net{number}", precision=precision))
    return folder
