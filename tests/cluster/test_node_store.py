"""The store in which a node works."""

import os
import time

import pytest
from stores import put

from engine.cluster.node import STORE, NodeStore
from engine.store.stat_cache import row_of
from engine.store.store import Store


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setenv(STORE, str(tmp_path / "node"))
    return NodeStore()


def test_a_node_leaves_the_writing_to_the_disk_to_the_system(node, tmp_path):
    assert not node.store.flushes
    assert Store(tmp_path / "other").flushes


def test_a_node_that_starts_again_trusts_no_file_that_it_has_not_read(node):
    key = {"code": "one"}
    record = put(node.store, key, {"file": "content"})
    place = node.store.artifact_path(record.artifact) / "file"
    time.sleep(0.1)  # the digest of a file that has just changed is not remembered
    assert node.store.find(key) is not None
    row = row_of(os.lstat(place))
    assert node.store.contents.known(row) == record.files["file"][1]
    assert NodeStore().store.contents.known(row) is None


def test_workers_that_may_have_imported_an_older_tool_run_no_further_job(node):
    node.heed({"numpy": "1", "onnx": "1"})
    workers = node.executor
    node.heed({"numpy": "1"})
    node.heed({"onnx": "1", "sympy": "1"})
    assert node.executor is workers
    node.heed({"numpy": "2"})
    assert node.executor is not workers
    node.forget_executor()
