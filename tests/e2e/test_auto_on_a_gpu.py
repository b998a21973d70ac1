"""`runtime: auto` for a T4 on a laptop, on a machine that says it has a T4 (a fake, see fake_t4), and on the laptop."""

import shutil

import gpu_project
import graphs
import numpy as np
import onnx
import pytest
from fake_t4 import FakeT4
from onnx import helper, numpy_helper
from quick_program import copied, quick

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_shipped_on_a_t4.py builds for the same GPU")]

RECIPE = """\
name: net
model: {source: model.onnx}
target: {device: T4, runtime: auto}
precision: fp16
tensorrt: {version: "10.x"}
profiles: [{batch: [1, 2, 4]}]
bench: {shapes: [{batch: 1}]}
"""
PATH = "recipes/net.yaml"
ANYWHERE = (
    "fetch", "reference", "shape-infer", "fuse", "quantize", "quantize@tensorrt", "validate-onnx",
    "validate-onnx@tensorrt", "trt-prepare",
)  # fmt: skip
ON_T4 = ("trt-build", "measure-runtimes", "choose-runtime", "validate", "bench", "package")
WAITING = {"trt-build": "waiting", **dict.fromkeys(ON_T4[1:], "skipped")}
CACHED = dict.fromkeys((*ANYWHERE, *ON_T4), "cached")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The machine with the GPU, ONNX Runtime for GPUs and TensorRT."""
    return FakeT4(None, tmp_path_factory.mktemp("t4") / "machine", first=[copied()], cuda=True)


def project_in(folder, *further):
    """Make a project with a model whose Gelu is fused for ONNX Runtime alone; nodes in `further` make y of z."""
    gpu_project.project_in(folder)
    (folder / PATH).write_text(RECIPE)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Div", ["a", "root"], ["b"]),
        helper.make_node("Erf", ["b"], ["c"]),
        helper.make_node("Add", ["c", "one"], ["d"]),
        helper.make_node("Mul", ["a", "d"], ["e"]),
        helper.make_node("Mul", ["e", "half"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["g"]),
        helper.make_node("Softmax", ["g"], ["z" if further else "y"]),
        *further,
    ]
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5}
    weights = [graphs.weight("w", 8, 16), graphs.weight("v", 16, 4, seed=1)]
    weights += [numpy_helper.from_array(np.float32(each), name) for name, each in numbers.items()]
    ends = [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, ["batch", 4])]
    onnx.save(graphs.graph(nodes, *ends, weights), folder / "recipes" / "model.onnx")
    return folder


@pytest.fixture(scope="module")
def template(tmp_path_factory, machine):
    """A project built on the laptop as far as that goes, then on the machine with the GPU; and what was built where."""
    folder = project_in(tmp_path_factory.mktemp("auto") / "project")
    laptop = quick(folder)
    here = laptop.states(PATH, expect=3)
    waiting = laptop("build", PATH, "--waiting").stdout
    there = machine.at(folder).states(PATH)
    return folder, here, waiting, there


@pytest.fixture
def built(template, tmp_path):
    """The project, on the laptop."""
    shutil.copytree(template[0], tmp_path / "copy", copy_function=shutil.copy2)
    return quick(tmp_path / "copy")


@pytest.fixture
def gpu_machine(built, machine):
    return machine.at(built.folder)


def test_the_laptop_builds_the_graphs_of_all_candidates_and_waits_with_the_rest(template):
    _, here, waiting, there = template
    assert here == {**dict.fromkeys(ANYWHERE, "built"), **WAITING}
    assert there == {**dict.fromkeys(ANYWHERE, "cached"), **dict.fromkeys(ON_T4, "built")}
    assert "T4 (sm_75) with onnxruntime-gpu and tensorrt 10.x: 4 jobs" in waiting
    assert "T4 (sm_75) with tensorrt 10.x" not in waiting


def test_the_fastest_runtime_is_that_of_the_package_and_the_report_names_the_gpu(built):
    variant = built.shown(PATH)
    choice = variant["runtime"]
    assert choice["order"] == ["onnxruntime", "tensorrt"]
    assert choice["gpu"] == "Tesla T4"
    lead = choice["candidates"]["tensorrt"]["lead"]
    assert choice["runtime"] == ("tensorrt" if lead["interval"][0] > 1 else "onnxruntime")
    model = {"onnxruntime": "model.onnx", "tensorrt": "model.plan"}[choice["runtime"]]
    assert (built.folder / "build" / "net" / "net" / "1" / model).is_file()
    text = built("show", PATH, expect=0).stdout
    assert f"auto -> {choice['runtime']}" in text
    assert "at 1 shape on Tesla T4" in text
    assert f"-> {choice['runtime']}" in built("why", PATH, "choose-runtime", expect=0).stdout


def test_both_machines_are_up_to_date(built, gpu_machine):
    assert built.states(PATH) == CACHED
    assert gpu_machine.states(PATH) == CACHED


def test_the_lock_keeps_the_choice_and_a_laptop_measures_nothing_again(built, gpu_machine):
    gpu_machine("lock", PATH, expect=0)
    before = built.shown(PATH)["runtime"]
    assert f"runtime: {before['runtime']}" in (built.folder / "recipes" / "net.lock").read_text()
    assert built.states(PATH, "--locked") == CACHED
    records = (built.folder / "cache" / "records").iterdir()
    [record] = [path for path in records if "measure_runtimes" in path.read_text()]
    record.unlink()
    assert gpu_machine.states(PATH, "--locked") == CACHED
    assert built.shown(PATH)["runtime"] == before


def test_a_step_is_forced_and_explained_for_every_candidate(built):
    assert set(built.why(PATH, "quantize")) == {"quantize", "quantize@tensorrt"}
    assert set(built.why(PATH, "quantize@tensorrt")) == {"quantize@tensorrt"}
    again = built.states(PATH, "--force", "quantize")
    assert again == {**CACHED, "quantize": "built", "quantize@tensorrt": "built"}
    assert "quantize@tensorrt" in built.states(PATH, "--to", "quantize")


def test_a_model_that_tensorrt_cannot_read_is_packaged_for_onnx_runtime(tmp_path, machine, template):
    """The fake refuses operators that the matrix of TensorRT's parser does not have."""
    square = [helper.make_node("Constant", [], ["square"], value_ints=[0, 2, 2])]
    square += [helper.make_node("Reshape", ["z", "square"], ["m"]), helper.make_node("Det", ["m"], ["det"])]
    square += [helper.make_node("Constant", [], ["last"], value_ints=[1])]
    square += [helper.make_node("Unsqueeze", ["det", "last"], ["u"]), helper.make_node("Add", ["u", "z"], ["y"])]
    folder = project_in(tmp_path / "project", *square)
    there = machine.at(folder)
    assert set(there.states(PATH).values()) == {"built"}
    choice = there.shown(PATH)["runtime"]
    assert choice["runtime"] == "onnxruntime"
    why = "rejected tensorrt: cannot be built: TensorRT does not know the operator Det"
    assert why in there("show", PATH, expect=0).stdout
    done = there("build", PATH, "--set", "target.runtime=tensorrt", expect=4)
    assert "TensorRT cannot have this model" in done.stderr


def test_a_recipe_without_the_section_tensorrt_does_not_measure_it(built):
    states = built.states(PATH, "--set", "tensorrt=null", expect=3)
    assert "trt-build" not in states
    assert states["measure-runtimes"] == "waiting"
