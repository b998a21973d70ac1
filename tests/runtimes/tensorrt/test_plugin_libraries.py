"""Libraries of plugins: beside the engine, in the package, and loaded before the engine."""

import engines
import executions
import graphs
import pytest

from engine.errors import StepError
from engine.recipe.values import Range
from engine.runtimes.requirements import on
from engine.runtimes.tensorrt import passport, plugin_libraries, triton
from engine.runtimes.tensorrt import runner as trt_runner
from engine.steps.trt_build import TrtBuild
from engine.steps.trt_prepare import TrtPrepare

EXECUTION = executions.execution(runtime="tensorrt", hardware=on(["T4"], tool="tensorrt"))


@pytest.fixture(params=[False, True], ids=["ordinary", "version-compatible"])
def engine(fake_tensorrt, tmp_path, request):
    """The folder of an engine that needs the plugin MyRelu; a version-compatible engine holds the plugin."""
    model = graphs.layers()
    model.graph.node[2].op_type = "MyRelu"
    source = graphs.write(tmp_path / "m", model)
    (tmp_path / "MyRelu.so").write_bytes(b"library")
    out = tmp_path / "job" / "out"
    out.parent.mkdir()
    batch = {"batch": Range(min=1, opt=2, max=8)}
    build = TrtBuild(runtime="tensorrt", devices=("T4",), version_compatible=request.param)
    engines.EngineSteps(TrtPrepare(profiles=(batch,)), build).run(out, checked=source, plugins_0=tmp_path / "MyRelu.so")
    return out


def test_the_runner_loads_the_engine_with_its_plugins_and_a_second_time(engine):
    for _ in range(2):  # TensorRT refuses a library whose plugins are registered
        assert trt_runner.runner(engine, EXECUTION, name="built").name == "built"


def test_the_package_ships_what_the_engine_does_not_hold(engine, tmp_path):
    shipped = [] if passport.load(engine).holds_code else ["plugins/MyRelu.so"]
    assert [name for name in triton.served(engine, EXECUTION, tmp_path).files if "plugins" in name] == shipped
    (tmp_path / "repository").mkdir()
    folder = (tmp_path / "repository" / "m").resolve()
    folder.mkdir()
    engine.rename(folder / "1")
    assert triton.built_by(folder) == ("10.13.0.35", not shipped, tuple(f"1/{name}" for name in shipped))


def test_a_library_that_is_missing_is_named(engine):
    for path in engine.glob("plugins/*"):
        path.unlink()
        with pytest.raises(StepError, match=r"plugin library MyRelu\.so"):
            trt_runner.runner(engine, EXECUTION, name="built")


def test_two_libraries_of_one_name_are_refused(tmp_path):
    with pytest.raises(StepError, match="same name"):
        plugin_libraries.keep(tmp_path, [tmp_path / "a" / "x.so", tmp_path / "b" / "x.so"], inside=False)
