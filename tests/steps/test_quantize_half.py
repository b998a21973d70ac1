"""fp16 and bf16 of whole models: close to fp32, and TensorRT-RTX builds what comes out."""

import json

import engines
import graphs
import large_models
import models
import numpy as np
import pytest
import timm_here

from engine.errors import JudgementError, StepError
from engine.kit.inputs import cases, samples
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import calibration
from engine.kit.quantization.half import half_search
from engine.kit.quantization.half.half_search import GOAL
from engine.kit.quantization.report import Inputs
from engine.recipe.image_input import Images
from engine.runtimes.onnxruntime import session as ort
from engine.step import Source
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.reference import Reference
from engine.steps.shape_infer import ShapeInfer
from engine.steps.validate_onnx import ValidateOnnx

TEXTS = "feature-extraction"
TOKENS = {"batch": [1, 2, 4], "sequence": [4, 16, 48]}


def lowered(directory, way="fp16"):
    """What Quantize makes of `directory/shaped`, as it is found by the reference."""
    report = Quantize(way=way).run(
        directory / way, fused=directory / "shaped", reference=large_models.reference(directory)
    )
    return report, directory / way


def validated(directory, way="fp16"):
    """What validate-onnx measures and lets pass."""
    step = ValidateOnnx(task=TEXTS, precision=way)
    report = step.run(
        directory / f"checked-{way}",
        quantized=directory / way,
        reference=directory / "reference",
        checkpoint=directory / "checkpoint",
    )
    step.judge(report)
    return report


def kept(report):
    return {name for group in report.kept for name in group.operators}


@pytest.fixture(scope="module", params=["bert", "roberta"])
def encoder(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    large_models.bert(directory, request.param)
    return directory


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_bert_and_a_roberta_in_fp16_answer_as_in_fp32_and_become_engines(encoder):
    report, out = lowered(encoder)
    assert report.cosine.worst >= GOAL
    assert kept(report) == {"LayerNormalization", "Softmax"}
    assert report.share == 1
    accuracy = validated(encoder)
    assert accuracy.cosine.worst >= 0.9995
    assert accuracy.emulated == "fp16"
    assert report.bytes[1] < 0.55 * report.bytes[0]
    for device in ("T4", "A10"):
        assert engines.rtx_bytes(out, device, TOKENS) > 0


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A T5 encoder whose residual stream reaches millions, as trained ones do where fp16 fails."""
    directory = tmp_path_factory.mktemp("t5")
    large_models.t5_encoder(directory, scale=2000, wide=300)
    return directory


@pytest.mark.slow
def test_a_t5_encoder_with_large_activations_answers_as_in_fp32(t5):
    report, out = lowered(t5)
    assert report.cosine.worst >= GOAL
    assert validated(t5).cosine.worst >= 0.9995
    (large,) = (group for group in report.kept if "range" in group.reason)
    assert any("Add" in name and most > 1e6 for name, most in large.nodes.items() if most != "infinite")
    assert {"ReduceMean", "Sqrt", "Softmax"} <= kept(report)
    assert len(report.scaled) == 4  # the second product of every feed-forward layer
    assert report.share == 1
    for device in ("T4", "A10"):  # TensorRT-RTX has no fp32 products on a T4
        assert engines.rtx_bytes(out, device, TOKENS) > 0


@pytest.mark.parametrize(("architecture", "fused"), [("bert", "Attention"), ("distilbert", "SkipLayerNormalization")])
def test_a_graph_of_fused_operators_for_the_cuda_provider_goes_to_fp16(tmp_path, architecture, fused):
    source = graphs.tiny(architecture)
    Fuse(residual="fused").run(tmp_path / "fused", shaped=source)
    model = onnx_files.load(tmp_path / "fused")
    assert fused in {node.op_type for node in model.graph.node}
    generator = np.random.default_rng(2)
    words = {name: generator.integers(0, 2, (2, 9)) for name in onnx_files.inputs(model)}
    unanswered = [cases.Case("words", "", "sample", {**words, "input_ids": generator.integers(0, 60, (2, 9))}, {})]
    passes = Pipeline(ir_models.of(model))
    report = half_search.lowered(passes, unanswered, "fp16", tmp_path)
    assert report.cosine.worst >= GOAL
    assert report.share == 1
    ir_models.save(passes.model, tmp_path / "half")
    ort.session(tmp_path / "half")  # every operator takes the types that it gets


def test_a_model_that_is_in_half_precision_already_is_handed_on(tmp_path):
    graphs.in_half(graphs.write(tmp_path / "layers", graphs.layers()), tmp_path / "half")
    report = Quantize(way="fp16").run(tmp_path / "out", fused=tmp_path / "half")
    assert "half precision" in report.unquantized
    assert (tmp_path / "out" / "model.onnx").samefile(tmp_path / "half" / "model.onnx")


def rows(path, count, seed):
    generator = np.random.default_rng(seed)
    np.savez(path, x=generator.standard_normal((count, 64)).astype(np.float32))
    return path


def layers(tmp_path, validation):
    """A small classifier with the reference to the rows in `validation`."""
    source = graphs.write(tmp_path / "shaped", graphs.layers())
    session = ort.session(source)
    unanswered = samples.read(validation, tmp_path, onnx_files.inputs(onnx_files.load_graph(source)))
    answered = [cases.Case(c.name, c.text, c.kind, c.inputs, ort.run(session, c.inputs)) for c in unanswered]
    cases.save(answered, tmp_path / "reference")
    return source


def test_calibrate_samples_are_looked_at_up_to_their_limit(tmp_path):
    source = layers(tmp_path, rows(tmp_path / "validate.npz", 5, 1))
    train = rows(tmp_path / "train.npz", 9, 2)
    step = Quantize(way="fp16", samples=Source(uri=f"file:{train}"), limit=7)
    report = step.run(tmp_path / "out", fused=source, checkpoint=tmp_path, samples=train)
    assert report.looked_at == Inputs(inputs=7, kinds=("tensors",))


def test_a_sample_that_is_calibrated_and_validated_on_is_an_error(tmp_path):
    both = rows(tmp_path / "both.npz", 5, 1)
    source = layers(tmp_path, both)
    other = tmp_path / "other.npz"
    with np.load(both) as file:
        np.savez(other, x=np.concatenate([np.zeros((1, 64), np.float32), file["x"][3:4]]))
    step = ValidateOnnx(task="text-classification", samples=Source(uri=f"file:{other}"), limit=256)
    inputs = {"quantized": source, "reference": tmp_path / "reference", "checkpoint": source}
    with pytest.raises(
        StepError, match=r"1 of the samples in calibrate\.samples are also in validate\.samples"
    ) as error:
        step.run(tmp_path / "out", **inputs, samples=other)
    assert "row 1" in str(error.value)
    step.model_copy(update={"limit": 1}).run(tmp_path / "fine", **inputs, samples=other)  # the row beyond is not used


def lines(path, *texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def test_two_texts_of_unknown_words_are_not_the_same_text(tmp_path):
    models.checkpoint(tmp_path / "checkpoint", task=TEXTS)
    graph = onnx_files.load_graph(graphs.tiny("bert"))
    inputs = onnx_files.inputs(graph)
    seen = samples.read(lines(tmp_path / "validate.jsonl", "a film", "一"), tmp_path / "checkpoint", inputs)
    cases.save(seen, tmp_path / "reference")

    def overlap(*texts):
        train = lines(tmp_path / "train.jsonl", *texts)
        calibration.refuse_overlap(train, tmp_path / "checkpoint", inputs, limit=None, reference=tmp_path / "reference")

    overlap("a river", "二")  # both are one unknown word
    with pytest.raises(StepError, match="line 2: 'a film'"):
        overlap("a river", "a film")


@pytest.fixture(scope="module")
def resnet(timm, tmp_path_factory):
    """A small ResNet with random weights: exported in opset 20, in which convolutions have no bf16."""
    directory = tmp_path_factory.mktemp("resnet")
    timm_here.checkpoint(directory / "checkpoint", "test_resnet", size=64, num_classes=10)
    task, shown = "image-classification", Images(layout="NCHW", size=(64, 64), library="timm")
    Export(task=task, images=shown).run(directory / "exported", checkpoint=directory / "checkpoint")
    ShapeInfer().run(directory / "shaped", exported=directory / "exported")
    Reference(task=task, images=shown).run(directory / "reference", checkpoint=directory / "checkpoint")
    return directory


@pytest.mark.slow
def test_the_convolutions_of_a_real_network_compute_in_bf16_and_become_an_engine(resnet):
    out = resnet / "bf16"
    report = Quantize(way="bf16").run(out, fused=resnet / "shaped", reference=resnet / "reference")
    assert report.share == 1
    assert "Conv" not in kept(report)
    step = ValidateOnnx(task="image-classification", precision="bf16")
    checked = {"quantized": out, "reference": resnet / "reference", "checkpoint": resnet / "checkpoint"}
    step.judge(step.run(resnet / "checked", **checked))
    assert engines.rtx_bytes(out, "A10", {"batch": [1, 2, 4]}) > 0


@pytest.mark.slow
def test_convolutions_that_stay_in_fp32_are_no_bf16(resnet):
    Quantize(way="bf16", opset=20).run(resnet / "old", fused=resnet / "shaped", reference=resnet / "reference")
    step = ValidateOnnx(task="image-classification", precision="bf16")
    checked = {"quantized": resnet / "old", "reference": resnet / "reference", "checkpoint": resnet / "checkpoint"}
    report = step.run(resnet / "checked-old", **checked)
    with pytest.raises(JudgementError, match="Too little of the model computes in bf16"):
        step.judge(report)
