"""Facts for AOTInductor: the version of the C++ compiler on the PATH, and the major version of the driver."""

import pytest

from engine.builder import facts
from engine.machine import local_gpus
from engine.machine.local_gpus import LocalGpu

DEBIAN, CONDA = "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "x86_64-conda-linux-gnu-c++ (conda-forge gcc 14.3.0-5) 14.3.0"


@pytest.mark.parametrize(("line", "version"), [(DEBIAN, "12.2.0"), (CONDA, "14.3.0"), ("strange", "strange")])
def test_the_version_of_the_compiler_is_a_fact_that_watches_the_program(tmp_path, monkeypatch, line, version):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts.of("cxx.version").value == "missing"
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "g++"
    program.write_text(f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/empty:{program.parent}:/usr/bin:/bin")
    known = facts.of("cxx.version")
    assert known.value == version
    assert {str(program), f"{tmp_path}/empty/g++"} <= set(known.paths)


@pytest.mark.parametrize(("driver", "major"), [("580.65.06", "580"), ("580.95.05", "580"), ("590.1", "590")])
def test_of_a_driver_the_major_version_is_a_fact(monkeypatch, driver, major):
    monkeypatch.setattr(local_gpus, "gpus", lambda: (LocalGpu("NVIDIA H100", 90, driver),))
    assert facts.of("gpu.driver.major").value == major
    assert facts.of("gpu.driver").value == driver
