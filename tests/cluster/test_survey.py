"""What a node answers about the libraries that a job's hardware needs."""

import json
from dataclasses import asdict
from types import SimpleNamespace

from engine.builder.live_rows import LiveRows
from engine.cluster import survey
from engine.cluster.survey import Question
from engine.machine import local_gpus, shared_libraries, tools
from engine.machine.local_gpus import LocalGpu
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES
from engine.step import Device, Hardware
from engine.store.store import Store

PROVIDER = Hardware(devices=(Device(name="T4", sm=75),), tool="onnxruntime-gpu", libraries=TENSORRT_LIBRARIES)


def test_a_node_without_the_libraries_says_which_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(local_gpus, "gpus", lambda: (LocalGpu("Tesla T4", 75, "580.65.06"),))
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", "1.31.1")
    monkeypatch.setattr(shared_libraries, "is_here", lambda _: False)
    needs = SimpleNamespace(hardware=lambda: PROVIDER, tools_used=tuple, variables=(), facts_used=tuple)
    question = json.loads(json.dumps(asdict(Question.about([SimpleNamespace(step=needs)]))))
    answer = survey.take(Question(**question), LiveRows(Store(tmp_path)), remote="", trouble="")
    assert answer.lacks[str(PROVIDER)] == (
        "this machine has Tesla T4 (sm_75), but not libnvinfer.so.10 and libnvonnxparser.so.10 of TensorRT 10, "
        "which onnxruntime-gpu loads"
    )
