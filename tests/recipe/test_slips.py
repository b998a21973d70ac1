"""Words of other tools in a recipe: the hint translates each into the word that a recipe has for it."""

import pytest

from engine.errors import Exit, RecipeError
from engine.recipe.load import load

SLIPS = (
    ("model: bert-base-uncased", "write `model: {source: bert-base-uncased}`"),
    ("model: {source: sentence-transformers/all-MiniLM-L6-v2}", "`hf:sentence-transformers/all-MiniLM-L6-v2`"),
    ("model: {source: bert-base-uncased}", "`hf:bert-base-uncased`"),
    ("model: {source: 'https://huggingface.co/openai-community/gpt2'}", "`hf:openai-community/gpt2`"),
    ("model: {source: 'huggingface.co/openai-community/gpt2/'}", "`hf:openai-community/gpt2`"),
    ("model: {source: 'hf:a/b', task: sentiment-analysis}", "`text-classification`"),
    ("model: {source: 'hf:a/b', task: ner}", "`token-classification`"),
    ("model: {source: 'hf:a/b', task: NER}", "`token-classification`"),
    ("model: {source: 'hf:a/b', task: feature_extraction}", "`feature-extraction`"),
    ("model: {source: 'hf:a/b', task: sentence-similarity}", "`feature-extraction`"),
    ("model: {source: 'hf:a/b', task: embeddings}", "`feature-extraction`"),
    ("model: {source: 'hf:a/b', task: Summarization}", "`text2text-generation`"),
    ("model: {source: 'hf:a/b', task: translation}", "`text2text-generation`"),
    ("model: {source: 'hf:a/b', task: qa}", "`question-answering`"),
    ("model: {source: 'hf:a/b', task: causal-lm}", "`text-generation`"),
    ("model: {source: 'hf:a/b', task: text_classification}", "`text-classification`"),
    ("model: {source: 'hf:a/b'}\nprecision: [int8, fp32]", "`matrix: {precision: [int8, fp32]}`"),
    ("model: {source: 'hf:a/b'}\nprecision: float16", "`fp16`"),
    ("model: {source: 'hf:a/b'}\nprecision: half", "`fp16`"),
    ("model: {source: 'hf:a/b'}\nprecision: FP16", "`fp16`"),
    ("model: {source: 'hf:a/b'}\nprecision: fp-16", "`fp16`"),
    ("model: {source: 'hf:a/b'}\nprecision: bfloat16", "`bf16`"),
    ("model: {source: 'hf:a/b'}\nprecision: float32", "`fp32`"),
    ("model: {source: 'hf:a/b'}\nprecision: 8bit", "`int8`"),
    ("model: {source: 'hf:a/b'}\nprecision: W8A8", "`int8`"),
    ("model: {source: 'hf:a/b'}\nprecision: 4-bit", "`int4`"),
    ("model: {source: 'hf:a/b'}\ntarget: {device: T4, runtime: trt}", "`tensorrt`"),
    ("model: {source: 'hf:a/b'}\ntarget: {device: T4, runtime: TensorRT}", "`tensorrt`"),
    ("model: {source: 'hf:a/b'}\ntarget: {device: cpu, runtime: ort}", "`onnxruntime`"),
    ("model: {source: 'hf:a/b'}\ntarget: {device: cpu, runtime: OpenVINO}", "`openvino`"),
)


@pytest.mark.parametrize(("text", "mend"), SLIPS, ids=[text for text, _ in SLIPS])
def test_a_word_of_another_tool_is_translated(text, mend, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(f"name: a\n{text}\n")
    with pytest.raises(RecipeError) as refused:
        load(path)
    assert refused.value.exit is Exit.USAGE
    assert refused.value.position.line > 0
    assert mend in refused.value.hint


@pytest.mark.parametrize("source", ["model.onnx", "weights.safetensors", "../model", "a/b/c", "my model"])
def test_what_looks_like_a_file_is_no_name_on_the_hub(source, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(f"name: a\nmodel: {{source: {source}}}\n")
    with pytest.raises(RecipeError) as refused:
        load(path)
    assert "hf:" not in refused.value.hint
