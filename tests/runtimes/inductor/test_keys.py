"""The keys of a compiled model: what changes of the machine compile it again, and which only validate it again."""

import pretended
import pytest

from engine.api import plan
from engine.builder.lookup import Lookup
from engine.builder.sources import Resolved
from engine.machine import local_gpus, tools
from engine.machine.local_gpus import LocalGpu
from engine.store.store import Store

RECIPE = (
    "name: m\nmodel: {{source: model, task: text-classification}}\ntarget: {{device: {device}, runtime: inductor}}\n"
)
COMPILED, VALIDATED = "inductor-build", "validate"


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """Return the keys of the compilation and the validation on a machine with a driver, for a recipe's device."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(Lookup, "source", lambda self, source: Resolved("content", "place"))

    def of(*, device="H100", driver="580.65.06"):
        gpu = LocalGpu("NVIDIA H100 80GB HBM3", 90, driver)
        monkeypatch.setattr(local_gpus, "gpus", lambda: (gpu,))
        (tmp_path / "r.yaml").write_text(RECIPE.format(device=device))
        [variant] = plan(tmp_path / "r.yaml")
        lookup = Lookup(Store(tmp_path / "cache"))
        jobs = {job.name: job for job in variant.jobs if job.name in (COMPILED, VALIDATED)}
        return {name: lookup.key(job, dict.fromkeys(job.needs, "content")) for name, job in jobs.items()}

    return of


def changed(before, after):
    """Return the rows in which the keys of each job differ."""
    return {name: {row for row in before[name] if before[name][row] != after[name][row]} for name in before}


def test_a_minor_update_of_the_driver_compiles_nothing_and_a_major_one_compiles_again(keys):
    before = keys(driver="580.65.06")
    assert changed(before, keys(driver="580.95.05")) == {COMPILED: set(), VALIDATED: {"facts.gpu.driver"}}
    assert changed(before, keys(driver="590.10"))[COMPILED] == {"facts.gpu.driver.major"}


def test_another_gpu_cuda_compiler_cpu_or_pytorch_compiles_again(keys, monkeypatch):
    before = keys()
    for fact in ("device.name", "cuda.runtime", "cxx.version", "cpu.isa", "triton_language.version"):
        with monkeypatch.context() as patch:
            pretended.fact(patch, fact, "another")
            assert changed(before, keys())[COMPILED] == {f"facts.{fact}"}
    monkeypatch.setattr(tools, "_versions", {**tools._versions, "torch": "2.99.0"})
    assert changed(before, keys())[COMPILED] == {"tools.torch"}


def test_on_a_cpu_the_driver_is_no_row(keys):
    before = keys(device="cpu")
    assert changed(before, keys(device="cpu", driver="590.10")) == {COMPILED: set(), VALIDATED: set()}
    assert "facts.cpu.isa" in before[COMPILED]
    assert not [row for row in before[COMPILED] if row.startswith(("facts.gpu", "facts.device", "facts.cuda"))]
