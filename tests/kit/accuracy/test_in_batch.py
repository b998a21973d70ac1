import numpy as np
import pytest
import torch
import transformers

from engine.kit.accuracy import in_batch, outputs, thresholds
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import Padding

LEAST = thresholds.in_batch("fp32", None)
W = np.random.default_rng(0).normal(size=(8, 8)).astype("f4")


def rows(*, count=5, shape=(8,), dtype="f4", name="x"):
    """Return random batches of several sizes, as the reference has them for a model with tensors."""
    generator = np.random.default_rng(1)
    drawn = [generator.normal(size=(size, *shape)).astype(dtype) for size in (1, 2, count)]
    return [Case(f"random {number}", "", "random", {name: each}, {}) for number, each in enumerate(drawn, 1)]


def texts(*, mask=True, vocabulary=90, lengths=(3, 5, 9, 14, 6, 11)):
    """Return texts as tokens, each alone."""
    generator = np.random.default_rng(2)
    cases = []
    for number, length in enumerate(lengths, 1):
        inputs = {"input_ids": generator.integers(5, vocabulary, (1, length))}
        if mask:
            inputs["attention_mask"] = np.ones((1, length), np.int64)
        cases.append(Case(f"line {number}", "", "sample", inputs, {}))
    return cases


def measured(answer, cases, *, padding=None, pooling=None, takes=lambda _: True):
    answered = [Case(case.name, "", case.kind, case.inputs, answer(case.inputs)) for case in cases]
    usual = outputs.usual(answered, pooling=pooling)
    return in_batch.measure(answer, answered, padding=padding, pooling=pooling, usual=usual, takes=takes)


def worst(rows_of_batch):
    return min(row.likeness for row in rows_of_batch)


def depends(result):
    return result.reason is not None or worst(result.equal) < LEAST


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


DEPENDENT = {
    "softmax over the batch": lambda x: softmax(x @ W, 0),
    "hardmax over the batch": lambda x: (x == x.max(axis=0)).astype("f4"),
    "divided by the largest number": lambda x: x / abs(x).max(),
    "less the mean of the batch": lambda x: x - x.mean(axis=0),
    "less a part of the mean of the batch": lambda x: x - 0.02 * x.mean(axis=0),
    "divided by the length of a column": lambda x: x / np.linalg.norm(x, axis=0),
    "batch norm in training": lambda x: (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5),
    "cumulative sum along the batch": lambda x: np.cumsum(x, axis=0),
    "cumulative sum from the last row": lambda x: np.cumsum(x[::-1], axis=0)[::-1],
    "the first row": lambda x: x - x[:1],
    "the last row": lambda x: x + x[-1:],
    "rows backwards": lambda x: x[::-1],
    "the number of rows": lambda x: x / len(x),
    "attention among rows": lambda x: softmax(x @ x.T, 1) @ x,
    "the largest row": lambda x: x + x.max(axis=0),
    "clipped to the mean of all": lambda x: np.maximum(x, x.mean()),
    "a switch by the sum of all": lambda x: x if x.sum() > 6 else x * 0,
    "layer norm of the whole batch": lambda x: (x - x.mean()) / x.std(),
    "two rows of output for each": lambda x: x.reshape(-1, 4),
    "rows by value": lambda x: np.argwhere(x > 0),
    "one number for all": lambda x: x.mean(keepdims=True),
    "columns first": lambda x: x.T,
    "the class of the batch": lambda x: x * x.sum(axis=0),
    "sorted columns": lambda x: np.sort(x, axis=0),
    "the median of the batch": lambda x: x - np.median(x, axis=0),
    "a quantile of the batch": lambda x: np.clip(x, None, np.quantile(x, 0.6, axis=0)),
    "ranks in the batch": lambda x: x.argsort(axis=0).argsort(axis=0).astype("f4"),
    "cumulative products": lambda x: np.cumprod(x, axis=0),
    "divided by the spread": lambda x: x / (x.std(axis=0) + 0.1),
    "whitened": lambda x: x @ np.linalg.inv(x.T @ x + np.eye(8)),
    "the next row": lambda x: np.roll(x, 1, axis=0),
    "differences of rows": lambda x: np.diff(x, axis=0, prepend=0),
    "the running maximum": lambda x: np.maximum.accumulate(x, axis=0),
    "between 0 and 1": lambda x: (x - x.min()) / (x.max() - x.min()),
    "less the logarithm of a sum": lambda x: x - np.log(np.exp(x).sum(axis=0)),
    "the place of a row": lambda x: x * np.arange(1, len(x) + 1)[:, None],
    "by the root of the number of rows": lambda x: x / len(x) ** 0.5,
    "only the largest numbers": lambda x: np.where(x >= np.sort(x.ravel())[-8], x, 0),
    "the number of the largest row": lambda x: np.full((len(x), 1), x.sum(axis=1).argmax()),
    "whether another row is larger": lambda x: x.sum(axis=1, keepdims=True) < x.sum(axis=1).max(),
    "half of each number from the first row": lambda x: x / 2 + x[:1] / 2,
    "similarity to the other rows": lambda x: (x @ x.T).sum(axis=1, keepdims=True),
    "rounded by the largest number": lambda x: np.round(x / abs(x).max() * 127) * abs(x).max() / 127,
}
INDEPENDENT = {
    "product": lambda x: x @ W,
    "softmax of a row": lambda x: softmax(x @ W, 1),
    "divided by the row's largest": lambda x: x / x.max(axis=1, keepdims=True) @ W,
    "layer norm of a row": lambda x: (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-5),
    "cumulative sum of a row": lambda x: np.cumsum(x, axis=1),
    "the first column": lambda x: x - x[:, :1],
    "columns backwards": lambda x: x[:, ::-1],
    "the number of columns": lambda x: x / x.shape[1],
    "one number a row": lambda x: x.mean(axis=1, keepdims=True),
    "one bare number a row": lambda x: x.mean(axis=1),
    "the best class": lambda x: x.argmax(axis=1),
    "truth": lambda x: x > 0,
    "two rows inside a row": lambda x: x.reshape(-1, 2, 4),
    "tiny numbers": lambda x: x * np.float32(1e-7),
    "huge numbers": lambda x: x * np.float32(1e12),
    "zeros": lambda x: x * 0,
    "not a number": np.log,
    "infinity": lambda x: x / np.float32(0),
    "quantized with one scale for all": lambda x: np.round(x / 0.02) * 0.02,
    "sorted numbers": lambda x: np.sort(x, axis=1),
    "the median of a row": lambda x: x - np.median(x, axis=1, keepdims=True),
    "a quantile of a row": lambda x: np.clip(x, None, np.quantile(x, 0.6, axis=1)[:, None]),
    "ranks in a row": lambda x: x.argsort(axis=1).argsort(axis=1).astype("f4"),
    "cumulative products of a row": lambda x: np.cumprod(x, axis=1),
    "divided by the spread of a row": lambda x: x / (x.std(axis=1, keepdims=True) + 0.1),
    "the next number": lambda x: np.roll(x, 1, axis=1),
    "differences of numbers": lambda x: np.diff(x, axis=1, prepend=0),
    "the running maximum of a row": lambda x: np.maximum.accumulate(x, axis=1),
    "a row between 0 and 1": lambda x: (x - x.min(1)[:, None]) / (x.max(1) - x.min(1))[:, None],
    "the place of a number": lambda x: x * np.arange(1, 9),
    "only the largest numbers of a row": lambda x: np.where(x >= np.sort(x, axis=1)[:, -2:-1], x, 0),
    "the number of the largest": lambda x: x.argmax(axis=1)[:, None],
    "a constant": lambda x: np.ones((len(x), 2), "f4"),
    "outer products": lambda x: x[:, :, None] * x[:, None, :],
    "signs": np.sign,
    "exponentials": np.exp,
    "text": lambda x: np.where(x > 0, "up", "down").astype(object),
    "rounded by the largest number of a row": lambda x: np.round(x / abs(x).max(1)[:, None] * 127),
    "norms": lambda x: np.linalg.norm(x, axis=1),
    "tiny differences of rounding": lambda x: x * (1 + 1e-7 * len(x)),
}


def answering(function):
    return lambda inputs: {"y": function(inputs["x"])}


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_model_whose_rows_depend_on_each_other_is_noticed(name):
    assert depends(measured(answering(DEPENDENT[name]), rows()))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_model_whose_rows_stand_alone_is_not_suspected(name):
    result = measured(answering(INDEPENDENT[name]), rows())
    assert result.reason is None
    assert worst(result.equal) >= LEAST


def tiny(model_type, **more):
    torch.manual_seed(0)
    shared = {
        "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    }  # fmt: skip
    config = transformers.AutoConfig.for_model(model_type, **{**shared, "pad_token_id": 1, "num_labels": 4, **more})
    config._attn_implementation = "eager"
    model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    for weight in model.parameters():  # random heads are nearly blind otherwise
        weight.data *= 3 if weight.ndim > 1 else 1

    def answer(inputs):
        with torch.no_grad():
            given = {name: torch.tensor(array) for name, array in inputs.items()}
            return {"logits": model(**given).logits.numpy()}

    return answer


GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
XLNET = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
MODERNBERT = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
BY_PADDING = {
    "bert, left": ("bert", "left", True, {}),
    "electra, left": ("electra", "left", True, {"embedding_size": 32}),
    "albert, left": ("albert", "left", True, {"embedding_size": 32}),
    "roberta, left": ("roberta", "left", True, {}),
    "gpt2, left": ("gpt2", "left", True, GPT2),
    "bert without a mask": ("bert", "right", False, {}),
    "bert without a mask, left": ("bert", "left", False, {}),
    "electra without a mask": ("electra", "right", False, {"embedding_size": 32}),
    "distilbert without a mask": ("distilbert", "right", False, DISTILBERT),
    "xlnet without a mask": ("xlnet", "right", False, XLNET),
    "fnet": ("fnet", "right", False, {}),
}  # fmt: skip
WHATEVER_THE_PADDING = {
    "bert": ("bert", "right", True, {}),
    "electra": ("electra", "right", True, {"embedding_size": 32}),
    "albert": ("albert", "right", True, {"embedding_size": 32}),
    "roberta": ("roberta", "right", True, {}),
    "distilbert": ("distilbert", "right", True, DISTILBERT),
    "gpt2": ("gpt2", "right", True, GPT2),
    "llama, left": ("llama", "left", True, {"num_key_value_heads": 2}),
    "mpnet": ("mpnet", "right", True, {}),
    "modernbert": ("modernbert", "right", True, MODERNBERT),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_PADDING)
def test_a_model_that_padding_changes_is_noticed_and_joins_texts_of_equal_lengths(name):
    model_type, side, mask, more = BY_PADDING[name]
    result = measured(tiny(model_type, **more), texts(mask=mask), padding=Padding(1, side))
    assert worst(result.equal) >= LEAST
    assert worst(result.padded) < LEAST


@pytest.mark.parametrize("name", WHATEVER_THE_PADDING)
def test_a_model_that_padding_does_not_change_is_not_suspected(name):
    model_type, side, mask, more = WHATEVER_THE_PADDING[name]
    result = measured(tiny(model_type, **more), texts(mask=mask), padding=Padding(1, side))
    assert worst([*result.equal, *result.padded]) >= LEAST


def more_than_eight(inputs):
    return {"y": inputs["x"] * (2 if len(inputs["x"]) > 8 else 1)}


def counted(inputs):
    """Each row times the number of rows that are equal to it."""
    equal = (inputs["x"][:, None] == inputs["x"][None]).all(axis=2).sum(axis=1)
    return {"y": inputs["x"] * equal[:, None]}


def as_long_as_the_largest(inputs):
    return {"y": np.ones((len(inputs["x"]), 1 + int(abs(inputs["x"]).max())), "f4")}


@pytest.mark.parametrize("answer", [more_than_eight, counted, as_long_as_the_largest])
def test_many_rows_equal_rows_and_outputs_of_another_size_are_noticed(answer):
    assert depends(measured(answer, rows(count=16)))


def test_a_row_of_another_length_counts_although_its_direction_is_the_same():
    result = measured(answering(DEPENDENT["divided by the largest number"]), rows())
    assert worst(result.equal) < 0.9


def test_a_model_of_one_batch_size_is_not_measured():
    fixed = [Case("one", "", "tensors", {"x": np.ones((1, 3), "f4")}, {})]

    def only_one(inputs):
        if len(inputs["x"]) > 1:
            raise ValueError("one row only")
        return {"y": inputs["x"]}

    assert measured(only_one, fixed) is None
    assert measured(lambda inputs: {"y": inputs["x"]}, fixed, takes=lambda inputs: len(inputs["x"]) == 1) is None


def test_a_model_that_fails_on_several_rows_although_its_batch_is_free_joins_none():
    def at_most_two(inputs):
        if len(inputs["x"]) not in (1, 2, 5):
            raise ValueError("no")
        return {"y": inputs["x"]}

    result = measured(at_most_two, rows(count=5))
    assert result.reason == "the model fails on several rows together"


def test_the_rows_are_as_many_as_the_model_takes():
    result = measured(answering(DEPENDENT["the first row"]), rows(), takes=lambda inputs: len(inputs["x"]) <= 2)
    assert len(result.equal) == 1
    with_three = measured(answering(INDEPENDENT["product"]), rows(), takes=lambda inputs: len(inputs["x"]) <= 4)
    assert len(with_three.equal) == 2
