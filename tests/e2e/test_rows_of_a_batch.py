"""Packages of models that answer a row otherwise beside other rows, on a real Triton server with many clients."""

import json
from concurrent.futures import ThreadPoolExecutor

import graphs
import models
import numpy as np
import pytest
import torch
import transformers
import triton_server
from onnx import helper, numpy_helper
from triton_server import infer, texts

from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.triton.serving import Serving
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.package import Package
from engine.steps.reference import Reference
from engine.steps.validate import Validate

pytestmark = [pytest.mark.slow, pytest.mark.whole("test_query.py asks a real server for a package of each kind")]

CLASSES, TAGS = "text-classification", "token-classification"
CLIENTS = 32
WORDS = "the river ships are slow and a film was not very good in the city"
TEXTS = tuple(" ".join(WORDS.split()[: 1 + number % 13]) for number in range(CLIENTS))
AUTO = {CLASSES: transformers.AutoModelForSequenceClassification, TAGS: transformers.AutoModelForTokenClassification}
# name: architecture, task, the side on which its tokenizer pads, and which rows its package joins
CHECKPOINTS = {
    "bert": ("bert", CLASSES, "right", RowBatching.TOGETHER),
    "electra_left": ("electra", CLASSES, "left", RowBatching.EQUAL_LENGTHS),
    "roberta_left": ("roberta", CLASSES, "left", RowBatching.EQUAL_LENGTHS),
    "tags_left": ("albert", TAGS, "left", RowBatching.EQUAL_LENGTHS),
}
ONNX = {"no_mask": RowBatching.EQUAL_LENGTHS, "joined": RowBatching.ALONE}


def checkpoint(folder, architecture, task, side):
    models.checkpoint(folder, architecture, task=task, num_labels=3)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "padding_side": side}))
    return folder


def over_the_batch():
    """x [batch, 8] -> y [batch, 8], the softmax over the rows."""
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(8, 8)).astype("f4"), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"], axis=0)]
    return graphs.graph(nodes, [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, ["batch", 8])], [weight])


def over_texts(folder):
    """A text classifier as an ONNX file, whose logits are less their mean over the texts of a batch."""
    import onnx

    path = models.onnx_text(folder / "model.onnx")
    model = onnx.load(path)
    model.graph.node[-1].output[0] = "own"
    model.graph.node.append(helper.make_node("ReduceMean", ["own"], ["mean"], axes=[0], keepdims=1))
    model.graph.node.append(helper.make_node("Sub", ["own", "mean"], ["less"]))
    model.graph.node.append(helper.make_node("Add", ["less", "own"], ["logits"]))
    onnx.save(model, path)


def packaged(folder, name, source, model, task):
    """Measure and package a model as a build does; return which rows it joins."""
    own = {"model_name": name, "ensemble": f"{name}_text", "task": task}
    Reference(task=task, onnx=model == source).run(folder / f"{name}-reference", checkpoint=source)
    validated = folder / f"{name}-validated"
    report = Validate(task=task).run(
        validated, compiled=model, reference=folder / f"{name}-reference", checkpoint=source
    )
    joins = batching.read(validated)
    assert (joins.note() in report.notes) == (joins is not RowBatching.TOGETHER)
    serving = Serving(largest={"batch": 8, "sequence": 64}, **own)
    Package(serving=serving).run(folder / "packages" / name, validated=validated, checkpoint=source)
    return joins


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, (architecture, task, side, _) in CHECKPOINTS.items():
        checkpoint(folder / name, architecture, task, side)
    models.onnx_text(folder / "no_mask" / "model.onnx", mask=False)
    over_texts(folder / "joined")
    for name in ONNX:
        models.save_tokenizer(folder / name)
    graphs.write(folder / "softmax", over_the_batch())
    return folder


@pytest.fixture(scope="module")
def server(sources, environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    for name, (_, task, _, expected) in CHECKPOINTS.items():
        Export(task=task).run(folder / f"{name}-exported", checkpoint=sources / name)
        assert packaged(folder, name, sources / name, folder / f"{name}-exported", task) is expected
    for name, expected in ONNX.items():
        assert packaged(folder, name, sources / name, sources / name, CLASSES) is expected
    tensors = folder / "softmax-validated"
    Reference(onnx=True, profiles=({"batch": {"min": 1, "opt": 2, "max": 8}},)).run(
        folder / "softmax-reference", checkpoint=sources / "softmax"
    )
    Validate().run(
        tensors, compiled=sources / "softmax", reference=folder / "softmax-reference", checkpoint=sources / "softmax"
    )
    serving = Serving(model_name="softmax", ensemble="softmax_tensors", largest={"batch": 8})
    Package(serving=serving).run(folder / "packages" / "softmax", validated=tensors, checkpoint=sources / "softmax")
    with triton_server.serving(environment, *(folder / "packages").iterdir()) as running:
        yield running


def at_once(function, values):
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(function, values))


def original(folder, name):
    """Return the function that answers one text alone: a checkpoint by transformers, an ONNX file by ONNX Runtime."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if name in CHECKPOINTS:
        model = AUTO[CHECKPOINTS[name][1]].from_pretrained(folder).eval()

        def answer(each):
            with torch.inference_mode():
                return model(**tokenizer(each, return_tensors="pt")).logits[0].numpy()

        return answer
    session = ort.unoptimized(folder)
    taken = {each.name for each in session.get_inputs()}
    return lambda each: ort.run(
        session, {key: array for key, array in tokenizer(each, return_tensors="np").items() if key in taken}
    )["logits"][0]


@pytest.mark.parametrize("name", [*CHECKPOINTS, *ONNX])
def test_each_of_many_clients_gets_the_answer_to_its_text_alone(server, sources, name):
    alone = original(sources / name, name)
    expected = {each: alone(each) for each in set(TEXTS)}
    for each, answer in zip(
        TEXTS, at_once(lambda each: infer(server, f"{name}_text", TEXT=texts(each)), TEXTS), strict=True
    ):
        assert np.allclose(answer["logits"][0], expected[each], atol=1e-4)
    mixed = [TEXTS[start : start + 3] for start in range(0, CLIENTS, 2)]
    for rows, answer in zip(
        mixed, at_once(lambda rows: infer(server, f"{name}_text", TEXT=texts(*rows)), mixed), strict=True
    ):
        for number, each in enumerate(rows):
            own = expected[each]
            given = answer["logits"][number]
            assert np.allclose(given[: len(own)], own, atol=1e-4)


def test_a_refused_text_is_the_client_s_mistake_behind_the_splitter_too(server):
    with pytest.raises(Exception, match="at most") as caught:
        infer(server, "electra_left_text", TEXT=texts("good", "good " * 20_000))
    assert "INVALID_ARGUMENT" in str(caught.value)


def test_tensors_of_several_clients_are_not_joined(server, sources):
    rows = [np.random.default_rng(number).normal(size=(1, 8)).astype("f4") for number in range(CLIENTS)]
    assert all(np.allclose(each["y"], 1) for each in at_once(lambda row: infer(server, "softmax", x=row), rows))
