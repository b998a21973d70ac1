"""Orders and answers travel as JSON."""

import pytest
from small_builds import project_in, variant
from toy import Begin

from engine.cluster.orders import JobOrder, NodeAnswer, SentSource, fields_of, job_of


def test_an_order_comes_back_as_it_was(tmp_path):
    [job] = variant(project_in(tmp_path), Begin(text="hi")).jobs
    source = SentSource("row", key={"code": "c"}, name="model.onnx")
    order = JobOrder(fields_of(job), {"code": "1"}, {"text": {"code": "2"}}, {"source": source})
    back = JobOrder.decode(order.encode())
    assert back.encode() == order.encode()
    assert back.sources == {"source": source}
    assert job_of(back.job).step.text == "hi"


def test_bytes_that_are_no_answer_are_refused():
    back = NodeAnswer.decode(NodeAnswer(seconds=1.5, log="x").encode())
    assert (back.seconds, back.log) == (1.5, "x")
    for raw in (b"", b"[]", b'{"other": 1}'):
        with pytest.raises((ValueError, TypeError)):
            NodeAnswer.decode(raw)
