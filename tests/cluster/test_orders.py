"""Orders and answers travel as JSON."""

import json

import pytest
from small_builds import project_in, variant
from toy import Begin

from engine.cluster.orders import JobOrder, NodeAnswer, Renewal, SentJob, SentSource


def test_an_order_comes_back_as_it_was(tmp_path):
    [job] = variant(project_in(tmp_path), Begin(text="hi")).jobs
    source = SentSource("row", key={"code": "c"}, name="model.onnx")
    order = JobOrder(SentJob.of(job), {"code": "1"}, {"text": {"code": "2"}}, {"source": source}, Renewal.PUSH)
    back = JobOrder.decode(order.encode())
    assert back.encode() == order.encode()
    assert back.sources == {"source": source}
    assert back.renewal is Renewal.PUSH
    assert back.job.job().step.text == "hi"


def test_a_node_learns_all_of_a_job_from_its_step(tmp_path):
    [job] = variant(project_in(tmp_path), Begin(text="hi")).jobs
    assert SentJob.of(job).job().traits == job.traits


@pytest.mark.parametrize("change", [{"hermetic": "no"}, {"needs": []}, {"rows": {}}, {"kind": None}])
def test_a_job_with_other_fields_is_refused(tmp_path, change):
    [job] = variant(project_in(tmp_path), Begin(text="hi")).jobs
    fields = json.loads(JobOrder(SentJob.of(job), {}, {}, {}).encode())
    fields["job"] |= change
    with pytest.raises(ValueError, match="not the fields of a job"):
        JobOrder.decode(json.dumps(fields).encode())


def test_bytes_that_are_no_answer_are_refused():
    back = NodeAnswer.decode(NodeAnswer(seconds=1.5, log="x").encode())
    assert (back.seconds, back.log) == (1.5, "x")
    for raw in (b"", b"[]", b'{"other": 1}'):
        with pytest.raises((ValueError, TypeError)):
            NodeAnswer.decode(raw)
