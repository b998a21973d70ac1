"""Large models are built where the memory of a machine is limited, and each job's record tells what the job took."""

import json
import sys

import models
import peak_memory
import pytest

MB, GB = 1 << 20, 1 << 30
RECIPE = {
    "name": "large",
    "model": {"source": "model"},
    "precision": "int8",
    "profiles": [{"batch": [1, 1, 2], "sequence": [1, 8, 16]}],
    "validate": {"samples": "few.jsonl", "cosine": -1, "agreement": 0, "max_abs": 1000, "variation": 0, "in_batch": -1},
    "bench": {"shapes": [{"batch": 1, "sequence": 8}], "against": []},
}
"""A recipe whose bounds let random weights pass: this is about memory."""
TEXTS = ("the train was good", "a boring film", "we ship models")
GRAPH_STEPS = ("shape-infer", "fuse", "quantize")


def bert(folder):
    """Save a BERT of 613 million parameters, in fp32. The largest tensor is the table of words."""
    sizes = {"vocab_size": 30522, "hidden_size": 1536, "num_hidden_layers": 20, "num_attention_heads": 16,
             "intermediate_size": 6144, "max_position_embeddings": 512}  # fmt: skip
    models.checkpoint(folder, task="feature-extraction", **sizes)
    return 30522 * 1536 * 4


def llama(folder):
    """Save a Llama of 1236 million parameters in bf16, with the sizes of Llama 3.2 1B."""
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=2048, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    torch.set_default_dtype(torch.bfloat16)
    try:
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    finally:
        torch.set_default_dtype(torch.float32)
    models.save_tokenizer(folder)
    return 128256 * 2048 * 4


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("save", [bert, llama])
def test_a_large_model_is_built_on_a_machine_of_8_gb(save, tmp_path, capsys):
    largest = save(tmp_path / "model")
    (tmp_path / "r.yaml").write_text(json.dumps(RECIPE))
    (tmp_path / "few.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    with peak_memory.group_or_skip(8 * GB) as group:
        # One job at a time: `export` and `reference` both hold the original's weights in fp32.
        words = [sys.executable, "-m", "engine", "build", "r.yaml", "-j", "1"]
        peak_memory.of_command(words, group, folder=tmp_path)
    words = [sys.executable, "-m", "engine", "show", "r.yaml"]
    with capsys.disabled():
        print(f"\n{peak_memory.of_command(words, folder=tmp_path).printed}")
    [shown] = json.loads(peak_memory.of_command([*words, "--json"], folder=tmp_path).printed)
    jobs = {each["job"]: each for each in shown["steps"]}
    assert jobs["export"]["anonymous_bytes"] < 1.3 * jobs["export"]["bytes"] + GB / 2
    took = {name: jobs[name]["anonymous_bytes"] for name in GRAPH_STEPS}
    assert {name: size for name, size in took.items() if size > 1.3 * largest + GB} == {}
    assert min(job["peak_bytes"] for job in jobs.values()) > MB
