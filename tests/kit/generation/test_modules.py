"""Models that generate, as graphs: what they are called, and what they answer call after call."""

from __future__ import annotations

import generators
import numpy as np
import onnx
import pytest
import torch
import transformers

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.generation import caches, modules
from engine.kit.onnx import graphs, onnx_files
from engine.kit.reference import torch_models
from engine.runtimes.onnxruntime import generation as driver
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export, _difference

LAYERS = range(2)
HEADS = {"llama": 2}


ALIKE = {
    name: pytest.mark.whole(f"gpt2, llama and t5 always run: {name} has other names for the same")
    for name in ("opt", "bart")
}


@pytest.fixture(scope="module", params=[pytest.param(each, marks=ALIKE.get(each, ())) for each in generators.FAMILIES])
def exported_family(request, tmp_path_factory):
    """A family, its checkpoint, and the artifact of its export: do not write into them."""
    folder = tmp_path_factory.mktemp(request.param)
    directory = generators.checkpoint(folder / "checkpoint", request.param)
    report = Export().run(folder / "exported", checkpoint=directory)
    assert report.exporter == "torchscript"
    return request.param, directory, folder / "exported"


def carried(prefix, length, heads, part=""):
    return {
        f"{prefix}.{layer}.{part}{kind}": ("float32", ("batch", heads, length, 8))
        for layer in LAYERS
        for kind in ("key", "value")
    }


def read(directory):
    """Return the inputs and outputs of a graph: name -> type and axes."""
    model = onnx_files.load_graph(directory)
    assert not {node.op_type for node in onnx_files.nodes(model)} & {"If", "Loop"}
    sides = onnx_files.inputs(model), onnx_files.outputs(model)
    return [{name: (value.dtype, value.shape) for name, value in side.items()} for side in sides]


def prompts(directory, *texts):
    """Return texts as the original's own tokenizer has them, padded on the left."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    rows = tokenizer(list(texts), return_tensors="pt", padding=True)
    return {name: rows[name] for name in ("input_ids", "attention_mask")}


def test_a_graph_with_a_past_takes_and_gives_what_was_agreed(exported_family):
    family, directory, exported = exported_family
    vocabulary = checkpoints.config(directory)["vocab_size"]
    logits = {"logits": ("float32", ("batch", "sequence", vocabulary))}
    heads = HEADS.get(family, 4)
    if family not in generators.BEHIND_AN_ENCODER:
        assert graphs.folders(exported) == (".",)
        taken, given = read(exported)
        assert taken == {
            "input_ids": ("int64", ("batch", "sequence")),
            "attention_mask": ("int64", ("batch", "total_sequence")),
            "position_ids": ("int64", ("batch", "sequence")),
            **carried("past_key_values", "past_sequence", heads),
        }
        assert given == {**logits, **carried("present", "total_sequence", heads)}
        return
    assert graphs.folders(exported) == ("encoder", "decoder")
    seen = ("int64", ("batch", "encoder_sequence"))
    taken, given = read(exported / "encoder")
    assert taken == {"input_ids": seen, "attention_mask": seen}
    assert given == carried("present", "encoder_sequence", heads, "encoder.")
    taken, given = read(exported / "decoder")
    assert taken == {
        "input_ids": ("int64", ("batch", "sequence")),
        "encoder_attention_mask": seen,
        **carried("past_key_values", "encoder_sequence", heads, "encoder."),
        **carried("past_key_values", "past_sequence", heads, "decoder."),
    }
    assert given == {**logits, **carried("present", "total_sequence", heads, "decoder.")}


def test_graphs_run_call_after_call_generate_what_the_original_does(exported_family):
    """The oracle is `generate()` of transformers, which has a cache of its own."""
    _, directory, exported = exported_family
    task = checkpoints.task(directory, None)
    kind = transformers.AutoModelForSeq2SeqLM if task == "text2text-generation" else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(directory).eval()
    rows = prompts(directory, "Once upon a time there was", "the dog", "a house in the woods; nobody")
    assert task == "text2text-generation" or not rows["attention_mask"].all()
    expected = model.generate(
        **rows, max_new_tokens=9, do_sample=False, num_beams=1, eos_token_id=None, forced_eos_token_id=None
    )
    sessions = [ort.session(exported / folder, threads=1) for folder in graphs.folders(exported)]
    inputs = {name: tensor.numpy() for name, tensor in rows.items()}
    got = driver.generate(sessions, inputs, 9, start=modules.start(model))
    np.testing.assert_array_equal(got, expected[:, -9:].numpy())


def test_the_driver_answers_as_one_pass_of_the_original_however_short_the_row(exported_family):
    _, directory, exported = exported_family
    original = torch_models.load(directory, checkpoints.task(directory, None))
    runner = driver.runner(exported, name="built", threads=1)
    for length in (1, 2, 3, 8):
        ids = np.random.default_rng(length).integers(4, 50, (2, length))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if modules.DECODER_TOKENS in original.input_names:
            inputs = {"input_ids": ids[:, :2], "attention_mask": np.ones_like(ids[:, :2]), modules.DECODER_TOKENS: ids}
        expected = torch_models.call(original, inputs)["logits"]
        answer = runner.run(inputs)["logits"]
        np.testing.assert_allclose(answer, expected, atol=1e-3 * abs(expected).max(), err_msg=f"{length} tokens")


def test_an_original_continues_its_own_answer_the_same_in_every_run(exported_family):
    family, directory, _ = exported_family
    original = torch_models.load(directory, checkpoints.task(directory, None))
    ids = np.array([[5, 6, 7]])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    first, second = (torch_models.complete(original, inputs) for _ in range(2))
    if family not in generators.BEHIND_AN_ENCODER:
        assert first.keys() == inputs.keys()
        return
    tokens = first["decoder_input_ids"]
    np.testing.assert_array_equal(tokens, second["decoder_input_ids"])
    expected = original.model.generate(torch.tensor(ids), max_new_tokens=12, num_beams=1, eos_token_id=None,
                                   forced_eos_token_id=None)  # fmt: skip
    np.testing.assert_array_equal(tokens, expected.numpy())


def test_a_graph_that_mixes_up_its_past_is_noticed(exported_family, tmp_path):
    """What export compares is what a graph answers with a past, not only its first answer."""
    family, directory, exported = exported_family
    mixed = tmp_path / "mixed"
    onnx_files.link(exported, mixed)
    folder = mixed / graphs.folders(exported)[-1]
    model = onnx.load(folder / "model.onnx")
    part = "decoder." if family in generators.BEHIND_AN_ENCODER else ""
    for node in model.graph.node:  # the keys of layer 0 as those of layer 1
        for place, name in enumerate(node.input):
            if name == f"past_key_values.0.{part}key":
                node.input[place] = f"past_key_values.1.{part}key"
    (folder / "model.onnx").unlink()
    onnx.save(model, folder / "model.onnx")
    original = torch_models.load(directory, checkpoints.task(directory, None))
    answers = [driver.runner(place, name="built", threads=1).run for place in (exported, mixed)]
    assert _difference(original, answers[0], 48) is None
    assert "logits is off by" in _difference(original, answers[1], 48)


@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_the_past_has_the_name_that_forward_gives_it(name, monkeypatch):
    """transformers 5.24 has renamed the argument; the model's own name is in `usual`."""
    config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    [usual] = caches.argument(model, None)
    forward = model.forward
    names = {
        "cache": lambda input_ids, attention_mask, use_cache, cache: forward(
            input_ids, attention_mask=attention_mask, use_cache=use_cache, **{usual: cache}
        ),
        "past_key_values": lambda input_ids, attention_mask, use_cache, past_key_values: forward(
            input_ids, attention_mask=attention_mask, use_cache=use_cache, **{usual: past_key_values}
        ),
    }
    monkeypatch.setattr(model, "forward", names[name])
    assert caches.layers(model) == [caches.Layer(heads=2, key=8, value=8)] * 2


def test_a_state_that_is_no_past_is_refused(tmp_path):
    config = transformers.MambaConfig(vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    original = torch_models.load(tmp_path, "text-generation")
    with pytest.raises(StepError, match="MambaForCausalLM does not carry keys and values from token to token"):
        modules.with_past(original)
