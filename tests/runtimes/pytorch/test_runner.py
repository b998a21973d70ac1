"""PyTorch as a rival: TF32 for products and convolutions alike, which no other contender gets, and usual attention."""

import os
from contextlib import suppress
from types import SimpleNamespace

import executions
import models
import numpy as np
import pytest
import torch

from engine.errors import StepError
from engine.runtimes.execution import Execution
from engine.runtimes.pytorch import runner


@pytest.fixture
def backends():
    """What PyTorch lets users set, with the values of before put back afterwards."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (products.allow_tf32, convolutions.allow_tf32)
    yield torch.backends
    products.allow_tf32, convolutions.allow_tf32 = before


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("tf32", [False, True, None])
def test_tf32_counts_for_products_and_convolutions_of_one_contender_alone(backends, tf32, before):
    threads = torch.get_num_threads()
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = before
    allowed = before if tf32 is None else tf32
    with suppress(KeyError), runner._settings(threads + 1, tf32):
        assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is allowed
        raise KeyError
    assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is before
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("architecture", "attention"), [("bert", "sdpa"), ("deberta-v2", "eager")])
def test_the_model_computes_attention_as_its_users_do(tmp_path, architecture, attention):
    checkpoint = models.checkpoint(tmp_path, architecture, task="text-classification")
    model = runner._loaded(executions.original(checkpoint))
    assert model.model.config._attn_implementation == attention


COMPILER_ERRORS = {
    "InvalidCxxCompiler": (RuntimeError("No working C++ compiler found"), "No working C++ compiler found"),
    "CppCompileError": (RuntimeError("C++ compile error"), "fatal error: Python.h: No such file or directory"),
}


@pytest.fixture(autouse=True)
def _settings(monkeypatch):
    """Put back what a compilation sets for its process."""
    from torch._dynamo import config as tracing
    from torch._inductor import config as compilers

    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    with (
        tracing.patch(recompile_limit=tracing.recompile_limit),
        tracing.patch(accumulated_recompile_limit=tracing.accumulated_recompile_limit),
        compilers.patch({"compile_threads": 1, "cpp.cxx": compilers.cpp.cxx}),
    ):
        yield


@pytest.fixture
def checkpoint(tmp_path):
    return models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification")


@pytest.fixture
def fake_compile(monkeypatch):
    """Put a fake in the place of torch.compile, which returns the module; return the calls of the module it notes."""
    noted = SimpleNamespace(options=[], calls=[], error=None, works=0)

    def compiled(module, **options):
        noted.options.append(options)

        def call(*tensors):
            noted.calls.append((tuple(tensors[0].shape), torch.get_num_threads()))
            if noted.error is not None and len(noted.calls) > noted.works:
                raise noted.error
            return module(*tensors)

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    return noted


def rival(checkpoint, scratch, mode="default", threads=1, **original):
    original = executions.original(checkpoint, compile=mode, scratch=scratch, **original)
    name = "pytorch-fp32-compile"
    return runner.rival(original, name=name, precision="fp32", execution=Execution(), threads=threads)


def inputs(length):
    return {
        name: np.ones((1, length), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_each_shape_is_compiled_for_itself_before_it_is_measured(checkpoint, tmp_path, fake_compile, capsys, mode):
    compiled = rival(checkpoint, tmp_path, mode)
    assert fake_compile.options == [{"mode": mode, "dynamic": False}]
    compiled.prepare(inputs(8))
    compiled.prepare(inputs(16))
    times = runner.CALLS
    assert fake_compile.calls == [((1, 8), 1)] * times + [((1, 16), 1)] * times
    compiled.prepare(inputs(8))
    output = capsys.readouterr().out
    assert "TF32" not in output  # only a GPU has it
    lines = [line for line in output.splitlines() if "was compiled for" in line]
    assert [line.partition(" in ")[0] for line in lines] == [
        f"pytorch-fp32-compile was compiled for input_ids [1, {length}], attention_mask [1, {length}], "
        f"token_type_ids [1, {length}]"
        for length in (8, 16)
    ]


def test_compilers_run_in_the_job_and_write_to_its_folder(checkpoint, tmp_path, fake_compile):
    from torch._dynamo import config as tracing
    from torch._inductor import config as compilers

    rival(checkpoint, tmp_path)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "torchinductor")
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "triton")
    assert compilers.compile_threads == 1
    assert tracing.recompile_limit > 256, "a recipe measures at most 256 shapes"


@pytest.mark.parametrize("kind", COMPILER_ERRORS)
def test_without_a_compiler_the_error_says_what_to_install(checkpoint, tmp_path, fake_compile, kind):
    raised, fact = COMPILER_ERRORS[kind]
    fake_compile.error = type(kind, (RuntimeError,), {"output": "" if kind == "InvalidCxxCompiler" else fact})(raised)
    compiled = rival(checkpoint, tmp_path)
    with pytest.raises(StepError, match="pytorch-fp32-compile cannot be compiled") as caught:
        compiled.prepare(inputs(8))
    assert fact in caught.value.facts[0]
    assert "python3-dev" in caught.value.hint


@pytest.mark.parametrize("works", [0, 1], ids=["compiling", "capturing"])
@pytest.mark.parametrize(
    "error", [AssertionError("no lowering"), TypeError("no lowering"), RuntimeError("no lowering")]
)
def test_any_error_of_a_compiler_leaves_the_rival_out(checkpoint, tmp_path, fake_compile, error, works):
    fake_compile.error, fake_compile.works = error, works
    compiled = rival(checkpoint, tmp_path)
    with pytest.raises(StepError, match="pytorch-fp32-compile cannot run") as caught:
        compiled.prepare(inputs(8))
    assert "no lowering" in str(caught.value.facts)


def test_an_error_of_the_program_itself_is_not_hidden_for_a_rival_in_eager_mode(checkpoint, tmp_path, monkeypatch):
    eager = rival(checkpoint, tmp_path, mode=None)
    monkeypatch.setattr(torch, "inference_mode", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        eager.prepare(inputs(8))


def test_a_model_that_generates_text_is_not_compiled(checkpoint, tmp_path):
    with pytest.raises(StepError, match=r"generates text is not measured with torch\.compile"):
        rival(checkpoint, tmp_path, new_tokens=8)
