import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import convolutional
import graphs
import numpy as np
import onnx
import pytest
import step_process
from onnx import TensorProto, helper, numpy_helper

from engine.errors import StepError
from engine.kit.accuracy import equivalence
from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import precisions
from engine.kit.quantization.dynamic import ort_quantizer
from engine.kit.quantization.report import ActivationScaling
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.runtimes.onnxruntime import session as ort
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.validate import Validate


def quantize(tmp_path, model, **options):
    """Quantize with weights in 7 bits: with 8 bits, sums saturate on a CPU without VNNI."""
    if not isinstance(model, Path):
        model = graphs.write(tmp_path / "fused", model)
    report = Quantize(**{"reduce_range": True, **options}).run(tmp_path / "quantized", fused=model)
    return report, tmp_path / "quantized"


def fused(tmp_path, source):
    Fuse().run(tmp_path / "fused", shaped=source)
    return tmp_path / "fused"


def operators(directory):
    return [node.op_type for node in onnx_files.nodes(onnx_files.load_graph(directory))]


def cosines(first, second):
    """Return the cosine of the first output on random inputs, by the kind of mask."""
    model = onnx_files.load_graph(first)
    sessions = ort.session(first, threads=1, level="basic"), ort.session(second, threads=1)
    by_kind = {}
    for kind, inputs in equivalence.trials(model):
        one, two = (next(iter(ort.run(session, inputs).values())).astype(float).ravel() for session in sessions)
        by_kind[kind] = float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    return by_kind


@pytest.mark.parametrize(
    ("architecture", "quantized", "left"),
    [
        ("bert", {"EmbedLayerNormalization": 1, "MatMul": 14}, []),
        ("distilbert", {"EmbedLayerNormalization": 1, "MatMul": 14}, []),
        ("electra", {"EmbedLayerNormalization": 1, "MatMul": 15}, []),
        ("roberta", {"MatMul": 14}, ["2 Gather"]),
        ("xlm-roberta", {"MatMul": 14}, ["2 Gather"]),
        ("albert", {"MatMul": 15}, ["3 Gather"]),
        ("mpnet", {"MatMul": 14}, ["3 Gather"]),
        ("deberta-v2", {"MatMul": 14}, ["1 Gather"]),
    ],
)
@pytest.mark.sample(4)
def test_an_architecture_is_quantized_and_answers_alike_for_masks_of_every_kind(
    tmp_path, architecture, quantized, left
):
    source = graphs.tiny(architecture)
    report, out = quantize(tmp_path, fused(tmp_path, source))
    assert report.quantized == quantized
    assert list(report.left) == left
    assert report.bytes[1] < report.bytes[0]
    by_kind = cosines(source, out)
    assert set(by_kind) == {"full", "right-padded", "left-padded", "holed"}
    assert min(by_kind.values()) > 0.998, by_kind
    domains = {node.domain for node in onnx_files.nodes(onnx_files.load_graph(out))}
    assert domains <= {"", "com.microsoft"}, "com.microsoft.nchwc and the like are layouts for one kind of CPU"


@pytest.mark.slow
@pytest.mark.whole("test_an_architecture_is_quantized_and_answers_alike_for_masks_of_every_kind")
def test_minilm_keeps_its_meaning_in_a_quarter_of_its_size(tmp_path, minilm_exported):
    report, out = quantize(tmp_path, fused(tmp_path, minilm_exported))
    assert report.quantized == {"EmbedLayerNormalization": 1, "MatMul": 36}
    assert list(report.left) == []
    assert report.bytes[1] < report.bytes[0] / 3.9
    model = onnx_files.load_graph(out)
    kinds = Counter(node.op_type for node in model.graph.node)
    assert (kinds["MatMulIntegerToFloat"], kinds["Attention"], kinds["DynamicQuantizeLinear"]) == (36, 6, 0)
    # smoothed behind each normalization; scales per row behind each attention and each Gelu
    assert report.evened == ActivationScaling(smoothed=12, by_row=12, fixed=12)
    assert min(cosines(minilm_exported, out).values()) > 0.98


def test_the_package_is_served_so_that_residual_additions_stay_apart(tmp_path):
    _, out = quantize(tmp_path, fused(tmp_path, graphs.tiny("bert")))
    assert json.loads((out / "session.json").read_text()) == {
        "disabled_optimizers": ["SkipLayerNormFusion"],
        "graph_optimization_level": "basic",
    }
    assert "SkipLayerNormalization" not in operators(out)
    ort.optimize(out, tmp_path / "served", level="basic", disabled=("SkipLayerNormFusion",))
    assert "SkipLayerNormalization" not in operators(tmp_path / "served")


def weights_of(directory):
    model = onnx_files.load(directory)
    arrays = [numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == TensorProto.INT8]
    return [array for array in arrays if array.ndim > 1]


@pytest.mark.parametrize(("reduce_range", "most"), [(False, 127), (True, 63)])
def test_each_column_of_the_weights_uses_its_whole_range_of_8_or_7_bits(tmp_path, reduce_range, most):
    source = graphs.write(tmp_path / "fused", graphs.layers())
    before = (source / "model.onnx").read_bytes()
    _, out = quantize(tmp_path, source, reduce_range=reduce_range)
    assert [np.abs(weight).max(axis=0).tolist() for weight in weights_of(out)] == [[most] * 128, [most] * 4]
    assert sorted(os.listdir(tmp_path)) == ["fused", "quantized"]
    assert os.listdir(out) == os.listdir(source) == ["model.onnx"]
    assert (source / "model.onnx").read_bytes() == before
    if reduce_range:  # with 8 bits, sums saturate on some CPUs
        assert cosines(source, out)["random"] > 0.99


def test_the_isa_decides_on_seven_bits():
    assert [planned(isa=isa) for isa in ("avx2", "avx512")] == [Quantize(reduce_range=True)] * 2
    others = ("avx512_vnni", "avx_vnni", "amx", "neon", None)
    assert [planned(isa=isa) for isa in others] == [Quantize(reduce_range=False)] * 5


def planned(precision="int8", *, calibrate=None, quantize=None, task="fill-mask", fields=None, **target):
    """The step that a recipe gets, or None."""
    given = {"calibrate": calibrate, "quantize": quantize or {}, "profiles": [{"batch": [1, 8, 32]}], **(fields or {})}
    model = ModelSection(source="x", task=task)
    return Quantize.for_recipe(
        Recipe(name="a", model=model, precision=precision, target=TargetSection(**target), **given)
    )


def test_a_cpu_gets_dynamic_int8_or_weights_alone_and_no_half_precision():
    assert planned() == planned(provider="cpu", device="T4") == planned(quantize={"weights_only": False}) == Quantize()
    assert planned().inputs_used() == ("fused",)
    assert planned().facts_used() == ("cpu.isa", "onnxruntime.build")
    assert planned("int4") == Quantize(way="int4 weights")
    assert planned(quantize={"weights_only": True}) == Quantize(way="int8 weights")
    assert Quantize(way="int4 weights").inputs_used() == ("fused",)
    assert planned("fp32", quantize={"weights_only": True}) is None
    assert planned("fp32") is planned("fp16") is planned(runtime="openvino") is None


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8", "fp8", "int4"])
def test_a_gpu_gets_its_precision_in_the_graph_whichever_gpu_and_runtime_it_is(precision):
    planned_steps = [
        planned(precision, device=device, runtime=runtime)
        for device in ("T4", "A10", "H100")
        for runtime in ("tensorrt", "tensorrt-rtx", "onnxruntime")
    ]
    assert len({step.model_copy(update={"wide_sums": ()}).model_dump_json() for step in planned_steps}) == 1
    assert [bool(step.wide_sums) for step in planned_steps] == [False, False, precision == "fp16"] * 3
    assert planned_steps[0].way == precision
    assert planned("fp32", device="T4", runtime="tensorrt") is None


def test_bf16_is_in_opset_22_where_the_runtime_reads_it():
    def opset(version=None, image=None, runtime="tensorrt", provider=None):
        fields = {"tensorrt": {"version": version} if version else {}}
        fields |= {"package": {"triton": {"image": image}} if image else {}}
        return planned("bf16", device="A10", runtime=runtime, provider=provider, fields=fields).opset

    assert opset("10.x") == opset("10.6") == opset() == 22
    assert opset("10.5") == opset("10.x", "24.10") == 20
    assert opset(image="24.10", runtime="onnxruntime", provider="tensorrt") == 20
    assert opset(runtime="tensorrt-rtx") == 22


@pytest.mark.parametrize("task", [None, "image-classification"])
def test_int8_of_what_may_be_convolutional_looks_at_samples_or_draws_inputs(task):
    drawing = planned(task=task)
    assert drawing.inputs_used() == (("fused",) if task is None else ("fused", "checkpoint", "reference"))
    assert [profile["batch"].opt for profile in drawing.profiles] == [8]
    step = planned(task=task, calibrate={"samples": "/images.npz", "limit": 9})
    assert step.inputs_used() == drawing.inputs_used() if task else ("fused", "checkpoint")
    assert (step.samples.uri, step.limit, step.profiles) == ("/images.npz", 9, ())


def test_a_convolutional_graph_is_calibrated_on_inputs_within_the_profiles(tmp_path, capsys):
    report, out = quantize(tmp_path, convolutional.written(tmp_path / "fused"))
    assert report.quantized == {"Conv": 2, "Gemm": 1}
    assert report.looked_at.kinds == ("random",)
    assert "random inputs within the profiles instead" in capsys.readouterr().out
    assert os.listdir(out) == ["model.onnx"]


def test_a_convolutional_graph_is_calibrated_on_the_samples_of_the_recipe(tmp_path):
    fused = convolutional.written(tmp_path / "fused")
    images = np.concatenate([sample["image"] for sample in convolutional.images(12)])
    np.savez(tmp_path / "images.npz", image=images)
    step = Quantize(samples={"uri": str(tmp_path / "images.npz")}, limit=10)
    report = step.run(tmp_path / "out", fused=fused, checkpoint=tmp_path, samples=tmp_path / "images.npz")
    assert report.looked_at.inputs == 10
    assert (report.samples, report.held_out) == (8, 2)


def test_half_precision_looks_at_the_reference_and_int8_of_a_gpu_never_does():
    assert planned("fp16", device="T4").inputs_used() == ("fused", "reference")
    assert planned("int8", device="T4").inputs_used() == ("fused", "checkpoint")
    samples = {"samples": "/train.jsonl", "limit": 9}
    for precision in ("fp16", "int8"):
        step = planned(precision, device="T4", calibrate=samples)
        assert step.inputs_used() == ("fused", "checkpoint")
        assert (step.samples.uri, step.limit) == ("/train.jsonl", 9)


def test_narrow_convolutions_of_images_are_left_with_the_reason(tmp_path):
    report, out = quantize(tmp_path, graphs.convolutions(channels=4))
    assert report.quantized == {"MatMul": 1}
    assert [(each.name, each.reason) for each in report.left] == [
        ("Conv_0_a", "with 27 inputs per output it is slower in int8"),
        ("Conv_2_c", "with 36 inputs per output it is slower in int8"),
    ]
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


def test_recurrent_layers_are_quantized(tmp_path):
    report, out = quantize(tmp_path, graphs.recurrent())
    assert report.quantized == {"LSTM": 2}
    assert list(report.left) == []
    assert operators(out).count("DynamicQuantizeLSTM") == 2
    assert cosines(tmp_path / "fused", out)["random"] > 0.98


def test_recurrent_layers_that_share_weights_are_left(tmp_path):
    report, out = quantize(tmp_path, graphs.recurrent(shared=True))
    assert report.quantized == {}
    assert list(report.left) == ["2 LSTM"]
    assert report.unquantized == "it has no operator that dynamic quantization makes faster"
    assert cosines(tmp_path / "fused", out)["random"] > 0.9999


@pytest.mark.parametrize(("make", "left"), [(graphs.loop, ["1 MatMul"]), (graphs.choice, ["2 MatMul"])])
def test_what_lies_inside_loops_and_branches_is_left(tmp_path, make, left):
    report, out = quantize(tmp_path, make())
    assert report.quantized == {}
    assert list(report.left) == left
    assert (out / "model.onnx").samefile(tmp_path / "fused/model.onnx")


def test_weights_of_more_than_two_dimensions_are_left(tmp_path):
    model = graphs.parsed("(float[batch, 3, n, 8] x) => (float[batch, 3, n, 8] y) { y = MatMul(x, w) }", w=(3, 8, 8))
    report, _ = quantize(tmp_path, model)
    assert list(report.left) == ["1 MatMul"]


def in_int8(inputs):
    """Return a model of one Attention, x [batch, time, 16], quantized."""
    node = f"y = com.microsoft.Attention <num_heads = 2> ({inputs})"
    text = f"(float[batch, time, 16] x) => (float[batch, time, 16] y) {{ {node} }}"
    model = graphs.parsed(text, domains=("com.microsoft",), w=(16, 48), b=(48,), bias=(1, 2, 4, 4))
    passes = Pipeline(ir_models.of(model))
    ort_quantizer.quantize(passes, reduce_range=False)
    return ir_models.proto(passes.model)


def test_attention_is_quantized_but_not_where_its_bias_would_be_dropped():
    plain = in_int8("x, w, b")
    assert ort_quantizer.counted(plain) == {"Attention": 1}
    biased = in_int8("x, w, b, , , bias")
    assert ort_quantizer.counted(biased) == {}
    assert precisions.left(biased) == ["1 Attention"]


def test_a_weight_that_two_kinds_of_operators_share_is_quantized_for_each(tmp_path):
    text = "(int64[batch] ids) => (float[batch, 16] y) { a = Gather(w, ids) b = MatMul(a, w) y = MatMul(b, w) }"
    report, out = quantize(tmp_path, graphs.parsed(text, w=(16, 16)))
    assert report.quantized == {"MatMul": 2}
    assert list(report.left) == ["1 Gather"]
    assert "DequantizeLinear" not in operators(out)
    assert len(weights_of(out)) == 1
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


@pytest.mark.parametrize("features", [16, 5])
def test_gemms_that_share_a_transposed_weight_mean_the_same_and_go_on_sharing_it(tmp_path, features):
    siamese = graphs.parsed(
        f"(float[batch, 16] x1, float[batch, 16] x2) => (float[batch, {features}] y) "
        "{ a = Gemm<transB = 1>(x1, w) c = Gemm<transB = 1>(x2, w, b) y = Add(a, c) }",
        w=(features, 16), b=(features,),
    )  # fmt: skip
    report, out = quantize(tmp_path, siamese)
    assert report.quantized == {"MatMul": 2}
    assert [weight.shape for weight in weights_of(out)] == [(16, features)]
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


def test_a_table_that_a_gemm_reads_transposed_is_still_looked_up_by_its_rows(tmp_path):
    """The table is square: turned round, it would fit as well."""
    text = "(int64[batch] ids) => (float[batch, 16] y) { a = Gather(table, ids) y = Gemm<transB = 1>(a, table) }"
    report, out = quantize(tmp_path, graphs.parsed(text, table=(16, 16)))
    assert report.quantized == {"MatMul": 1}
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


def test_weights_stored_as_sparse_tensors_are_handed_on_as_they_are(tmp_path):
    values = numpy_helper.from_array(np.array([2, 3], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1, 11])), [8, 8])
    model = graphs.parsed("(float[n, 8] x) => (float[n, 8] y) { y = MatMul(x, w) }")
    model.graph.sparse_initializer.append(sparse)
    report, out = quantize(tmp_path, model)
    assert report.quantized == {}
    assert report.unquantized == "it stores weights as sparse tensors, which ONNX Runtime's quantizer cannot read"
    assert (out / "model.onnx").samefile(tmp_path / "fused/model.onnx")


def test_large_embedding_tables_are_stored_in_int8_with_a_scale_per_row(tmp_path):
    text = "(int64[batch, time] ids) => (float[batch, time, 8] y) { a = Gather(table, ids) y = MatMul(a, w) }"
    report, out = quantize(tmp_path, graphs.parsed(text, table=(2000, 64), w=(64, 8)))
    assert report.quantized == {"Gather": 1, "MatMul": 1}
    assert list(report.left) == []
    assert report.bytes[1] < report.bytes[0] / 3.5
    table = next(weight for weight in weights_of(out) if weight.shape == (2000, 64))
    assert (np.abs(table).max(axis=1) == 127).all()
    assert cosines(tmp_path / "fused", out)["random"] > 0.999


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, w8, z) f = Cast<to = 1>(i) y = Mul(f, s)", ["w8"]),
        (
            "q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero) y = MatMul(d, w)",
            ["w", "scale", "zero"],
        ),
        ("c = Cast<to = 1>(w8) m = Mul(c, scale) y = MatMul(x, m)", ["w8", "scale"]),
    ],
    ids=["dynamic", "qdq", "stored"],
)
def test_what_someone_else_quantized_is_handed_on_as_it_is(tmp_path, capsys, text, stored):
    weights = {"w8": np.ones((8, 8), np.int8), "w": (8, 8), "scale": np.float32(0.1), "zero": np.int8(0)}
    model = graphs.parsed(
        f"(float[n, 8] x) => (float[n, 8] y) {{ {text} }}", **{name: weights[name] for name in stored}
    )
    report, out = quantize(tmp_path, model)
    assert report.quantized == {}
    assert report.unquantized.startswith("it is quantized already (")
    assert report.bytes[0] == report.bytes[1]
    assert (out / "model.onnx").samefile(tmp_path / "fused/model.onnx")
    assert "not quantized: it is quantized already" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["dynamic", "int4 weights", "int8 weights"])
def test_half_precision_is_quantized_through_float32(tmp_path, way):
    values = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)
    model = graphs.parsed("(float16[n, 64] x) => (float16[n, 64] y) { y = MatMul(x, w) }", w=values)
    report, out = quantize(tmp_path, model, way=way)
    assert report.quantized == {"MatMul": 1}
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float16)
    [expected, given] = [ort.run(ort.session(each), {"x": x})["y"] for each in (tmp_path / "fused", out)]
    assert given.dtype == np.float16
    assert np.corrcoef(expected.ravel(), given.ravel())[0, 1] > 0.98


def test_an_old_opset_is_lifted_to_one_that_can_be_quantized(tmp_path):
    text = "(float[n, 8] x, float[8, 8] w, float[8] b) => (float[n, 8] y) { y = Gemm(x, w, b) }"  # as IR 3 wants it
    report, out = quantize(tmp_path, graphs.parsed(text, opset=8, ir=3, w=(8, 8), b=(8,)))
    assert report.quantized == {"MatMul": 1}
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


def test_a_vision_model_whose_convolutions_gain_nothing_is_left_and_still_runs(tmp_path):
    path = Path(onnx.__file__).parent / "backend/test/data/light/light_shufflenet.onnx"
    report, out = quantize(tmp_path, graphs.write(tmp_path / "fused", onnx.load(path)))
    assert report.unquantized == "it has no convolution that int8 makes faster"
    assert ort.session(out, threads=1).get_outputs()[0].shape == [1, 1000]


def test_a_quantizer_that_breaks_down_is_a_clear_error(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no type for w")

    monkeypatch.setattr("onnxruntime.quantization.onnx_quantizer.ONNXQuantizer.quantize_model", broken)
    with pytest.raises(StepError) as caught:
        quantize(tmp_path, graphs.layers())
    assert str(caught.value).split("\n")[:2] == [
        "ONNX Runtime cannot quantize this model",
        "  no type for w",
    ]
    assert "precision: fp32" in str(caught.value)


def test_large_weights_come_from_and_go_to_external_data(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_files, "INLINE_LIMIT", 1000)
    monkeypatch.setattr(onnx_files.save, "__kwdefaults__", {"threshold": 1000})
    onnx_files.save(graphs.layers(), tmp_path / "fused")
    onnx_files.link(tmp_path / "fused", tmp_path / "store")  # where every file has several links
    report, out = quantize(tmp_path, tmp_path / "fused")
    assert sorted(os.listdir(out)) == ["model.onnx", "model.onnx.data"]
    assert report.quantized == {"MatMul": 2}
    assert report.bytes[1] < report.bytes[0]
    assert cosines(tmp_path / "fused", out)["random"] > 0.99


def test_bytes_are_the_same_in_another_directory_process_and_hash_seed(tmp_path):
    assert len(step_process.digests(Quantize, tmp_path, fused=fused(tmp_path, graphs.tiny("bert")))) == 1


@pytest.mark.parametrize(
    ("fields", "falls_back"),
    [({}, True), ({"validate": {"cosine": 0.9}}, False), ({"quantize": {"keep_in": {"fp32": ["a"]}}}, False)],
)
def test_a_model_of_images_falls_back_where_the_recipe_sets_no_bound(fields, falls_back):
    model = ModelSection(source="/model", task="image-classification")
    target = TargetSection(device="cpu", runtime="onnxruntime")
    recipe = Recipe(name="it", model=model, target=target, precision="int8", **fields)
    step = Quantize.for_recipe(recipe)
    assert step.falls_back is falls_back
    assert ("reference" in step.inputs_used()) is falls_back
    assert (Validate.for_recipe(recipe).precision_share is not None) is falls_back


def test_a_model_that_int8_harms_stays_as_it_was_and_the_report_says_why(tmp_path, monkeypatch):
    judge = SimpleNamespace(shortcoming=lambda out, **_: f"in int8, {out.name} is far off")
    monkeypatch.setattr("engine.steps.quantize._fallback", lambda: judge)
    fused = convolutional.written(tmp_path / "fused")
    out = tmp_path / "out"
    report = Quantize(falls_back=True).run(out, fused=fused, reference=tmp_path, checkpoint=fused)
    assert report.unquantized == "in int8, out is far off"
    assert (out / "model.onnx").read_bytes() == (fused / "model.onnx").read_bytes()
