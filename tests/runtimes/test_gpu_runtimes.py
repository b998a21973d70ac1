import pytest

from engine.machine import cuda, shared_libraries
from engine.runtimes import gpu_runtimes


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
def test_without_a_driver_no_runtime_works_and_each_says_what_else_it_lacks():
    lacks = gpu_runtimes.table(lambda name: name != "onnxruntime-gpu")
    assert all(reasons[0].startswith("an NVIDIA driver") for reasons in lacks.values())
    assert "onnxruntime-gpu" in lacks["onnxruntime, provider: cuda"]
    assert "libnvinfer.so.10" in lacks["onnxruntime, provider: tensorrt"]
    assert "tensorrt" not in lacks["tensorrt"]


def test_with_a_driver_and_all_packages_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(cuda, "devices", lambda: ("a GPU",))
    monkeypatch.setattr(gpu_runtimes, "_can_import", lambda _: True)
    monkeypatch.setattr(shared_libraries, "is_here", lambda _: True)
    assert set(map(tuple, gpu_runtimes.table(lambda _: True).values())) == {()}
    assert gpu_runtimes.table(lambda name: name != "tensorrt")["tensorrt"] == ["tensorrt"]


def test_a_package_inside_one_that_is_not_there_is_not_found():
    assert not gpu_runtimes._can_import("no_such_package.inner")
    assert gpu_runtimes._can_import("json.decoder")


def test_the_doctor_tells_of_every_runtime(capsys):
    from engine import commands
    from engine.commands import doctor

    doctor.run(commands.parse(["doctor"]))
    printed = capsys.readouterr().out
    assert [way in printed for way in gpu_runtimes.table(bool)] == [True] * 5
