"""How an engine is served by Triton."""

import executions
import passports

from engine.runtimes.tensorrt import passport, triton
from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents

EXECUTION = executions.execution(runtime="tensorrt", cuda_graph=True)


def tensor(*shape):
    return EngineTensor(dtype="float32", shape=shape)


def test_a_cuda_graph_has_the_shape_of_every_input_also_of_one_without_a_free_axis(tmp_path):
    inputs = {"x": tensor("batch", 4), "table": tensor(3, 4)}
    profile = {"x": Extents(min=(1, 4), opt=(2, 4), max=(8, 4))}
    passport.save(tmp_path, passports.make(inputs=inputs, profiles=(profile,)))
    [graph] = triton.served(tmp_path, EXECUTION, tmp_path).cuda_graphs
    assert graph.usual == {"x": (2, 4), "table": (3, 4)}
    assert graph.least == {"x": (1, 4), "table": (3, 4)}


def test_an_engine_without_a_free_axis_has_one_cuda_graph(tmp_path):
    passport.save(tmp_path, passports.make(inputs={"x": tensor(1, 4)}))
    [graph] = triton.served(tmp_path, EXECUTION, tmp_path).cuda_graphs
    assert graph.usual == {"x": (1, 4)}
