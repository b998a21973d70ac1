import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers
from onnx import TensorProto, helper, numpy_helper

from engine.kit.accuracy import in_batch, outputs, thresholds
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import Padding

LEAST = thresholds.in_batch("fp32", None)
RNG = np.random.default_rng(0)
W = RNG.normal(size=(8, 8)).astype("f4")


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


def graph(*nodes, out=("batch", 8), dtype=TensorProto.FLOAT, inits=(), opset=20, kind=TensorProto.FLOAT, shape=(8,)):
    """Return the function that runs a graph from x [batch, ...] to y."""
    body = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info("x", kind, ["batch", *shape])],
        [helper.make_tensor_value_info("y", dtype, list(out))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (("W", W), *inits)],
    )  # fmt: skip
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda inputs: {"y": session.run(["y"], {"x": inputs["x"]})[0]}


def node(kind, takes, gives="y", **attributes):
    return helper.make_node(kind, takes.split(), gives.split(), **attributes)


ZERO = ("zero", np.array([0]))
ONE = ("one", np.array([1]))
PRODUCT = node("MatMul", "x W", "h")
SCALE = ("ones", np.ones(8, "f4"))
NONE = ("none", np.zeros(8, "f4"))
QUANTIZED = (
    node("DynamicQuantizeLinear", "x", "q s z"),
    node("MatMulInteger", "q V z", "i"),
    node("Cast", "i", "f", to=TensorProto.FLOAT),
    node("Mul", "f s"),
)
V = ("V", RNG.integers(-100, 100, (8, 8)).astype("i1"))
ROWS_APART = (
    node("ReduceMax", "x one", "m", keepdims=1),
    node("Div", "x m", "d"),
    node("MatMul", "d W"),
)

DEPENDENT = {
    "softmax over the batch": graph(PRODUCT, node("Softmax", "h", axis=0)),
    "log-softmax over the batch": graph(PRODUCT, node("LogSoftmax", "h", axis=0)),
    "hardmax over the batch": graph(PRODUCT, node("Hardmax", "h", axis=0)),
    "divided by the largest number": graph(
        node("Abs", "x", "a"), node("ReduceMax", "a", "m", keepdims=1), node("Div", "x m")
    ),
    "divided by the sum over the batch": graph(
        node("Exp", "x", "a"), node("ReduceSum", "a zero", "m", keepdims=1), node("Div", "a m"), inits=[ZERO]
    ),
    "less the mean of the batch": graph(
        node("ReduceMean", "x zero", "m", keepdims=1), node("Sub", "x m"), inits=[ZERO]
    ),
    "less a thousandth of the mean of the batch": graph(
        node("ReduceMean", "x zero", "m", keepdims=1), node("Mul", "m c", "n"), node("Sub", "x n"),
        inits=[ZERO, ("c", np.array(0.02, "f4"))],
    ),
    "divided by the length of a column": graph(
        node("ReduceL2", "x zero", "m", keepdims=1), node("Div", "x m"), inits=[ZERO]
    ),
    "batch norm in training": graph(
        node("BatchNormalization", "x ones none none ones", "y m v", training_mode=1), inits=[SCALE, NONE]
    ),
    "cumulative sum along the batch": graph(node("CumSum", "x axis"), inits=[("axis", np.array(0))]),
    "the first row": graph(node("Gather", "x zero", "g", axis=0), node("Sub", "x g"), inits=[ZERO]),
    "the last row": graph(node("Gather", "x last", "g", axis=0), node("Add", "x g"), inits=[("last", np.array([-1]))]),
    "rows backwards": graph(
        node("Slice", "x from to zero back"),
        inits=[ZERO, ("from", np.array([-1])), ("to", np.array([-(2**62)])), ("back", np.array([-1]))],
    ),
    "the number of rows": graph(
        node("Shape", "x", "s", start=0, end=1), node("Cast", "s", "n", to=TensorProto.FLOAT), node("Div", "x n")
    ),
    "attention among rows": graph(
        node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "x t", "a"), node("Softmax", "a", "p", axis=1),
        node("MatMul", "p x"),
    ),
    "rows sorted": graph(
        node("Shape", "x", "n", start=0, end=1), node("TopK", "x n", "y i", axis=0)
    ),
    "the largest row": graph(node("ReduceMax", "x zero", "m", keepdims=1), node("Add", "x m"), inits=[ZERO]),
    "clipped to the mean of all": graph(node("ReduceMean", "x", "m", keepdims=0), node("Clip", "x m")),
    "a switch by the sum of all": graph(
        node("ReduceSum", "x", "m", keepdims=0), node("Greater", "m c", "b"), node("Where", "b x d"),
        inits=[("c", np.array(6, "f4")), ("d", np.zeros((1, 8), "f4"))],
    ),
    "foreign dynamic int8": graph(*QUANTIZED, inits=[V]),
    "layer norm of the whole batch": graph(
        node("ReduceMean", "x", "m", keepdims=1), node("Sub", "x m", "c"), node("Mul", "c c", "q"),
        node("ReduceMean", "q", "v", keepdims=1), node("Sqrt", "v", "s"), node("Div", "c s"),
    ),
    "instance norm with the batch as channel": graph(
        node("Transpose", "x", "t", perm=[1, 0]), node("Unsqueeze", "t zero", "u"),
        node("ReduceMean", "u two", "m", keepdims=1), node("Sub", "u m", "c"), node("Squeeze", "c zero", "d"),
        node("Transpose", "d", "e", perm=[1, 0]), node("CumSum", "e axis"),
        inits=[ZERO, ("two", np.array([2])), ("axis", np.array(0))],
    ),
    "two rows of output for each": graph(node("Reshape", "x s"), out=("rows", 4), inits=[("s", np.array([-1, 4]))]),
    "rows by value": graph(
        node("Relu", "x", "h"), node("NonZero", "h", "i"), node("Transpose", "i"), out=("k", 2), dtype=TensorProto.INT64
    ),
    "one number for all": graph(node("ReduceMean", "x"), out=(1, 1)),
    "columns first": graph(node("Transpose", "x", perm=[1, 0]), out=(8, "batch")),
    "cumulative sum from the last row": graph(
        PRODUCT, node("CumSum", "h axis", reverse=1), inits=[("axis", np.array(0))]
    ),
    "the class of the batch": graph(node("ReduceSum", "x zero", "m", keepdims=1), node("Mul", "x m"), inits=[ZERO]),
    "noise by place": graph(
        node("Shape", "x", "n", start=0, end=1), node("Squeeze", "n", "k"), node("Range", "o k i", "r"),
        node("Cast", "r", "f", to=TensorProto.FLOAT),
        node("Unsqueeze", "f one", "u"), node("Add", "x u"), inits=[ONE, ("o", np.array(0)), ("i", np.array(1))],
    ),
}  # fmt: skip

INDEPENDENT = {
    "product": graph(node("MatMul", "x W")),
    "softmax of a row": graph(PRODUCT, node("Softmax", "h", axis=1)),
    "log-softmax of a row": graph(PRODUCT, node("LogSoftmax", "h", axis=1)),
    "hardmax of a row": graph(PRODUCT, node("Hardmax", "h", axis=1)),
    "divided by the row's largest": graph(*ROWS_APART, inits=[ONE]),
    "batch norm": graph(node("BatchNormalization", "x ones none none ones"), inits=[SCALE, NONE]),
    "layer norm": graph(node("LayerNormalization", "x ones none", axis=1), inits=[SCALE, NONE]),
    "cumulative sum of a row": graph(node("CumSum", "x axis"), inits=[("axis", np.array(1))]),
    "the first column": graph(node("Gather", "x zero", "g", axis=1), node("Sub", "x g"), inits=[ZERO]),
    "columns backwards": graph(
        node("Slice", "x from to one back"),
        inits=[ONE, ("from", np.array([-1])), ("to", np.array([-(2**62)])), ("back", np.array([-1]))],
    ),
    "the number of columns": graph(
        node("Shape", "x", "s", start=1, end=2), node("Cast", "s", "n", to=TensorProto.FLOAT), node("Div", "x n")
    ),
    "columns sorted": graph(node("TopK", "x eight", "y i", axis=1), inits=[("eight", np.array([8]))]),
    "one number a row": graph(node("ReduceMean", "x one", keepdims=1), out=("batch", 1), inits=[ONE]),
    "one bare number a row": graph(node("ReduceMean", "x one", keepdims=0), out=("batch",), inits=[ONE]),
    "the best class": graph(node("ArgMax", "x", axis=1, keepdims=0), out=("batch",), dtype=TensorProto.INT64),
    "truth": graph(node("Greater", "x x"), dtype=TensorProto.BOOL),
    "two rows inside a row": graph(node("Reshape", "x s"), out=("batch", 2, 4), inits=[("s", np.array([0, 2, 4]))]),
    "tiny numbers": graph(node("Mul", "x c"), inits=[("c", np.array(1e-7, "f4"))]),
    "huge numbers": graph(node("Mul", "x c"), inits=[("c", np.array(1e12, "f4"))]),
    "constant": graph(node("Mul", "x c"), inits=[("c", np.array(0, "f4"))]),
    "not a number": graph(node("Log", "x")),
    "infinity": graph(node("Div", "x c"), inits=[("c", np.array(0, "f4"))]),
    "gelu": graph(PRODUCT, node("Gelu", "h")),
    "erf": graph(PRODUCT, node("Erf", "h")),
    "row times itself": graph(node("Mul", "x x")),
    "norm of a row": graph(node("LpNormalization", "x", axis=1)),
    "mean and back": graph(node("ReduceMean", "x one", "m", keepdims=1), node("Sub", "x m"), inits=[ONE]),
    "there and back": graph(node("Transpose", "x", "t", perm=[1, 0]), node("Transpose", "t", perm=[1, 0])),
    "clip": graph(node("Clip", "x low"), inits=[("low", np.array(0, "f4"))]),
    "quantized with one scale for all": graph(
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z"),
        inits=[("s", np.array(0.02, "f4")), ("z", np.array(0, "i1"))],
    ),
}  # fmt: skip


OVER_ROWS = {
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
WITHIN_ROWS = {
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


DEPENDENT |= {name: answering(function) for name, function in OVER_ROWS.items()}
INDEPENDENT |= {name: answering(function) for name, function in WITHIN_ROWS.items()}


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_graph_whose_rows_depend_on_each_other_is_noticed(name):
    assert depends(measured(DEPENDENT[name], rows()))


@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_graph_whose_rows_stand_alone_is_not_suspected(name):
    result = measured(INDEPENDENT[name], rows())
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
    result = measured(DEPENDENT["divided by the largest number"], rows())
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
    result = measured(DEPENDENT["the first row"], rows(), takes=lambda inputs: len(inputs["x"]) <= 2)
    assert len(result.equal) == 1
    with_three = measured(INDEPENDENT["product"], rows(), takes=lambda inputs: len(inputs["x"]) <= 4)
    assert len(with_three.equal) == 2
