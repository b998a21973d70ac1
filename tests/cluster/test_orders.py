"""Orders and answers travel as JSON."""

import json

import pytest
from small_builds import project_in, variant
from toy import Begin

from engine import digest
from engine.builder.sources import Resolved, resolve
from engine.cluster.orders import JobOrder, NodeAnswer, Renewal, Sender, SentJob, SentSource
from engine.step import Source
from engine.store.store import Store


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


class Pushes:
    """A remote that takes everything."""

    def push_new(self, record, *, earlier):
        self.last = record

    def wait(self):
        return None


def test_images_travel_with_their_names_and_give_the_same_rows(tmp_path):
    store = Store(tmp_path / "store")
    for name in ("cat/1.png", "2.png", "notes.txt"):
        (tmp_path / "photos" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "photos" / name).write_text(name)
    (tmp_path / "photos" / "val.jsonl").write_text('{"image": "cat/1.png"}\n')
    for place, sent in (
        ("photos", {"photos/2.png", "photos/cat/1.png"}),
        ("photos/val.jsonl", {"cat/1.png", "val.jsonl"}),
    ):
        source = Source(uri=f"file:{tmp_path}/{place}", part="samples")
        found = resolve(source, digest_file=digest.of_file, commits={})
        ordered = Sender(store, Pushes())._sent(found, found.location)
        artifact = store.artifact_path(store.find(ordered.key).artifact)
        assert set(digest.walk(artifact)) == sent
        there = resolve(
            Source(uri=f"file:{artifact / ordered.name}", part="samples"), digest_file=digest.of_file, commits={}
        )
        assert (
            there.rows("samples")
            == found.rows("samples")
            == Resolved(ordered.row, "", parts=ordered.parts).rows("samples")
        )
