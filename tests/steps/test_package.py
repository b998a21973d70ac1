import json
import shutil
from pathlib import Path

import executions
import graphs
import models
import numpy as np
import passports
import pytest
from google.protobuf import text_format
from onnx import helper
from tritonclient.grpc import model_config_pb2

from engine import digest
from engine.errors import StepError
from engine.kit.images import preparation
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import parts
from engine.kit.triton.served.tokenizer import Work
from engine.kit.triton.serving import Serving
from engine.machine import tools
from engine.recipe.image_input import Images
from engine.recipe.schema import ModelSection, PackageSection, Recipe, TargetSection, Triton
from engine.runtimes import choice
from engine.runtimes.onnxruntime import session_options
from engine.runtimes.tensorrt import passport
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.package import Package

PROFILES = ({"batch": 1, "sequence": [1, 16, 64]}, {"batch": [1, 8, 32], "sequence": [1, 32, 48]})


def recipe(**triton):
    package = PackageSection(triton=Triton.model_validate(triton))
    return Recipe(name="films", model=ModelSection(source="hf:a/b"), profiles=PROFILES, package=package)


def config(out, name):
    return text_format.Parse((out / name / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def step(**options):
    return Package(
        serving=Serving(model_name="films", ensemble="films_text", largest={"batch": 32, "sequence": 64}, **options)
    )


def run(packing, model, checkpoint, out):
    return packing.run(out, validated=model, checkpoint=checkpoint)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A tiny text classifier, exported, with its checkpoint."""
    checkpoint = models.checkpoint(tmp_path_factory.mktemp("text") / "checkpoint", "bert", task="text-classification")
    return graphs.tiny("bert"), checkpoint


@pytest.fixture(scope="module")
def packed(text, tmp_path_factory):
    """The package of that classifier, made once, and its report."""
    out = tmp_path_factory.mktemp("packed") / "package"
    return out, run(step(), *text, out)


FILES = """
Dockerfile NOTICE README.md compose.yaml films/1/model.onnx films/config.pbtxt
films_postprocess/1/classify.py films_postprocess/1/model.py films_postprocess/1/settings.json
films_postprocess/config.pbtxt films_text/1/ensemble.txt films_text/config.pbtxt
films_tokenizer/1/model.py films_tokenizer/1/settings.json films_tokenizer/1/tokenizer.json
films_tokenizer/1/tokenizer.py films_tokenizer/1/unread.py films_tokenizer/config.pbtxt
films_tokenizer/requirements.txt kserve.yaml kubernetes.yaml nginx.conf probe.py sbom.cdx.json servicemonitor.yaml
"""


def test_a_text_model_comes_validated_with_its_tokenizer_and_an_ensemble(text, packed):
    out, report = packed
    assert list(report.models) == ["films", "films_tokenizer", "films_postprocess", "films_text"]
    assert report.name == "films_text"
    assert digest.walk(out) == FILES.split()
    assert report.bytes == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert config(out, "films").platform == "onnxruntime_onnx"
    assert config(out, "films").max_batch_size == 32
    assert config(out, "films_tokenizer").backend == "python"
    assert config(out, "films_text").platform == "ensemble"
    assert (out / "films" / "1" / "model.onnx").samefile(text[0] / "model.onnx")
    assert "client_max_body_size 96k;" in (out / "nginx.conf").read_text()


def test_the_same_inputs_give_the_same_bytes(text, tmp_path):
    models = []
    for name in ("one", "two"):
        out = tmp_path / name / "package"
        run(step(fields={"parameters": {"b": {"string_value": "1"}, "a": {"string_value": "2"}}}), *text, out)
        models.append({path: digest.of_file(out / path) for path in digest.walk(out)})
        assert not any(str(tmp_path).encode() in (out / path).read_bytes() for path in digest.walk(out))
    assert models[0] == models[1]


def served_tokenizer(out):
    """What the shipped tokenizer makes of rows of texts."""
    folder = out / "films_tokenizer" / "1"
    work = Work(folder, json.loads((folder / "settings.json").read_text("utf-8")))
    return lambda rows: work({"TEXT": np.array([[text.encode() for text in row] for row in rows], dtype=object)})


def test_the_tokenizer_cuts_as_validation_does_and_pads_to_the_longest(text, tmp_path):
    out = tmp_path / "package"
    run(Package(serving=Serving(model_name="films", ensemble="e", largest={"sequence": 12})), *text, out)
    model = served_tokenizer(out)
    long, short = "a very good film " * 9, "boring plot"
    answers = model([[long], [short]])
    assert answers["input_ids"].shape == (2, 12)
    tokenizer = tokenizers.load(text[1], longest=12)
    for row, words in enumerate((long, short)):
        alone = tokenizer.row(words)
        tokens = alone["input_ids"].shape[1]
        for name, array in answers.items():
            assert np.array_equal(array[row, :tokens], alone[name][0]), name
        assert not answers["attention_mask"][row, tokens:].any()
        assert (answers["input_ids"][row, tokens:] == tokenizer.pad).all()


def test_the_report_says_what_nobody_knows_about_the_image_and_only_then_has_the_key_a_row(text, tmp_path):
    target = TargetSection(device="T4", runtime="tensorrt")
    package = PackageSection(triton=Triton.model_validate({"image": "25.06"}))
    unsure = Package.for_recipe(Recipe(name="n", model=ModelSection(source="hf:a/b"), target=target, package=package))
    assert unsure.options()["not_verified"].startswith("TensorRT 10.11 builds the engine")
    assert "not_verified" not in Package.for_recipe(recipe()).options()
    packing = step().model_copy(update={"not_verified": unsure.not_verified})
    assert run(packing, *text, tmp_path / "unsure").not_verified == unsure.not_verified
    assert run(step(), *text, tmp_path / "sure").not_verified is None


def test_settings_of_a_tokenizer_that_are_no_object_leave_the_padding_to_its_file(text, tmp_path):
    exported, checkpoint = text
    odd = shutil.copytree(checkpoint, tmp_path / "odd")
    for content, side in (("[]", "Right"), ('{"padding_side": "left"}', "Left"), ('{"padding_side": 3}', "Right")):
        (odd / "tokenizer_config.json").write_text(content)
        out = tmp_path / side / str(len(content))
        run(step(), exported, odd, out)
        tokenizer = json.loads((out / "films_tokenizer" / "1" / "tokenizer.json").read_text())
        assert tokenizer["padding"]["direction"] == side
    (odd / "tokenizer_config.json").write_text("{")
    with pytest.raises(StepError, match=r"^tokenizer_config\.json of the model is no valid JSON"):
        run(step(), exported, odd, tmp_path / "broken")


def test_a_pair_of_texts_is_told_apart_by_its_types_and_a_row_of_three_is_refused(text, packed):
    tokenizer = served_tokenizer(packed[0])
    tensors = tokenizer([["a good film", "it was great"]])
    alone = tokenizers.load(text[1]).row("a good film", "it was great")
    assert tensors["token_type_ids"].max() == 1
    assert all(np.array_equal(tensors[name], alone[name]) for name in tensors)
    with pytest.raises(ValueError, match="TEXT: each row holds one text, or two"):
        tokenizer([["a", "b", "c"]])


def test_a_fixed_length_is_padded_to_and_narrow_integers_are_given(text, tmp_path):
    model = onnx_files.load(text[0])
    for value in [*model.graph.input, *model.graph.output]:
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 1 and dims[1].dim_param == "sequence":
            dims[1].dim_value = 24
    onnx_files.save(model, tmp_path / "fixed")
    out = tmp_path / "package"
    run(step(), tmp_path / "fixed", text[1], out)
    file = out / "films_tokenizer" / "1" / "settings.json"
    settings = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**settings, "outputs": dict.fromkeys(("input_ids", "position_ids"), "int32")}), "utf-8")
    tensors = served_tokenizer(out)([["good"]])
    assert tensors["input_ids"].shape == (1, 24)
    assert tensors["input_ids"].dtype == tensors["position_ids"].dtype == np.int32
    assert list(config(out, "films_tokenizer").output[0].dims) == [24]


@pytest.mark.parametrize(("task", "texts"), [("question-answering", 2), ("feature-extraction", 1), (None, -1)])
def test_a_row_holds_as_many_texts_as_the_task_is_about(text, tmp_path, task, texts):
    out = tmp_path / "package"
    run(step(task=task, postprocess=False), *text, out)
    assert list(config(out, "films_text").input[0].dims) == [texts]


def test_a_model_of_images_is_one_model_with_its_external_data(tmp_path):
    source = tmp_path / "model"
    onnx_files.save(graphs.convolutions(), source, threshold=0)
    (source / "session.json").write_text('{"graph_optimization_level": "all", "disabled_optimizers": []}')
    data = onnx_files.data_files(onnx_files.load_graph(source))
    out = tmp_path / "package"
    report = run(step(), source, source, out)
    assert list(report.models) == ["films"]
    assert data
    assert digest.walk(out / "films" / "1") == sorted(["model.onnx", *data])


def test_the_level_that_the_model_was_saved_for_is_what_triton_uses_or_an_error(tmp_path):
    source = graphs.write(tmp_path / "model", graphs.layers())
    session_options.save(source, level="basic", disabled=("SkipLayerNormFusion",))
    run(step(), source, source, tmp_path / "package")
    assert config(tmp_path / "package", "films").optimization.graph.level == -1
    session_options.save(source, level="all", disabled=("MatMulAddFusion",))
    with pytest.raises(StepError, match="as it was validated") as caught:
        run(step(), source, source, tmp_path / "other")
    assert "MatMulAddFusion, at the level all" in str(caught.value)


def test_names_that_collide_are_refused(text, tmp_path):
    with pytest.raises(StepError, match="same name") as caught:
        run(Package(serving=Serving(model_name="films", ensemble="films_tokenizer")), *text, tmp_path / "package")
    assert "package.triton.ensemble" in caught.value.hint


def test_triton_s_own_fields_and_the_threads_of_the_recipe_end_up_in_the_model(text, tmp_path):
    fields = {"dynamic_batching": {"max_queue_delay_microseconds": 100}, "max_batch_size": 4, "threads": 3}
    run(Package.for_recipe(recipe(**fields)), *text, tmp_path / "package")
    written = config(tmp_path / "package", "films")
    assert written.dynamic_batching.max_queue_delay_microseconds == 100
    assert written.max_batch_size == config(tmp_path / "package", "films_text").max_batch_size == 4
    assert written.parameters["intra_op_thread_count"].string_value == "3"
    assert "intra_op_thread_count" not in config(tmp_path / "package", "films_tokenizer").parameters
    own = {"intra_op_thread_count": {"string_value": "1"}}
    run(Package.for_recipe(recipe(threads=3, parameters=own)), *text, tmp_path / "own")
    assert config(tmp_path / "own", "films").parameters["intra_op_thread_count"].string_value == "1"


def test_a_recipe_gives_names_and_the_most_of_its_profiles():
    serving = Serving.for_recipe(recipe())
    assert (serving.model_name, serving.ensemble) == ("films", "films_text")
    assert serving.largest == {"batch": 32, "sequence": 64}
    named = Serving.for_recipe(recipe(name="m", ensemble="texts", image="24.10", postprocess=False))
    assert (named.model_name, named.ensemble, named.postprocess) == ("m", "texts", False)
    assert named.fields == {}


def plan(directory, *, kind="tensorrt", text=False):
    """The artifact of an engine with two profiles; its plan is made up."""
    directory.mkdir()
    (directory / passport.PLAN).write_bytes(b"engine")
    axes = ("batch", "sequence") if text else ("batch", 4)
    names = ("input_ids", "attention_mask", "token_type_ids") if text else ("x",)
    of_texts = [((1, 1), (1, 16), (1, 64)), ((1, 1), (8, 32), (32, 48))]
    ranges = of_texts if text else [((1, 4),) * 3, ((1, 4), (8, 4), (32, 4))]
    written = passports.make(
        kind=kind, outputs={"y": {"dtype": "float32", "shape": ("batch", 2)}},
        inputs={name: {"dtype": "int64" if text else "float32", "shape": axes} for name in names},
        profiles=[{name: dict(zip(("min", "opt", "max"), ends, strict=True)) for name in names} for ends in ranges],
    )  # fmt: skip
    passport.save(directory, written)
    return directory


NATIVE = executions.execution(runtime="tensorrt")
RTX = executions.execution(runtime="tensorrt-rtx")


def test_an_engine_is_described_by_its_passport_and_lists_its_profiles(tmp_path):
    engine = plan(tmp_path / "engine")
    out = tmp_path / "package"
    run(step(execution=NATIVE), engine, graphs.write(tmp_path / "source", graphs.layers()), out)
    written = config(out, "films")
    assert written.platform == "tensorrt_plan"
    assert list(written.instance_group[0].profile) == ["0", "1"]
    assert list(written.input[0].dims) == [4]
    assert not written.optimization.cuda.graphs
    assert digest.walk(out / "films" / "1") == ["model.plan", "passport.json"]


def test_an_engine_of_texts_comes_with_tokenizer_ensemble_and_graphs(text, tmp_path):
    engine = plan(tmp_path / "engine", text=True)
    out = tmp_path / "package"
    packing = step(
        execution=executions.execution(runtime="tensorrt", cuda_graph=True), fields={"instance_group": [{"count": 2}]}
    )
    assert run(packing, engine, text[1], out).models == (
        "films",
        "films_tokenizer",
        "films_postprocess",
        "films_text",
    )
    written = config(out, "films")
    assert [spec.batch_size for spec in written.optimization.cuda.graph_spec] == [1, 8]
    assert list(written.instance_group[0].profile) == ["0", "1"]
    with pytest.raises(StepError, match="more than the profiles take: 32"):
        run(step(execution=NATIVE, max_batch_size=64), engine, text[1], tmp_path / "other")


def test_an_rtx_engine_is_packed_as_a_plain_folder_for_no_server(text, tmp_path, capsys):
    engine = plan(tmp_path / "engine", kind="tensorrt-rtx", text=True)
    out = tmp_path / "package"
    report = run(step(execution=RTX), engine, text[1], out)
    assert digest.walk(out) == [
        "NOTICE",
        *(f"films/{name}" for name in ("model.plan", "passport.json", "requirements.txt", "tokenizer.json")),
        "sbom.cdx.json",
    ]
    assert list(report.models) == []
    assert "Triton's TensorRT backend does not load TensorRT-RTX engines" in capsys.readouterr().out
    requirements = (out / "films" / "requirements.txt").read_text()
    assert "tensorrt-rtx-cu12==10.13.0.35" in requirements
    assert "tokenizers==" in requirements
    without = run(step(execution=RTX, tokenizer=False), engine, text[1], tmp_path / "bare")
    assert without.bytes < report.bytes


def test_onnx_runtime_on_a_gpu_is_served_there_by_the_provider_that_was_measured(text, tmp_path):
    on_cuda = executions.execution("cuda")
    run(step(execution=on_cuda), *text, tmp_path / "cuda")
    written = config(tmp_path / "cuda", "films")
    assert written.platform == "onnxruntime_onnx"
    assert written.instance_group[0].kind == model_config_pb2.ModelInstanceGroup.KIND_GPU
    assert not written.optimization.HasField("execution_accelerators")
    by_tensorrt = executions.execution("tensorrt", profiles=recipe().profiles)
    run(step(execution=by_tensorrt), *text, tmp_path / "tensorrt")
    [accelerator] = config(tmp_path / "tensorrt", "films").optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert "input_ids:32x64" in accelerator.parameters["trt_profile_max_shapes"]
    assert not [name for name in accelerator.parameters if "cache" in name]
    assert "precision_mode" not in accelerator.parameters


def test_a_package_is_the_same_whatever_gpu_of_its_kind_it_is_for_and_in_whatever_order_profiles_are():
    def options(**changes):
        return Package.for_recipe(recipe().model_copy(update=changes)).options()

    t4, a10 = (options(target=TargetSection(device=device, provider="cuda")) for device in ("T4", "A10"))
    assert t4 == a10 != options(target=TargetSection(device="A10", provider="tensorrt"))
    assert options(profiles=recipe().profiles[::-1]) == options()


def package_of(model, checkpoint, out, *, task=None, **options):
    """The names of a package's models, and what its entry gives."""
    report = run(step(task=task, **options), model, checkpoint, out)
    entry = config(out, report.name)
    assert entry.parameters["recipe_task"].string_value
    assert not any("recipe_task" in config(out, name).parameters for name in report.models[:-1])
    return list(report.models), [tensor.name for tensor in entry.output]


def test_a_model_alone_is_what_clients_call(text, tmp_path):
    named, given = package_of(*text, tmp_path / "package", tokenizer=False)
    assert (named, given) == (["films"], ["logits"])
    assert config(tmp_path / "package", "films").parameters["recipe_task"].string_value == "text-classification"
    source = graphs.write(tmp_path / "layers", graphs.layers())
    run(step(), source, source, tmp_path / "tensors")
    assert config(tmp_path / "tensors", "films").parameters["recipe_task"].string_value == "tensors"


def test_outputs_that_do_not_fit_the_task_are_refused_unless_the_recipe_wants_them_as_they_are(text, tmp_path):
    for task, why in {
        "token-classification": "its output logits is float32 of 2 axes, not a float of 3",
        "question-answering": "it has no output start_logits, but logits",
    }.items():
        with pytest.raises(StepError, match=f"no answers to {task}(.|\n)*{why}(.|\n)*postprocess: false"):
            package_of(*text, tmp_path / task, task=task)
        named, given = package_of(*text, tmp_path / f"{task}-raw", task=task, postprocess=False)
        assert named == ["films", "films_tokenizer", "films_text"]
        assert given == ["logits"]


def test_an_output_of_another_name_is_called_logits(text, tmp_path):
    model = onnx_files.load(text[0])
    model.graph.output[0].name = "scores_of_mine"
    for node in model.graph.node:
        node.output[:] = ["scores_of_mine" if name == "logits" else name for name in node.output]
    onnx_files.save(model, tmp_path / "renamed")
    _, given = package_of(tmp_path / "renamed", text[1], tmp_path / "package")
    assert given == ["logits", "labels", "scores"]
    steps = config(tmp_path / "package", "films_text").ensemble_scheduling.step
    assert dict(steps[1].output_map) == {"scores_of_mine": "logits_before"}
    assert dict(steps[2].input_map) == {"logits": "logits_before"}
    assert steps[2].output_map["logits"] == "logits"


def test_of_a_question_and_its_context_only_the_context_is_cut(text, tmp_path):
    run(step(task="question-answering", postprocess=False), *text, tmp_path / "package")
    tokens = served_tokenizer(tmp_path / "package")
    question = tokenizers.load(text[1]).row("where is the river?")["input_ids"][0]
    ids = tokens([["where is the river?", "a good film " * 99]])["input_ids"]
    assert ids.shape == (1, 64)
    assert np.array_equal(ids[0, : len(question)], question)
    with pytest.raises(ValueError, match="the first text leaves no room for the second"):
        tokens([["why " * 99, "a good film"]])


def test_a_tokenizer_that_cuts_on_the_left_keeps_the_end(text, tmp_path):
    odd = shutil.copytree(text[1], tmp_path / "odd")
    settings = json.loads((odd / "tokenizer_config.json").read_text())
    (odd / "tokenizer_config.json").write_text(json.dumps({**settings, "truncation_side": "left"}))
    run(step(), text[0], odd, tmp_path / "package")
    words = models.vocabulary()
    ids = served_tokenizer(tmp_path / "package")([["bad " * 99 + "good"]])["input_ids"]
    assert ids.shape == (1, 64)
    assert ids[0, -2:].tolist() == [words["good"], words["[SEP]"]]


def test_a_text_without_a_token_is_an_error_of_its_request(text, tmp_path):
    bare = shutil.copytree(text[1], tmp_path / "bare")
    settings = json.loads((bare / "tokenizer.json").read_text())
    (bare / "tokenizer.json").write_text(json.dumps({**settings, "post_processor": None}))
    run(step(), text[0], bare, tmp_path / "package")
    tokens = served_tokenizer(tmp_path / "package")
    assert tokens([["good"], ["good film"]])["attention_mask"].tolist() == [[1, 0], [1, 1]]
    for rows in ([[""]], [["good"], [""]]):
        with pytest.raises(ValueError, match="a text without a single token"):
            tokens(rows)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_model_of_timm_takes_image_files(tmp_path, monkeypatch, layout):
    monkeypatch.setitem(tools._versions, "pillow", "12.0")
    shape = [6, 8, 3] if layout == "NHWC" else [3, 6, 8]
    nodes = [helper.make_node("ReduceMean", ["images"], ["logits"], axes=[2, 3], keepdims=0)]
    graph = graphs.graph(nodes, [("images", graphs.FLOAT, ["batch", *shape])], [("logits", graphs.FLOAT, ["batch", 3])])
    model = graphs.write(tmp_path / "model", graph)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    timm = {"architecture": "resnet18", "pretrained_cfg": {"crop_pct": 0.9, "mean": [0.1, 0.2, 0.3], "std": None}}
    (checkpoint / "config.json").write_text(json.dumps(timm))
    packing = Package(
        serving=Serving(
            model_name="m",
            ensemble="m_image",
            images=Images(layout=layout, library="timm"),
            largest={"batch": 4},
            preprocess={"std": (2,)},
        )
    )
    report = run(packing, model, checkpoint, tmp_path / "package")
    assert list(report.models) == ["m", "m_preprocess", "m_postprocess", "m_image"]
    assert [tensor.name for tensor in config(tmp_path / "package", "m_image").input] == ["IMAGE"]
    settings = json.loads((tmp_path / "package" / "m_preprocess" / "1" / "settings.json").read_text())
    assert settings == {
        "work": "image.py", "output": "images", "dtype": "float32", "last": layout == "NHWC", "shape": [6, 8],
        "mode": "RGB", "on_white": False, "reversed": False, "upright": False,
        "mask": None, "sizes": False, "pad": None,
        "resize": {"cover": [6, 8]}, "resample": 3, "crop": [6, 8], "fill": [0, 0, 0], "half_even": True,
        "scale": 1 / 255, "normalize": [[[0.1, 0.2, 0.3], [2.0, 2.0, 2.0]]],
    }  # fmt: skip
    shipped = tmp_path / "package" / "m_preprocess" / "1" / "preparation.py"
    assert shipped.read_bytes() == Path(preparation.__file__).read_bytes()
    assert "pillow==12.0" in (tmp_path / "package" / "m_preprocess" / "requirements.txt").read_text()
    timm["pretrained_cfg"]["crop_mode"] = "spiral"
    (checkpoint / "config.json").write_text(json.dumps(timm))
    with pytest.raises(StepError, match="recipe does not know how this model's images are prepared") as caught:
        run(packing, model, checkpoint, tmp_path / "other")
    assert "'spiral'" in str(caught.value)


def test_an_onnx_file_that_classifies_images_takes_tensors_and_gives_labels(tmp_path):
    source = models.onnx_vision(tmp_path / "source" / "model.onnx").parent
    named, given = package_of(source, source, tmp_path / "package", task="image-classification")
    assert named == ["films", "films_postprocess", "films_text"]
    assert given == ["logits", "labels", "scores"]
    assert [tensor.name for tensor in config(tmp_path / "package", "films_text").input] == ["image"]
    onnx_file = ModelSection(source="cats.onnx", task="image-classification")
    assert Serving.for_recipe(Recipe(name="cats", model=onnx_file)).ensemble == "cats_image"


def test_a_recipe_for_images_names_its_entry_so_and_counts_what_pins_its_code():
    cats = Recipe(
        name="cats", model=ModelSection(source="timm:resnet18"), preprocess={"mean": (0.5,), "layout": "NHWC"}
    )
    serving = Serving.for_recipe(cats)
    assert serving.ensemble == "cats_image"
    assert (serving.images.layout, serving.preprocess["mean"]) == ("NHWC", (0.5,))
    assert "pillow" in Package.for_recipe(cats).tools_used()
    assert "pillow" not in Package.for_recipe(recipe()).tools_used()


def test_a_package_that_cannot_pin_what_it_needs_is_an_error():
    with pytest.raises(StepError, match="no-such-thing is not installed, so requirements"):
        parts.python(
            "x", configs.named("m", 1), takes=(), gives=(), work="tag.py", settings={}, needs=("no-such-thing",)
        )


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_the_package_of_a_chosen_runtime_is_the_package_of_that_runtime(tmp_path, name):
    """What is known about Triton for a runtime holds for the choice of it, byte for byte."""
    pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
    net = graphs.write(tmp_path / "net", graphs.layers())
    model = net
    if name != "onnxruntime":
        OpenvinoBuild().run(tmp_path / name, checked=net)
        model = tmp_path / name
    named = Recipe(name="films", model=ModelSection(source="net.onnx"))
    folders = {}
    for runtime in (name, "auto"):
        folders[runtime] = tmp_path / f"package-{runtime}"
        serving = Serving.for_recipe(named.as_run_by(runtime))
        if runtime == "auto":
            model = shutil.copytree(model, tmp_path / "chosen")
            choice.write(model, name)
        run(Package(serving=serving), model, net, folders[runtime])
    first, second = ({each: (out / each).read_bytes() for each in digest.walk(out)} for out in folders.values())
    assert first == second
    assert any(each.endswith("config.pbtxt") for each in first)
