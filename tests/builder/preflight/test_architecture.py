"""`recipe check` refuses an architecture that cannot be built, and names the nearest that works."""

import json

import pytest

from engine import api, cli
from engine.errors import Exit, RecipeError
from engine.kit.checkpoints import exportable
from engine.machine import tools


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Write a recipe beside a model of a few numbers; the fixture is a function that writes the model's config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model").mkdir()
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(16)
    (tmp_path / "model" / "model.safetensors").write_bytes(weights)

    def write(model_type, architecture, *, task=None, files=None, **fields):
        config = {"model_type": model_type, "architectures": [architecture], "vocab_size": 8, **fields}
        for name, content in {"config.json": config, **(files or {})}.items():
            (tmp_path / "model" / name).write_text(json.dumps(content))
        named = f"model: {{source: model, task: {task}}}" if task else "model: {source: model}"
        (tmp_path / "tiny.yaml").write_text(f"name: tiny\n{named}\n")

    return write


def refused():
    with pytest.raises(RecipeError) as caught:
        api.check("tiny.yaml")
    assert caught.value.exit is Exit.USAGE
    return caught.value


def test_an_architecture_that_works_is_fine_and_not_called_untried(model):
    model("bert", "BertForMaskedLM")
    [checked] = api.check("tiny.yaml")
    assert checked.untried is None


def test_an_architecture_whose_export_fails_is_refused_with_the_reason_and_others_for_the_task(model):
    model("mamba", "MambaForCausalLM")
    error = refused()
    assert error.what == "MambaForCausalLM cannot be built for text-generation"
    assert error.facts[0] == "its past is not keys and values, as those of attention are"
    assert exportable.version() in error.facts[1]
    assert "llama" in error.hint
    assert "ONNX yourself" in error.hint
    assert error.position.line == 2


def test_a_checkpoint_whose_head_fails_is_pointed_to_a_task_that_its_own_body_can_do(model):
    rows = [row for few in exportable.rows().values() for row in few]
    body = {row.model_type for row in rows if row.task == "feature-extraction" and row.verdict == "works"}
    row = next(row for row in rows if row.verdict == "fails" and row.has_class and row.model_type in body)
    model(row.model_type, row.architecture, task=row.task, hidden_size=4)
    assert "say `task: feature-extraction` under `model:`" in refused().hint


def test_a_model_type_without_a_class_for_any_task_is_refused(model):
    rows = [few[0] for few in exportable.rows().values() if not few[0].has_class]
    model(rows[0].model_type, "SomeModel", task="feature-extraction")
    assert refused().what == f"{rows[0].model_type} cannot be built for feature-extraction"


@pytest.mark.parametrize("task", [None, "fill-mask"])
def test_a_model_type_that_the_installed_transformers_does_not_have_is_refused_whatever_the_task(model, task):
    for architecture in ("BrandNewForMaskedLM", "BrandNew"):
        model("brand-new", architecture, task=task)
        error = refused()
        assert error.what == f"transformers {exportable.installed()} has no model type brand-new"
        assert "ONNX yourself" in error.hint


def checked(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "tiny.yaml"])
    assert ended.value.code == Exit.OK
    return capsys.readouterr().out


def test_a_model_type_that_only_the_installed_transformers_has_is_untried_and_not_refused(model, monkeypatch, capsys):
    without = {name: rows for name, rows in exportable.rows().items() if name != "bert"}
    monkeypatch.setattr(exportable, "rows", lambda: without)
    model("bert", "BertForMaskedLM")
    out = checked(capsys)
    assert "tiny is fine" in out
    assert "not tried: bert for fill-mask" in out


def test_a_model_whose_code_is_in_its_checkpoint_is_refused_unless_transformers_has_it(model):
    code = {"auto_map": {"AutoModelForMaskedLM": "modeling_mine.MineForMaskedLM"}}
    for architecture in ("MineForMaskedLM", "Mine"):
        model("mine", architecture, **code)
        assert "never run" in refused().what
    model("bert", "BertForMaskedLM", **code)
    api.check("tiny.yaml")


def test_a_config_without_a_model_type_is_refused(model):
    model(None, "BertForMaskedLM")
    assert refused().what.startswith("config.json names no model_type")


def test_a_newer_transformers_is_said_once_and_the_same_models_are_refused(model, monkeypatch, capsys):
    monkeypatch.setitem(tools.NEWEST, "transformers", "5.0.0")
    monkeypatch.setattr(exportable, "installed", lambda: "5.999.0")
    model("bert", "BertForMaskedLM")
    with open("tiny.yaml", "a", encoding="utf-8") as recipe:
        recipe.write("matrix: {validate.cosine: [{at_least: 0.9}, {at_least: 0.99}]}\n")
    notes = [line for line in checked(capsys).splitlines() if "newer" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note: transformers ")
    assert notes[0].endswith(" is newer than 5.0.0, the last version that was tried")
    model("mamba", "MambaForCausalLM")
    assert refused().what == "MambaForCausalLM cannot be built for text-generation"


@pytest.mark.parametrize(
    ("model_type", "architecture"),
    [("wav2vec2", "Wav2Vec2ForCTC"), ("vivit", "VivitForVideoClassification"), ("sam", "SamModel")],
)
def test_a_model_that_works_for_no_task_is_not_pointed_to_another_task(model, model_type, architecture):
    model(model_type, architecture)
    hint = refused().hint
    assert hint.startswith(("export it to ONNX: python -c ", "export the model to ONNX"))
    assert "task:" not in hint


def test_a_checkpoint_of_quantized_weights_is_refused(model):
    model("bert", "BertForMaskedLM", quantization_config={"quant_method": "gptq", "bits": 4})
    error = refused()
    assert error.what == "the weights of the checkpoint are already quantized (gptq)"
    assert "quantized from" in error.hint


@pytest.mark.parametrize(
    ("model_type", "architecture"),
    [("bert", "BertForPreTraining"), ("bart", "Bart"), ("bert", "BertForImageClassification")],
)
def test_the_task_of_a_hint_is_one_that_check_accepts(model, model_type, architecture):
    model(model_type, architecture)
    task = refused().hint.partition("`task: ")[2].partition("`")[0].partition(" or ")[0]
    model(model_type, architecture, task=task)
    api.check("tiny.yaml")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("preprocessor_config.json", {"image_processor_type": "CLIPImageProcessor"}, "images"),
        ("preprocessor_config.json", {"feature_size": 80, "sampling_rate": 16000}, "sound"),
        ("processor_config.json", {"image_processor": {"do_resize": True}, "processor_class": "P"}, "images"),
    ],
)
def test_a_processor_of_images_or_sound_is_refused_for_a_task_of_text(model, name, content, kind):
    model("bert", "BertForSequenceClassification", files={name: content})
    error = refused()
    assert error.what.startswith(f"the model takes {kind} besides text")
    assert name in error.facts[0]


def test_a_processor_without_images_and_a_model_that_generates_text_pass(model):
    model("bert", "BertForMaskedLM", files={"processor_config.json": {"processor_class": "P"}})
    api.check("tiny.yaml")
    model("llama", "LlamaForCausalLM", files={"preprocessor_config.json": {"image_processor_type": "P"}})
    api.check("tiny.yaml")


HYBRID = {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2}


@pytest.mark.parametrize("fields", [HYBRID, {"text_config": HYBRID}])
def test_layers_with_another_past_than_keys_and_values_are_refused_for_generation_and_for_no_other_task(model, fields):
    model("lfm2", "Lfm2ForCausalLM", **fields)
    error = refused()
    assert "does not carry keys and values alone" in error.what
    assert error.facts == ("config.json has layers of another kind: conv",)
    assert "task: feature-extraction" in error.hint
    model("lfm2", "Lfm2Model", **fields)
    assert api.check("tiny.yaml")


FIELDS = {
    "FalconForSequenceClassification": ("falcon", {"alibi": True}, "ALiBi"),
    "FNetForMaskedLM": ("fnet", {"use_tpu_fourier_optimizations": True}, "one number of tokens"),
    "LongT5ForConditionalGeneration": ("longt5", {"encoder_attention_type": "transient-global"}, "shorter than"),
    "NystromformerForMaskedLM": ("nystromformer", {"segment_means_seq_len": 512}, "exactly 512 tokens"),
    "YosoForMaskedLM": ("yoso", {"use_expectation": False}, "NVIDIA"),
}


@pytest.mark.parametrize("architecture", FIELDS)
def test_a_field_with_which_an_architecture_cannot_be_built_is_refused_and_named(model, architecture):
    model_type, fields, what = FIELDS[architecture]
    kind = {"is_encoder_decoder": architecture.endswith("Generation")}
    model(model_type, architecture, **kind, **fields)
    error = refused()
    assert what in error.what
    assert next(iter(fields)) in error.facts[0]
    assert error.hint == exportable.OWN_EXPORT
    model(model_type, architecture, **kind)
    assert api.check("tiny.yaml")


@pytest.mark.parametrize("task", ["feature-extraction", "text-classification"])
def test_qwen3_next_is_refused_by_the_table(model, task):
    head = {"feature-extraction": "Model", "text-classification": "ForSequenceClassification"}[task]
    model("qwen3_next", f"Qwen3Next{head}", task=task)
    assert "grouped matrix products" in refused().facts[0]


def test_a_tokenizer_that_has_no_form_as_tokenizer_json_is_refused_with_a_hint_that_helps(model, tmp_path):
    files = {"tokenizer_config.json": {"tokenizer_class": "ByT5Tokenizer"}}
    model("t5", "T5EncoderModel", task="feature-extraction", files=files)
    error = refused()
    assert error.what == "ByT5Tokenizer has no form as tokenizer.json, which a package needs"
    assert "save_pretrained" not in error.hint
    assert "`tokenizer` beside `source`" in error.hint
    recipe = tmp_path / "tiny.yaml"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tokenizer.json").write_text('{"model": {}}')
    recipe.write_text(recipe.read_text().replace("source: model", "source: model, tokenizer: other"))
    assert api.check("tiny.yaml")
    (tmp_path / "other" / "tokenizer.json").rename(tmp_path / "other" / "tokenizer_config.json")
    (tmp_path / "other" / "tokenizer_config.json").write_text(json.dumps(files["tokenizer_config.json"]))
    assert "ByT5Tokenizer" in refused().what
