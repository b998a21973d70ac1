"""What a sentence-transformers model does to hidden states, read from its files."""

import json

import pytest

from engine.errors import StepError
from engine.kit.checkpoints import sentences
from engine.kit.checkpoints.sentences import NORMALIZE, Sentences


@pytest.fixture
def model(tmp_path):
    """Write a model of those modules, whose pooling says that."""

    def write(*kinds, prompt=None, **pooling):
        modules = [{"path": f"{number}_{kind}", "type": f"sentence_transformers.models.{kind}"}
                   for number, kind in enumerate(kinds)]  # fmt: skip
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        (tmp_path / "1_Pooling").mkdir(exist_ok=True)
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"default_prompt_name": prompt}))
        return tmp_path

    return write


def test_modes_are_read_by_word_and_by_switch(model):
    plain = ("Transformer", "Pooling")
    assert sentences.load(model(*plain, pooling_mode="lasttoken")) == Sentences(("lasttoken",))
    assert sentences.load(model(*plain, pooling_mode=["mean", "cls"])) == Sentences(("mean", "cls"))
    switches = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True, "pooling_mode_max_tokens": False}
    assert sentences.load(model(*plain, **switches)) == Sentences(("cls", "mean"))
    assert sentences.load(model(*plain)) == Sentences(("mean",))


def test_vectors_are_normalized_only_where_the_model_has_a_module_for_it(model):
    assert sentences.load(model("Transformer", "Pooling", "Normalize")).layers == (NORMALIZE,)
    assert sentences.load(model("Transformer", "Pooling")).layers == ()


def test_what_is_not_known_is_named(model):
    with pytest.raises(StepError, match="Transformer, Pooling, LSTM, Normalize"):
        sentences.load(model("Transformer", "Pooling", "LSTM", "Normalize"))
    with pytest.raises(StepError, match="median"):
        sentences.load(model("Transformer", "Pooling", pooling_mode="median"))
    with pytest.raises(StepError, match="the weights of 2_Dense are no safetensors"):
        sentences.load(model("Transformer", "Pooling", "Dense"))


def test_a_prompt_is_that_of_the_model_or_of_the_recipe(model):
    folder = model("Transformer", "Pooling", prompt="query")
    settings = {"prompts": {"query": "q: ", "passage": "p: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    assert sentences.prompt(folder) == "q: "
    sentences.apply(folder, prompt="passage", truncate_dim=8)
    assert sentences.prompt(folder) == "p: "
    assert sentences.load(folder).truncate_dim == 8
    with pytest.raises(StepError, match=r"no prompt called 'document'(.|\n)*query, passage"):
        sentences.choose(folder, prompt="document", truncate_dim=None)


def test_a_directory_without_modules_is_no_such_model_unless_it_is_a_very_old_one(tmp_path):
    assert sentences.load(tmp_path) is None
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert sentences.load(tmp_path) == Sentences(("cls",))
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(StepError, match=r"modules\.json of the model is no valid JSON"):
        sentences.load(tmp_path)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["cls"]}, "cls"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, None),
        ({"pooling_mode_weightedmean_tokens": True}, None),
        ({}, "mean"),
    ],
)
def test_pooling_is_the_only_mode_and_none_where_it_is_another(model, config, pooling):
    assert sentences.pooling(model("Transformer", "Pooling", **config)) == pooling


def test_a_model_without_a_pooling_module_has_no_pooling(tmp_path):
    assert sentences.pooling(tmp_path) is None
    assert not sentences.has_pooling(tmp_path)
