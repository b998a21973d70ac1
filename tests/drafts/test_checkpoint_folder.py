"""The draft of a checkpoint: profiles by the model's own limits, no task that nobody states."""

import json

import heads
import models
import pytest

from engine.drafts import checkpoint_folder
from engine.drafts.draft import Draft
from engine.errors import StepError, UsageError


def test_the_least_limit_of_tokens_counts(tmp_path):
    config = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 90, "max_position_embeddings": 64}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48}))
    draft = Draft({"name": "it"})
    checkpoint_folder.add(draft, tmp_path, task=None, on="cpu")
    assert draft.fields["profiles"] == [{"batch": [1, 1, 8], "sequence": [1, 48, 48]}]
    assert draft.fields["model"]["task"] == "feature-extraction"


def test_a_task_is_not_guessed(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 90}))
    with pytest.raises(UsageError, match="does not say what it is for") as refused:
        checkpoint_folder.add(Draft({"name": "it"}), tmp_path, task=None, on="cpu")
    assert refused.value.hint.startswith("name one of these with --task")


@pytest.mark.parametrize(
    ("file", "fields", "why"),
    [
        ("config.json", {"id2label": {"1": "a", "2": "b"}}, "the classes 1, 2; the model has 0, 1"),
        ("config.json", {"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}}, "scores are Tanh"),
    ],
)
def test_what_check_refuses_gets_no_draft(tmp_path, file, fields, why):
    place = models.checkpoint(tmp_path / "model", task="text-classification")
    heads.edit(place / file, **fields)
    with pytest.raises(StepError, match=why):
        checkpoint_folder.add(Draft(str(place)), place, task=None, on=None)


def test_texts_of_one_length_have_no_axis_for_it(tmp_path):
    fields = {"model_type": "siglip_text_model", "architectures": ["SiglipTextModel"], "vocab_size": 90}
    (tmp_path / "config.json").write_text(json.dumps({**fields, "max_position_embeddings": 64}))
    draft = Draft({"name": "it"})
    checkpoint_folder.add(draft, tmp_path, task="feature-extraction", on="cpu")
    assert draft.fields["profiles"] == [{"batch": [1, 1, 8]}]
    assert draft.fields["bench"]["shapes"] == [{"batch": 1}]


def test_a_graph_of_one_size_gets_the_longest_side_of_the_image_processor(tmp_path):
    fields = {"model_type": "deformable_detr", "architectures": ["DeformableDetrForObjectDetection"]}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    size = {"shortest_edge": 48, "longest_edge": 80}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"do_resize": True, "size": size}))
    draft = Draft({"name": "it"})
    checkpoint_folder.add(draft, tmp_path, task=None, on="cpu")
    assert draft.fields["preprocess"] == {"size": {"height": 80, "width": 80}}
    assert draft.fields["profiles"] == [{"batch": [1, 1, 8]}]
