"""The accuracy of a built model in its runtime: the same numbers for `validate` and for the choice of a runtime."""

import graphs
import numpy as np

from engine.kit.accuracy import built
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort


def test_a_model_is_compared_with_the_reference_counted_and_weighed(tmp_path):
    graph = graphs.write(tmp_path / "net", graphs.layers(16, 32))
    x = {"x": np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)}
    cases.save([Case("line 1", "", "sample", x, ort.run(ort.session(graph, threads=1), x))], tmp_path / "reference")
    report = built.measure(
        graph, Execution(), reference=tmp_path / "reference", checkpoint=graph, task=None, opt={"batch": 2}
    )
    assert report.cosine.worst > 0.999999
    assert report.work.shares == {"fp32": 1.0}
    assert report.work.shape == {"batch": 2}
    assert report.bytes == (graph / "model.onnx").stat().st_size
