"""Libraries are found where the system's loader looks, and where pip puts them."""

import shutil
import subprocess
import sys

import pytest

from engine.machine import shared_libraries

LIBRARY = "libm.so.6"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return the folder, still empty, of a package with TensorRT's libraries."""
    folder = tmp_path / "tensorrt_libs"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_library_of_the_system_is_here():
    assert shared_libraries.is_here(LIBRARY)
    assert shared_libraries.load(LIBRARY).cos
    assert shared_libraries.known(LIBRARY).value == "yes"


def test_a_library_that_nobody_has_is_not_here_and_the_answer_depends_on_where_it_may_appear(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:")
    assert not shared_libraries.is_here("libnowhere.so.7")
    with pytest.raises(OSError, match=r"libnowhere\.so\.7"):
        shared_libraries.load("libnowhere.so.7")
    known = shared_libraries.known("libnowhere.so.7")
    assert (known.value, known.variables) == ("no", ("LD_LIBRARY_PATH",))
    assert {"/etc/ld.so.cache", str(tmp_path / "libnowhere.so.7")} <= set(known.paths)


def test_a_library_that_pip_installed_is_here_and_loads(package):
    places = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    of_system = next(line.split(" => ")[1] for line in places if line.strip().startswith(LIBRARY))
    shutil.copy(of_system, package / "libonly_pip_has_it.so.1")
    assert shared_libraries.is_here("libonly_pip_has_it.so.1")
    assert shared_libraries.load("libonly_pip_has_it.so.1").cos
    assert str(package / "libonly_pip_has_it.so.1") in shared_libraries.known("libonly_pip_has_it.so.1").paths


def test_a_library_whose_own_needs_are_absent_is_here_all_the_same(tmp_path):
    """Whoever loads it may load what it needs before: onnxruntime-gpu does so with the libraries of CUDA."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    for name, needs in (("liblater.so.1", []), ("libfirst.so.1", ["-Wl,--no-as-needed", "liblater.so.1"])):
        line = ["gcc", "-shared", "-fPIC", "-xc", "/dev/null", "-xnone", f"-Wl,-soname,{name}", "-o", name, *needs]
        subprocess.run(line, cwd=tmp_path, check=True)
    (tmp_path / "liblater.so.1").unlink()
    asks = "from engine.machine import shared_libraries as s; print(s.is_here('libfirst.so.1'));s.load('libfirst.so.1')"
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", asks], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"
    assert "OSError: liblater.so.1: cannot open" in done.stderr


def test_a_library_is_looked_for_and_not_loaded(package, monkeypatch):
    """TensorRT's has 500 MB. On macOS and with musl, the loader's message does not tell what is absent, either."""
    monkeypatch.setattr(shared_libraries.ctypes, "CDLL", None)
    assert shared_libraries.is_here(LIBRARY)
    assert not shared_libraries.is_here("libnowhere.so.7")


def test_without_the_loaders_list_a_library_is_where_its_folders_are(monkeypatch, tmp_path):
    """As with musl, which has no such list."""
    monkeypatch.setattr(shared_libraries, "_CACHE", str(tmp_path / "none"))
    monkeypatch.setattr(shared_libraries, "_FOLDERS", (str(tmp_path),))
    assert not shared_libraries.is_here(LIBRARY)
    (tmp_path / LIBRARY).touch()
    assert shared_libraries.is_here(LIBRARY)


def test_a_library_that_is_listed_and_was_removed_is_not_here(monkeypatch, tmp_path):
    place, cache = tmp_path / "lib-gone.so.1", tmp_path / "cache"
    cache.write_bytes(b"glibc-ld.so.cache1.1" + bytes(12) + b"/elsewhere/lib.so\0" + bytes(place) + b"\0libc.so\0")
    monkeypatch.setattr(shared_libraries, "_CACHE", str(cache))
    assert not shared_libraries.is_here("lib-gone.so.1")
    place.touch()
    assert shared_libraries.is_here("lib-gone.so.1")
    assert not shared_libraries.is_here("gone.so.1")
