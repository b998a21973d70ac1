"""What bench measures is what is packaged: an independent loop on the package's files, with the package's options."""

import time

import graphs
import numpy as np
import onnx
import packaged_call
import pytest
from onnx import helper

from engine import api
from engine.kit.bench import interleaving
from engine.kit.bench.contenders import BuiltModel
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import Serving
from engine.runtimes.execution import Execution
from engine.steps.bench import Bench
from engine.steps.package import Package
from engine.store.store import Store

WITHIN = 0.05
"""The ratio of the medians may differ from 1 by so much."""
REST = 0.06
"""Seconds before a turn, in which threads of the turn before fall asleep."""
TURN = 0.03
"""Seconds of a turn; a call in each at least."""
WIDTH = 256
RESAMPLES = 2000


def independent(call, count, clock):
    """Return the median seconds of `count` calls in a loop: as many as bench made, since a busy machine favours few."""
    time.sleep(REST)
    for _ in range(2):
        call()
    took = []
    for _ in range(count):
        begin = clock()
        call()
        took.append(clock() - begin)
    return float(np.median(took))


def ratio(runner, inputs, call, *, most, clock=time.perf_counter):
    """Return the 95 % interval of bench's median over that of the loop, from at most so many rounds of turns.

    The CPU time of a process with one thread is a clock that a busy machine hardly disturbs.
    """
    budget = Budget(seconds=TURN, warm_up=TURN / 2, rounds=1)
    contender, ratios, count = Contender.in_process(runner, ours=True), [], 1
    draws = np.random.default_rng(0)
    while True:
        for turn in range(8):
            other = independent(call, count, clock) if turn % 2 else None
            [timed] = interleaving.measure([contender], inputs, budget, clock=clock)
            [bench] = timed.hot
            count = len(bench)
            ratios.append(float(np.median(bench)) / (other or independent(call, count, clock)))
        medians = np.median(draws.choice(ratios, (RESAMPLES, len(ratios))), axis=1)
        low, high = np.quantile(medians, [0.025, 0.975])
        if high - low <= WITHIN or len(ratios) >= most:
            return low, high


def agrees(interval):
    """Whether a ratio within 5 % of 1 is possible; a noisy machine widens the interval."""
    low, high = interval
    return low <= 1 + WITHIN and high >= 1 - WITHIN


def products():
    """Return a graph whose products of weights ONNX Runtime computes in each call, unless it may optimize."""
    weights = np.random.default_rng(0).standard_normal((2, WIDTH, WIDTH), dtype=np.float32) / WIDTH
    nodes = [helper.make_node("MatMul", ["a", "b"], ["c0"])]
    nodes += [helper.make_node("MatMul", [f"c{n}", "b"], [f"c{n + 1}"]) for n in range(8)]
    nodes += [helper.make_node("MatMul", ["x", "c8"], ["h"]), helper.make_node("MatMul", ["h", "b"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", WIDTH]) for name in "xy")
    initializers = [onnx.numpy_helper.from_array(each, name) for each, name in zip(weights, "ab", strict=True)]
    graph = helper.make_graph(nodes, "products", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_packaged_graph_runs_as_bench_ran_it_and_another_option_is_noticed(tmp_path):
    model = graphs.write(tmp_path / "model", products())
    serving = Serving(model_name="m", ensemble="m_text", tokenizer=False, postprocess=False, threads=1)
    Package(serving=serving).run(tmp_path / "package", validated=model, checkpoint=model)
    folder, inputs = tmp_path / "package" / "m", bench_inputs.draw(products(), {"batch": 64})
    runner = BuiltModel(model, Execution(), "ours", threads=1).runner()
    assert agrees(ratio(runner, inputs, packaged_call.call(folder, inputs), most=16, clock=time.process_time))
    text = (folder / "config.pbtxt").read_text()
    assert "level" not in text
    (folder / "config.pbtxt").write_text(text + "optimization { graph { level: 2 } }\n")
    low, high = ratio(runner, inputs, packaged_call.call(folder, inputs), most=8, clock=time.process_time)
    assert not agrees((low, high)), f"without optimizations, {low:.3f} to {high:.3f}"


CASES = {
    "int8": ("minilm_cpu.yaml", (), "minilm"),
    "fp32": ("minilm_cpu.yaml", ("--set", "precision=fp32"), "minilm"),
    "openvino": ("minilm_openvino.yaml", (), "minilm_openvino_{batch}x{sequence}"),
}


@pytest.mark.slow
@pytest.mark.whole("test_a_packaged_graph_runs_as_bench_ran_it_and_another_option_is_noticed")
@pytest.mark.parametrize("name", CASES)
def test_the_packages_of_recipes_run_as_bench_ran_them(name, shipped):
    if name == "openvino":
        pytest.importorskip("openvino", reason="OpenVINO is not installed (the extra `openvino`)")
    file, options, model = CASES[name]
    words = (f"recipes/{file}", *options)
    shipped("build", *words, "-o", "build", expect=0)
    shown = shipped.shown(*words)
    assert not [each for each in shown["warnings"] if "package.triton.threads" in each]
    assert {start["runtime"] for start in shown["starts"] if "load_s" in start} == {
        row["runtime"] for row in shown["bench"]
    }
    [planned] = api.plan(shipped.folder / "recipes" / file, set=list(options[1:]))
    [bench] = [job.step for job in planned.jobs if isinstance(job.step, Bench)]
    artifacts = {step["job"]: step["artifact"] for step in shown["steps"]}
    directory = Store(shipped.folder / "cache").artifact_path(artifacts["validate"])
    exported = Store(shipped.folder / "cache").artifact_path(artifacts["export"])
    runner = BuiltModel(directory, bench.execution, "ours", bench.threads).runner()
    [package] = {path.parent.parent for path in (shipped.folder / "build").glob("*/*/config.pbtxt")}
    intervals = {}
    for sizes in bench.shapes:
        inputs = bench_inputs.draw(onnx_files.load_graph(exported), sizes)
        call = packaged_call.call(package / model.format(**sizes), inputs)
        intervals[str(sizes)] = ratio(runner, inputs, call, most=200)
    assert len(intervals) == 2
    assert all(map(agrees, intervals.values())), intervals
