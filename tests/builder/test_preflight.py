"""`recipe check` sees what would fail after minutes, in the words of the step that would fail, and writes nothing."""

import json
import shutil
import zipfile
from contextlib import contextmanager
from pathlib import Path

import graphs
import numpy as np
import onnx
import pytest
import tokenizers
from onnx import helper

from engine import api, server
from engine.builder import sources
from engine.builder.executors import outcomes
from engine.builder.worker import unexpected
from engine.builder.worker_task import WorkerTask, error_of
from engine.errors import Exit, RecipeError, StepError, UserError
from engine.events import Refused, Started
from engine.kit.inputs import samples
from engine.kit.onnx import onnx_files
from engine.machine import imports, tools
from engine.step import Source
from engine.steps.fetch import Fetch
from tests.support.program import Program

TEXT_RECIPE = """\
name: tiny
model: {source: model}
validate:
  samples: samples.jsonl
"""
ONNX_RECIPE = """\
name: tiny
model:
  source: model.onnx
validate:
  samples: samples.npz
profiles: {batch: [1, 1, 8]}
"""


def write_checkpoint(folder):
    """Write the files of a text classifier, with a few numbers in place of its weights."""
    folder.mkdir()
    names = {"architectures": ["BertForSequenceClassification"], "model_type": "bert"}
    sizes = {"vocab_size": 8, "hidden_size": 4, "max_position_embeddings": 16}
    (folder / "config.json").write_text(json.dumps({**names, **sizes}))
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    write_header(folder / "model.safetensors", header)
    words = {word: number for number, word in enumerate(["[UNK]", "a", "good", "film", "fine"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a text classifier of two classes, an ONNX file, samples for both and a recipe for each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    write_checkpoint(tmp_path / "model")
    graphs.write(tmp_path, graphs.layers(features=8))
    (tmp_path / "samples.jsonl").write_text('{"text": "a good film", "label": 1}\n{"text": "a bad film"}\n')
    np.savez(tmp_path / "samples.npz", x=np.zeros((3, 8), np.float32))
    (tmp_path / "text.yaml").write_text(TEXT_RECIPE)
    (tmp_path / "onnx.yaml").write_text(ONNX_RECIPE)
    return tmp_path


def tree(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def refused(recipe):
    with pytest.raises(RecipeError) as caught:
        api.check(recipe)
    assert caught.value.exit is Exit.USAGE
    return caught.value


def test_what_is_right_passes_and_nothing_is_written(project, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    before = tree(project)
    assert [checked.model for checked in api.check(["text.yaml"])] == [True]
    assert [checked.model for checked in api.check(["onnx.yaml"])] == [True]
    assert tree(project) == before
    assert list(home.rglob("*")) == []


def cut(path, size=None):
    path.write_bytes(path.read_bytes()[: size if size is not None else path.stat().st_size // 2])


def config(project, **fields):
    path = project / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def write_header(weights, header):
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))


MODEL_FAULTS = {
    "weights are missing": lambda w: w.unlink(),
    "weights are cut off": cut,
    "weights are empty": lambda w: cut(w, 0),
    "the header is broken": lambda w: w.write_bytes(b"\x10" + bytes(7) + b"{" * 16),
    "a pointer of git-lfs": lambda w: w.write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    ),
    "config.json is missing": lambda w: w.with_name("config.json").unlink(),
    "config.json is cut off": lambda w: cut(w.with_name("config.json")),
    "weights are only a pickle": lambda w: w.rename(w.with_name("pytorch_model.bin")),
    "a shard is missing": lambda w: (
        w.rename(w.with_name("x")).with_name("model.safetensors.index.json")
        .write_text('{"weight_map": {"w": "model-1-of-1.safetensors"}}')
    ),
    "weights of an impossible length": lambda w: w.write_bytes(b"\xff" * 16),
    "a header that is a list": lambda w: write_header(w, b"[1, 2]"),
    "a header nested without end": lambda w: write_header(w, b"[" * 100_000),
    "a header with a tensor beyond the end": lambda w: write_header(
        w, b'{"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 99999]}}'
    ),
    "a folder in place of the weights": lambda w: w.unlink() or w.mkdir(),
    "a link to weights that are gone": lambda w: w.unlink() or w.symlink_to("gone"),
    "an index of shards that is no JSON": lambda w: w.rename(w.with_name("model.safetensors.index.json")),
    "config.json is a list": lambda w: w.with_name("config.json").write_text("[]"),
    "config.json names a number as its type": lambda w: config(w.parents[1], model_type=7),
    "config.json is nested without end": lambda w: w.with_name("config.json").write_text("[" * 100_000),
    "no model at all": lambda w: [path.unlink() for path in w.parent.iterdir()],
}  # fmt: skip


@pytest.mark.parametrize("spoil", MODEL_FAULTS.values(), ids=MODEL_FAULTS)
def test_a_fault_of_the_models_files_has_the_words_of_fetch(project, spoil):
    spoil(project / "model" / "model.safetensors")
    same_as_fetch(project, project / "model", refused("text.yaml"), line=2)


ONNX_FAULTS = {
    "cut off": lambda p: cut(p / "model.onnx"),
    "empty": lambda p: cut(p / "model.onnx", 0),
    "no protobuf": lambda p: (p / "model.onnx").write_text("this is no model " * 9),
    "reads a file outside its folder": lambda p: moved_data(p, "../data.bin"),
    "reads a file by an absolute path": lambda p: moved_data(p, "/etc/passwd"),
    "takes no inputs": lambda p: graphs.write(
        p,
        graphs.graph([helper.make_node("Relu", ["w"], ["y"])], [], [("y", graphs.FLOAT, [4])], [graphs.weight("w", 4)]),
    ),
    "its external data is missing": lambda p: external(p).unlink(),
    "its external data is cut off": lambda p: cut(external(p)),
}


def external(project):
    model = onnx.load(project / "model.onnx")
    onnx.save_model(model, project / "model.onnx", save_as_external_data=True, location="data.bin", size_threshold=0)
    return project / "data.bin"


def moved_data(project, location):
    external(project)
    model = onnx.load(project / "model.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = location
    (project / "model.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize("spoil", ONNX_FAULTS.values(), ids=ONNX_FAULTS)
def test_a_broken_onnx_file_has_the_words_of_fetch(project, spoil):
    spoil(project)
    same_as_fetch(project, project / "model.onnx", refused("onnx.yaml"), line=3)


def same_as_fetch(project, path, error, *, line):
    """Hold an error against the one of a build, which resolves the source and then runs `fetch`."""
    source = Source(uri=f"file:{path}")
    with same_words(error, StepError):
        sources.resolve(source, digest_file=lambda _: "x", commits={})
        Fetch(source=source).run(project / "fetched", source=path)
    assert error.position.line == line


@contextmanager
def same_words(error, kind):
    """Expect that the block raises an error of a kind in the words of `error`."""
    with pytest.raises(kind) as caught:
        yield
    assert (error.what, error.facts, error.hint) == (caught.value.what, caught.value.facts, caught.value.hint)


SAMPLE_FAULTS = {
    "no JSON": '{"text": "fine"}\n{"text": "cut off\n',
    "no object": '["a text"]\n',
    "a misspelt column": '{"txet": "a good film"}\n',
    "an unknown column": '{"text": "a good film", "lable": 1}\n',
    "a question alone": '{"question": "where?"}\n',
    "an image": '{"image": "cat.png"}\n',
    "a label of another model": '{"text": "fine", "label": 0}\n{"text": "a good film", "label": "POSITIVE"}\n',
    "a label that is no label": '{"text": "a good film", "label": 1.5}\n',
    "half a character": '{"text": "\\ud800"}\n',
    "a NUL byte": '{"text": "a\0b"}\n',
    "nested without end": "[" * 100_000 + "\n",
    "a number as a text": '{"text": 7}\n',
    "nothing": "\n\n",
}


@pytest.mark.parametrize("text", SAMPLE_FAULTS.values(), ids=SAMPLE_FAULTS)
def test_a_fault_of_the_samples_has_the_words_of_the_step(project, text):
    (project / "samples.jsonl").write_text(text)
    error = refused("text.yaml")
    tokens = onnx_files.Input("input_ids", "int64", ("batch", "sequence"))
    with same_words(error, StepError):
        samples.read(project / "samples.jsonl", project / "model", {"input_ids": tokens})
    assert (error.position.line, error.position.column) == (4, 12)


LENGTHS = TEXT_RECIPE + "bench:\n  samples: lengths.jsonl\n  shapes: {batch: 8, sequence: samples}\n"


def test_texts_whose_lengths_are_measured_are_read_and_their_labels_do_not_count(project):
    (project / "text.yaml").write_text(LENGTHS)
    (project / "lengths.jsonl").write_text('{"text": "a good film", "label": "of another model"}\n')
    assert api.check("text.yaml")
    (project / "lengths.jsonl").write_text('{"txet": "a good film"}\n')
    error = refused("text.yaml")
    assert "lengths.jsonl:1 has no usable text" in error.what
    assert (error.position.line, error.position.column) == (6, 12)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'\xef\xbb\xbf{"text": "a good film"}\r\n{"text": "fine"}\r\n', None),  # as Windows writes texts
        (b'{"text": "a good film", "label": "good"}\n', None),
        (b'{"text": "\xff\xfe"}\n', "is no UTF-8 text"),
        (b'{"text": "a good film", "label": 1%s}\n' % (b"0" * 40), "none of the model's classes"),
        (b'{"text": "a good film", "label": 7}\n', "the label 7 of line 1 is none of the model's classes"),
    ],
    ids=["windows", "label by name", "no text", "long label", "label of no class"],
)
def test_samples_are_read_with_their_labels(project, line, what):
    (project / "samples.jsonl").write_bytes(line)
    if what is None:
        config(project, id2label={"0": "bad", "1": "good"}, label2id={"bad": 0, "good": 1})
        assert api.check("text.yaml")
        return
    error = refused("text.yaml")
    assert what in error.what
    assert what.startswith("is") or error.facts == ("the model has 2 classes: 0 to 1",)


def test_another_file_in_an_npz_is_left_alone(project):
    with zipfile.ZipFile(project / "samples.npz", "a") as archive:
        archive.writestr("README.txt", "made by hand")
    assert api.check("onnx.yaml")


def test_a_metric_without_labels_is_refused(project):
    (project / "text.yaml").write_text(TEXT_RECIPE + "  metric: 0.9\n")
    assert api.check("text.yaml")
    (project / "samples.jsonl").write_text('{"text": "a good film"}\n')
    error = refused("text.yaml")
    assert error.what == "The recipe bounds metric, which could not be measured"
    assert error.position.line == 5


def test_a_model_that_takes_more_than_a_text_is_refused_at_its_source(project):
    config(project, architectures=["LayoutLMForSequenceClassification"], model_type="layoutlm")
    error = refused("text.yaml")
    assert error.what == "LayoutLMForSequenceClassification takes more than a text: bbox"
    assert "export the model to ONNX with all its inputs" in error.hint
    assert (error.position.line, error.position.column) == (2, 17)


def test_a_tokenizer_of_custom_code_is_refused_unless_the_recipe_names_another(project):
    (project / "model" / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["own.Own", null]}}')
    assert "that code is never run (trust_remote_code)" in refused("text.yaml").what
    (project / "other").mkdir()
    (project / "model" / "tokenizer.json").rename(project / "other" / "tokenizer.json")
    (project / "text.yaml").write_text(TEXT_RECIPE.replace("source: model", "source: model, tokenizer: other"))
    assert api.check("text.yaml")


def test_a_classifier_that_is_to_write_texts_is_refused_and_the_hint_works(project):
    config(project, architectures=["BartForSequenceClassification"], model_type="bart", is_encoder_decoder=True)
    text = TEXT_RECIPE.replace("source: model", "source: model, task: {}")
    (project / "text.yaml").write_text(text.replace("{}", "text2text-generation"))
    error = refused("text.yaml")
    assert error.what.startswith("the model was made for text-classification: it has no head")
    assert error.hint == "say `task: text-classification` under `model:`"
    (project / "text.yaml").write_text(text.replace("{}", "text-classification"))
    assert api.check("text.yaml")


def test_a_long_file_of_samples_is_looked_at_in_part(project, monkeypatch):
    monkeypatch.setattr("engine.builder.preflight.samples._MOST_BYTES", 100)
    (project / "samples.jsonl").write_text('{"text": "a good film"}\n' * 10 + "no JSON\n")
    assert api.check("text.yaml")
    (project / "samples.jsonl").write_text('{"text": "a good film"}\n' * 3 + "no JSON\n" * 10)
    assert "samples.jsonl:4" in refused("text.yaml").what


def test_texts_without_a_tokenizer_are_refused(project):
    for path in (project / "model").iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()
    error = refused("text.yaml")
    assert error.what == "the samples are texts, but the model has no tokenizer"
    (project / "text.yaml").write_text(TEXT_RECIPE.partition("validate")[0])
    assert api.check("text.yaml"), "without samples, random tokens are drawn"


@pytest.mark.parametrize("content", [None, "{}", "[]", "[" * 100_000, '{"model": '])
def test_a_broken_tokenizer_is_refused(project, content):
    path = project / "model" / "tokenizer.json"
    cut(path) if content is None else path.write_text(content)
    assert refused("text.yaml").what == "tokenizer.json cannot be read"


def test_a_tokenizer_that_is_none_is_refused_where_the_recipe_names_it(project):
    (project / "empty").mkdir()
    (project / "onnx.yaml").write_text(ONNX_RECIPE.replace("model.onnx", "model.onnx\n  tokenizer: empty"))
    error = refused("onnx.yaml")
    assert "there is no tokenizer in" in error.what
    assert error.position.line == 4


ARRAYS = {
    "another name": {"y": np.zeros((3, 8), np.float32)},
    "another type": {"x": np.zeros((3, 8), np.complex64)},
    "another shape": {"x": np.zeros((3, 9), np.float32)},
    "too many axes": {"x": np.zeros((3, 1, 1, 8), np.float32)},
    "no rows": {"x": np.zeros((0, 8), np.float32)},
    "other counts": {"x": np.zeros((3, 8), np.float32), "label": np.zeros(2, np.int64)},
    "labels that are no whole numbers": {"x": np.zeros((3, 8), np.float32), "label": np.zeros(3, np.float32)},
    "pickled objects": {"x": np.array([None, {}], dtype=object)},
    "no arrays": {},
}


@pytest.mark.parametrize("arrays", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_do_not_suit_the_model_have_the_words_of_the_step(project, arrays):
    np.savez(project / "samples.npz", **arrays)
    error = refused("onnx.yaml")
    with same_words(error, StepError):
        samples.read(project / "samples.npz", project, onnx_files.inputs(onnx.load(project / "model.onnx")))
    assert error.position.line == 5


def test_an_input_without_axes_takes_only_numbers(project):
    number = helper.make_tensor_value_info("rate", onnx.TensorProto.INT64, [])
    model = onnx.load(project / "model.onnx")
    model.graph.input.append(number)
    onnx.save(model, project / "model.onnx")
    for rate, fits in ((np.arange(3), True), (np.ones((3, 1), int), False)):
        np.savez(project / "samples.npz", x=np.zeros((3, 8), np.float32), rate=rate)
        if fits:
            api.check("onnx.yaml")
        else:
            assert refused("onnx.yaml").what == "the array rate in samples.npz has the wrong number of axes"


def test_a_perplexity_of_an_onnx_file_is_refused_and_no_task_is_proposed(project):
    recipe = ONNX_RECIPE.replace("samples: samples.npz", "perplexity: {text: onnx.yaml}")
    (project / "onnx.yaml").write_text(recipe)
    assert refused("onnx.yaml").hint == "use a checkpoint as the source, or take `validate.perplexity` out"


def test_a_directory_without_a_checkpoint_leads_to_the_file_in_it_or_to_what_can_be_read(project):
    folder = project / "net"
    folder.mkdir()
    (project / "text.yaml").write_text("name: tiny\nmodel: {source: net}\n")
    (folder / "net.gguf").write_bytes(b"GGUF")
    assert "from_pretrained(DIRECTORY, gguf_file=NAME)" in refused("text.yaml").hint
    (folder / "net.onnx").write_bytes((project / "model.onnx").read_bytes())
    assert refused("text.yaml").hint == "name the file itself: `source: .../net.onnx`"
    (project / "text.yaml").write_text("name: tiny\nmodel: {source: net/net.onnx}\nprofiles: {batch: 1}\n")
    api.check("text.yaml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NET.ONNX", "ends in .onnx"),
        ("net.gguf", "GGUF"),
        ("net.safetensors", "around it"),
        ("net.pt", "save_pretrained()"),
    ],
)
def test_a_file_that_is_no_source_has_a_hint_by_its_kind(project, name, hint):
    (project / name).write_bytes(b"")
    (project / "text.yaml").write_text(f"name: tiny\nmodel: {{source: {name}}}\n")
    assert hint in refused("text.yaml").hint


@pytest.mark.parametrize("content", [None, b"", b"PK", b"no archive"])
def test_an_npz_that_is_none_is_refused(project, content):
    cut(project / "samples.npz") if content is None else (project / "samples.npz").write_bytes(content)
    assert refused("onnx.yaml").what == "samples.npz cannot be read"


def test_texts_for_a_model_of_tensors_are_refused(project):
    (project / "onnx.yaml").write_text(ONNX_RECIPE.replace("samples.npz", "samples.jsonl"))
    error = refused("onnx.yaml")
    assert error.what == "the samples are texts, but the model takes no tokens"
    assert "x: float32 [batch, 8]" in str(error)


@pytest.mark.parametrize(("name", "extra"), [("torch", "cpu"), ("onnxruntime", "onnx"), ("tokenizers", "onnx")])
def test_a_package_that_is_not_installed_has_the_words_of_the_worker(project, monkeypatch, name, extra):
    real = tools.version_of
    monkeypatch.setattr(tools, "version_of", lambda each: tools.MISSING if each == name else real(each))
    place = imports.location
    monkeypatch.setattr(imports, "location", lambda each: None if each == name else place(each))
    error = refused("text.yaml")
    job = error.what.split("'")[1]
    task = WorkerTask(step="", name=job, options={}, inputs={}, out="", log="", key="")
    missing = unexpected(task, ModuleNotFoundError(f"No module named {name!r}", name=name))
    with same_words(error, UserError):
        raise outcomes.worded(task, error_of(missing.fields()))
    assert f"[{extra}]" in error.hint


def test_a_package_that_no_job_uses_may_be_missing(project, monkeypatch):
    real = tools.version_of
    monkeypatch.setattr(tools, "version_of", lambda each: tools.MISSING if each == "torch" else real(each))
    assert api.check("onnx.yaml")


def test_a_bench_through_a_server_that_is_not_here_is_refused(project, monkeypatch, tmp_path):
    (project / "onnx.yaml").write_text(ONNX_RECIPE + "bench:\n  shapes: {batch: 1}\n  via: [triton-grpc]\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("RECIPE_TRITON_VENV", str(tmp_path / "nowhere"))
    error = refused("onnx.yaml")
    with same_words(error, UserError):
        server.find(server.Needs(backends=frozenset({"onnxruntime"})), pull=False)
    assert error.position.line == 9


def test_an_onnx_file_with_a_rival_in_pytorch_is_refused(project):
    (project / "onnx.yaml").write_text(ONNX_RECIPE + "bench:\n  shapes: {batch: 1}\n  against: {runtime: pytorch}\n")
    error = refused("onnx.yaml")
    assert error.what == "An ONNX file cannot be measured against PyTorch: there is no PyTorch model of it"
    assert error.position.line == 9


def test_a_build_that_stops_earlier_needs_no_samples(project):
    (project / "samples.jsonl").write_text("no JSON\n")
    assert api.check("text.yaml", to=["export"])


def test_the_faults_of_several_recipes_are_told_together(project):
    (project / "samples.jsonl").write_text("no JSON\n")
    cut(project / "model.onnx")
    (project / "onnx.yaml").write_text(ONNX_RECIPE.replace("tiny", "other"))
    with pytest.raises(UserError) as caught:
        api.check(["text.yaml", "onnx.yaml"])
    assert "samples.jsonl:1 is no JSON" in str(caught.value)
    assert "model.onnx is no ONNX model" in str(caught.value)


def test_a_missing_python_package_of_the_model_is_refused_where_it_is_named(project):
    (project / "text.yaml").write_text("name: tiny\nmodel: {source: 'python:no_such_package/model'}\n")
    assert "no_such_package" in refused("text.yaml").what


def test_the_extras_are_those_of_the_project():
    import tomllib

    from engine.text import distribution

    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    for extra, names in distribution.EXTRAS.items():
        lines = " ".join(extras[extra]).replace("-", "_")
        assert [name for name in names if name.replace("-", "_") not in lines and name != "protobuf"] == [], extra


BAD_SAMPLES = {
    "for validation": ("validate: {samples: bad.jsonl}", "bad.jsonl:2 is no JSON"),
    "for calibration": ("calibrate: {samples: bad.jsonl}\nprecision: int8", "bad.jsonl:2 is no JSON"),
    "for lengths": ("bench: {samples: bad.jsonl, shapes: [{batch: 8, sequence: samples}]}", "bad.jsonl:2 is no JSON"),
    "for calibration and for validation": (
        "calibrate: {samples: copy.jsonl}\nprecision: int8\nvalidate: {samples: samples.jsonl}",
        "2 of the samples in calibrate.samples are also in validate.samples",
    ),
    "a text that is too short": (
        "validate: {perplexity: {text: short.txt}}",
        "short.txt is too short for a perplexity",
    ),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_check_and_build_refuse_bad_samples_in_the_same_words_before_the_first_job(project, case):
    fields, what = BAD_SAMPLES[case]
    (project / "bad.jsonl").write_text('{"text": "a good film"}\n{"text": \n')
    (project / "short.txt").write_text("a good film")
    shutil.copy("samples.jsonl", "copy.jsonl")
    if "perplexity" in fields:
        config(project, architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=8)
    (project / "bad.yaml").write_text(f"name: bad\n{fields}\nmodel: {{source: model}}\n")
    error = refused("bad.yaml")
    assert what in error.what
    assert error.position.line == 2
    events = []
    with pytest.raises(RecipeError) as caught:
        api.build("bad.yaml", on_event=events.append)
    assert str(caught.value) == str(error)
    assert not [event for event in events if isinstance(event, Started)]


def test_a_build_that_keeps_going_leaves_out_only_the_recipe_with_bad_samples(project):
    (project / "bad.jsonl").write_text("{")
    (project / "bad.yaml").write_text("name: bad\nmodel: {source: model}\nvalidate: {samples: bad.jsonl}\n")
    events = []
    api.build(["bad.yaml", "onnx.yaml"], keep_going=True, to="reference", on_event=events.append)
    assert {event.recipe for event in events if isinstance(event, Started)} == {"tiny"}
    assert [event.path for event in events if isinstance(event, Refused)] == ["bad.yaml"]


def test_a_build_that_only_runs_changed_samples_again_reads_them_first_too(project):
    program = Program(project)
    program("build", "onnx.yaml", expect=0)
    (project / "samples.npz").write_bytes(b"PK")
    done = program("build", "onnx.yaml", expect=2)
    assert "onnx.yaml:5:12: samples.npz cannot be read" in done.stderr
    assert "failed" not in done.stderr
