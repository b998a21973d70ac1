"""Small ONNX models, wrong copies that validation must refuse, and correct but odd models that must pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from engine.recipe.values import Range

_SEED = 3
_SAMPLES = 12


@dataclass(frozen=True)
class Net:
    """A model as text for `onnx.parser`: inputs, outputs, the body, and the shapes of its weights.

    `samples` holds the shape of one sample of each input. A model without samples runs on random inputs, within
    `profile`: for each axis the minimum, the optimum and the maximum.
    """

    inputs: str
    outputs: str
    body: str
    weights: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    samples: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    profile: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)

    def model(self, end: str = "") -> onnx.ModelProto:
        """Return the model; `end` computes outputs anew from the right ones, which are then called `{name}_`."""
        body = self.body
        for name in self.names():
            if f"{name} = " in end:
                body = body.replace(f"{name} = ", f"{name}_ = ")
        assert body != self.body or not end, "the end changes no output"
        text = f'<ir_version: 8, opset_import: ["" : 17]> net ({self.inputs}) => ({self.outputs}) {{ {body} {end} }}'
        model = onnx.parser.parse_model(text)
        generator = np.random.default_rng(_SEED)
        for name, shape in self.weights.items():
            values = (generator.standard_normal(shape) / max(1, shape[0]) ** 0.5).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        onnx.checker.check_model(model)
        return model

    def names(self) -> list[str]:
        """Return the names of the outputs."""
        return re.findall(r"(\w+)(?:,|$)", re.sub(r"\[[^]]*\]", "", self.outputs))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return an array of samples for each input."""
        generator = np.random.default_rng(_SEED + 1)
        return {
            name: generator.standard_normal((_SAMPLES, *shape)).astype(np.float32)
            for name, shape in self.samples.items()
        }

    @property
    def profiles(self) -> tuple[dict[str, Range], ...]:
        """The profile of the random inputs."""
        ranges = {axis: Range(min=low, opt=opt, max=high) for axis, (low, opt, high) in self.profile.items()}
        return (ranges,) if ranges else ()


def constant(name: str, value: str) -> str:
    return f"{name} = Constant<value = {value}>()"


_LAYERS = {"w1": (16, 24), "w2": (24, 4)}
CLASSIFIER = Net(
    "float[batch, 16] x",
    "float[batch, 4] y",
    "h = MatMul(x, w1) t = Tanh(h) y = MatMul(t, w2)",
    _LAYERS,
    {"x": (16,)},
)
RERANKER = Net(
    "float[batch, 16] x",
    "float[batch, 1] logits",
    f"h = MatMul(x, w1) t = Tanh(h) r = MatMul(t, w2) {constant('bias', 'float {3.0}')} logits = Add(r, bias)",
    {"w1": (16, 24), "w2": (24, 1)},
    {"x": (16,)},
)
TOKENS = Net(
    "int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask",
    "float[batch, 8] y",
    "e = Gather(table, input_ids) m = Cast<to = 1>(attention_mask) "
    f"{constant('two', 'int64[1] {2}')} {constant('one', 'int64[1] {1}')} {constant('least', 'float {1.0}')} "
    "mu = Unsqueeze(m, two) em = Mul(e, mu) s = ReduceSum<keepdims = 0>(em, one) "
    "n = ReduceSum<keepdims = 1>(m, one) n1 = Max(n, least) p = Div(s, n1) h = MatMul(p, w) y = Tanh(h)",
    {"table": (40, 16), "w": (16, 8)},
)
TWO = Net(
    "float[batch, 8] a, float[batch, 8] b",
    "float[batch, 4] boxes, float[batch, 6] scores",
    "ha = MatMul(a, wa) hb = MatMul(b, wb) h = Add(ha, hb) t = Tanh(h) boxes = MatMul(t, w1) "
    "l = MatMul(t, w2) scores = Sigmoid(l)",
    {"wa": (8, 16), "wb": (8, 16), "w1": (16, 4), "w2": (16, 6)},
    {"a": (8,), "b": (8,)},
)
_DETECTOR = (
    "h = MatMul(x, w) {shape} g = Reshape(h, shape) s = Sigmoid(g) {scale} {offset} "
    "{zero} {four} {six} {axis} bs = Slice(s, zero, four, axis) ss = Slice(g, four, six, axis) "
    "box = Mul(bs, pixels) low = Sub(ss, shift) sc = Sigmoid(low) out = Concat<axis = 1>(box, sc)"
)
DETECTOR = Net(
    "float[batch, 24] x",
    "float[batch, 6, 40] out",
    _DETECTOR.format(
        shape=constant("shape", "int64[3] {-1, 6, 40}"),
        scale=constant("pixels", "float {640.0}"),
        offset=constant("shift", "float {2.0}"),
        zero=constant("zero", "int64[1] {0}"),
        four=constant("four", "int64[1] {4}"),
        six=constant("six", "int64[1] {6}"),
        axis=constant("axis", "int64[1] {1}"),
    ),
    {"w": (24, 240)},
    {"x": (24,)},
)
SEQUENCE = Net(
    "float[batch, time, 8] x",
    "float[batch, time, 4] y",
    f"h = MatMul(x, w1) t = Tanh(h) {constant('one', 'int64 {1}')} c = CumSum(t, one) s = Tanh(c) y = MatMul(s, w2)",
    {"w1": (8, 16), "w2": (16, 4)},
    profile={"batch": (1, 2, 3), "time": (4, 16, 64)},
)
FAINT = Net(
    "float[batch, 16] x",
    "float[batch, 1] y",
    f"h = MatMul(x, w1) t = Tanh(h) r = MatMul(t, w2) {constant('shift', 'float {12.0}')} l = Sub(r, shift) "
    "y = Sigmoid(l)",
    {"w1": (16, 24), "w2": (24, 1)},
    {"x": (16,)},
)
NETS = {
    "classifier": CLASSIFIER, "reranker": RERANKER, "tokens": TOKENS, "two": TWO, "detector": DETECTOR,
    "sequence": SEQUENCE, "faint": FAINT,
}  # fmt: skip


def _all_nan(name: str) -> str:
    return f"z0 = Sub({name}_, {name}_) {name} = Div(z0, z0)"


def _infinite(name: str) -> str:
    return f"z0 = Sub({name}_, {name}_) {name} = Div({name}_, z0)"


def _zero(name: str) -> str:
    return f"{constant('k', 'float {0.0}')} {name} = Mul({name}_, k)"


def _fixed(name: str, value: float) -> str:
    return f"z0 = Sub({name}_, {name}_) {constant('v', f'float {{{value}}}')} {name} = Add(z0, v)"


def _scaled(name: str, factor: float) -> str:
    return f"{constant('k', f'float {{{factor}}}')} {name} = Mul({name}_, k)"


def _moved(name: str, by: float) -> str:
    return f"{constant('k', f'float {{{by}}}')} {name} = Add({name}_, k)"


def _clipped(name: str, low: float, high: float) -> str:
    return (
        f"{constant('low_', f'float {{{low}}}')} {constant('high_', f'float {{{high}}}')} "
        f"{name} = Clip({name}_, low_, high_)"
    )


def _columns(name: str, order: str, axis: int = 1) -> str:
    count = order.count(",") + 1
    return f"{constant('order', f'int64[{count}] {{{order}}}')} {name} = Gather<axis = {axis}>({name}_, order)"


def _where_large(name: str, source: str, axis: int, above: int) -> str:
    """Scale the output where an axis of an input is longer than `above`."""
    return (
        f"n_ = Shape({source}) {constant('place', f'int64 {{{axis}}}')} b_ = Gather(n_, place) "
        f"{constant('above', f'int64 {{{above}}}')} g_ = Greater(b_, above) "
        f"{constant('k', 'float {1.3}')} off = Mul({name}_, k) {name} = Where(g_, off, {name}_)"
    )


def _mixed(name: str, source: str) -> str:
    """Subtract the mean of the batch where the batch has more than one row."""
    return (
        f"n_ = Shape({source}) {constant('place', 'int64 {0}')} b_ = Gather(n_, place) "
        f"{constant('above', 'int64 {1}')} g_ = Greater(b_, above) "
        f"mean_ = ReduceMean<axes = [0], keepdims = 1>({name}_) off = Sub({name}_, mean_) "
        f"{name} = Where(g_, off, {name}_)"
    )


def _random(name: str, scale: float) -> str:
    noise = f"{constant('k', f'float {{{scale}}}')} r_ = RandomNormalLike({name}_) q_ = Mul(r_, k)"
    return f"{noise} {name} = Add({name}_, q_)"


def _random_behind_if(name: str, source: str, kind: str) -> str:
    return (
        f"m_ = ReduceMax<keepdims = 0>({source}) {constant('bound', 'float {1.0}')} g_ = Greater(m_, bound) "
        f"{name} = If (g_) <then_branch = a () => ({kind} t_) "
        f"{{ r_ = RandomNormalLike({name}_) t_ = Add(r_, {name}_) }}, "
        f"else_branch = b () => ({kind} e_) {{ e_ = Identity({name}_) }}>"
    )


_SOME_NAN = (
    f"mx_ = ReduceMax<axes = [1], keepdims = 1>(x) {constant('bound', 'float {1.9}')} d_ = Sub(bound, mx_) "
    f"l_ = Log(d_) {constant('k', 'float {0.0}')} z0 = Mul(l_, k) "
)
_HIDDEN = "mf_ = Cast<to = 1>(attention_mask) "
_PADDED = f"{_HIDDEN} least_ = ReduceMin<keepdims = 0>(mf_) {constant('half', 'float {0.5}')} g_ = Less(least_, half) "
_LEFT = (
    f"{_HIDDEN} {constant('first', 'int64 {0}')} col_ = Gather<axis = 1>(mf_, first) "
    f"least_ = ReduceMin<keepdims = 0>(col_) {constant('half', 'float {0.5}')} g_ = Less(least_, half) "
)
_BLANK = (
    f"{_HIDDEN} sum_ = ReduceMax<axes = [1], keepdims = 0>(mf_) least_ = ReduceMin<keepdims = 0>(sum_) "
    f"z0 = Div(least_, least_) "
)
_BOX = "n_ = Identity(out_) out = Concat<axis = 1>(box, c_)"
_SCORES = "n_ = Identity(out_) out = Concat<axis = 1>(c_, sc)"
_INSTEAD = "z0 = Sub(y_, y_) y = Add(t_, z0)"
_OFF = f"{constant('k', 'float {1.3}')} off = Mul(y_, k) y = Where(g_, off, y_)"

WRONG: tuple[tuple[str, str, str], ...] = (
    ("classifier", "NaN everywhere", _all_nan("y")),
    ("classifier", "infinity everywhere", _infinite("y")),
    ("classifier", "NaN for some inputs", f"{_SOME_NAN} y = Add(y_, z0)"),
    ("classifier", "zero", _zero("y")),
    ("classifier", "one answer for all", _fixed("y", 0.4)),
    ("classifier", "wrong in a batch", _where_large("y", "x", 0, 1)),
    ("classifier", "rows of a batch mixed", _mixed("y", "x")),
    ("classifier", "the sign", _scaled("y", -1)),
    ("classifier", "half as large", _scaled("y", 0.5)),
    ("classifier", "one percent larger", _scaled("y", 1.01)),
    ("classifier", "moved", _moved("y", 0.2)),
    ("classifier", "clipped", _clipped("y", -0.3, 0.3)),
    ("classifier", "classes rolled", _columns("y", "1, 2, 3, 0")),
    ("classifier", "two classes swapped", _columns("y", "0, 2, 1, 3")),
    ("classifier", "one class lost", _columns("y", "0, 1, 2, 2")),
    ("classifier", "probabilities instead of logits", "y = Softmax(y_)"),
    ("classifier", "rounded", "y = Round(y_)"),
    ("classifier", "only positive", "y = Relu(y_)"),
    ("classifier", "noise", _random("y", 0.05)),
    ("classifier", "random behind an If", _random_behind_if("y", "x", "float[batch, 4]")),
    ("reranker", "NaN everywhere", _all_nan("logits")),
    ("reranker", "one score for all", _fixed("logits", 3.0)),
    ("reranker", "zero", _zero("logits")),
    ("reranker", "the order reversed", f"{constant('k', 'float {6.0}')} logits = Sub(k, logits_)"),
    (
        "reranker",
        "half the spread",
        f"{constant('k', 'float {0.5}')} o_ = Mul(logits_, k) {constant('c', 'float {1.5}')} logits = Add(o_, c)",
    ),
    ("reranker", "nearly one score", _clipped("logits", 2.98, 3.02)),
    ("reranker", "moved within the bias", _moved("logits", 0.3)),
    ("reranker", "noise", _random("logits", 0.3)),
    ("reranker", "random behind an If", _random_behind_if("logits", "x", "float[batch, 1]")),
    ("reranker", "wrong in a batch", _where_large("logits", "x", 0, 1)),
    ("tokens", "NaN everywhere", _all_nan("y")),
    ("tokens", "one answer for all", _fixed("y", 0.1)),
    (
        "tokens",
        "the mask ignored",
        f"me_ = ReduceMean<axes = [1], keepdims = 0>(e) hm_ = MatMul(me_, w) t_ = Tanh(hm_) {_INSTEAD}",
    ),
    ("tokens", "wrong where padded", f"{_PADDED} {_OFF}"),
    ("tokens", "wrong where padded on the left", f"{_LEFT} {_OFF}"),
    ("tokens", "wrong for long texts", _where_large("y", "input_ids", 1, 50)),
    ("tokens", "wrong in a batch", _where_large("y", "input_ids", 0, 1)),
    ("tokens", "rows of a batch mixed", _mixed("y", "input_ids")),
    ("tokens", "a row without tokens breaks the others", f"{_BLANK} y = Mul(y_, z0)"),
    (
        "tokens",
        "the first token alone",
        f"{constant('o_', 'int64 {0}')} f_ = Gather<axis = 1>(e, o_) hf_ = MatMul(f_, w) t_ = Tanh(hf_) {_INSTEAD}",
    ),
    ("tokens", "the sign", _scaled("y", -1)),
    ("two", "the boxes broken", _scaled("boxes", -1)),
    ("two", "the scores broken", f"{constant('k', 'float {1.0}')} scores = Sub(k, scores_)"),
    ("two", "constant scores", _fixed("scores", 0.5)),
    ("two", "constant boxes", _zero("boxes")),
    ("two", "NaN in the boxes", _all_nan("boxes")),
    ("two", "two scores swapped", _columns("scores", "1, 0, 2, 3, 4, 5")),
    ("two", "one box column lost", _columns("boxes", "0, 1, 2, 2")),
    ("two", "an input ignored", "tb_ = Tanh(ha) bx_ = MatMul(tb_, w1) z0 = Sub(boxes_, boxes_) boxes = Add(bx_, z0)"),
    (
        "two",
        "the other input ignored",
        "tb_ = Tanh(hb) lx_ = MatMul(tb_, w2) sx_ = Sigmoid(lx_) z0 = Sub(scores_, scores_) scores = Add(sx_, z0)",
    ),
    (
        "detector",
        "constant scores",
        f"z0 = Sub(sc, sc) {constant('k', 'float {0.12}')} c_ = Add(z0, k) {_BOX}",
    ),
    ("detector", "zero scores", "z0 = Sub(sc, sc) none = Identity(out_) out = Concat<axis = 1>(box, z0)"),
    (
        "detector",
        "constant boxes",
        f"z0 = Sub(box, box) {constant('k', 'float {320.0}')} c_ = Add(z0, k) {_SCORES}",
    ),
    ("detector", "classes swapped", _columns("out", "0, 1, 2, 3, 5, 4")),
    ("detector", "places reversed", _columns("out", ", ".join(map(str, reversed(range(40)))), axis=2)),
    (
        "detector",
        "NaN in the scores",
        "z0 = Sub(sc, sc) n0 = Div(z0, z0) none = Identity(out_) out = Concat<axis = 1>(box, n0)",
    ),
    ("sequence", "wrong for long inputs", _where_large("y", "x", 1, 20)),
    ("sequence", "wrong in a batch", _where_large("y", "x", 0, 1)),
    ("sequence", "no past", "tn_ = Tanh(t) yn_ = MatMul(tn_, w2) z0 = Sub(y_, y_) y = Add(yn_, z0)"),
    ("sequence", "NaN everywhere", _all_nan("y")),
    ("sequence", "one answer for all", _fixed("y", 0.2)),
    ("sequence", "noise", _random("y", 0.1)),
    ("faint", "zero", _zero("y")),
    ("faint", "one score for all", _fixed("y", 6e-6)),
    ("faint", "NaN everywhere", _all_nan("y")),
)
"""Wrong copies: the name of the model, what is wrong, and the end of the wrong model's body."""
LOSES_IN_INT8 = frozenset({"constant scores", "zero scores", "one score for all", "zero", "one answer for all"})
"""Errors that no precision excuses."""


def _odd(outputs: str, *lines: str) -> Net:
    body = " ".join(["h = MatMul(x, w1) t = Tanh(h) r = MatMul(t, w2)", *lines])
    return Net("float[batch, 16] x", outputs, body, _LAYERS, {"x": (16,)})


_Y = "float[batch, 4] y"
_NOTHING, _FIRST = constant("zero", "int64[1] {0}"), constant("one", "int64[1] {1}")
ODD: Mapping[str, Net] = {
    **NETS,
    "one class for all": _odd(_Y, constant("k", "float[4] {50, 0, 0, 0}"), "y = Add(r, k)"),
    "constant": _odd(_Y, "z = Sub(r, r)", constant("c", "float {2.5}"), "y = Add(z, c)"),
    "zero": _odd(_Y, "y = Sub(r, r)"),
    "probabilities near zero": _odd(_Y, constant("k", "float {14.0}"), "l = Sub(r, k) y = Sigmoid(l)"),
    "a vector of tiny numbers": _odd(_Y, constant("k", "float {1e-5}"), "y = Mul(r, k)"),
    "huge": _odd(_Y, constant("k", "float {1e6}"), "y = Mul(r, k)"),
    "one number": _odd("float[batch, 1] y", _FIRST, "y = ReduceSum<keepdims = 1>(r, one)"),
    "one number beside a large bias": _odd(
        "float[batch, 1] y",
        _FIRST,
        constant("k", "float {1000.0}"),
        "s = ReduceSum<keepdims = 1>(r, one) y = Add(s, k)",
    ),
    "a number for each row": _odd("float[batch] y", _FIRST, "y = ReduceSum<keepdims = 0>(r, one)"),
    "classes masked by infinity": _odd(_Y, constant("k", "float[4] {0, 1, 1, 0}"), "l = Log(k) y = Add(r, l)"),
    "NaN in one column": _odd(_Y, constant("k", "float[4] {1, 1, 0, 1}"), "q = Div(k, k) y = Mul(r, q)"),
    "classes as integers": _odd("int64[batch] y", "y = ArgMax<axis = 1, keepdims = 0>(r)"),
    "yes or no": _odd("bool[batch, 4] y", constant("k", "float {0.0}"), "y = Greater(r, k)"),
    "steps": _odd(_Y, "y = Sign(r)"),
    "saturated": _odd(_Y, constant("k", "float {80.0}"), "l = Mul(r, k) y = Softmax(l)"),
    "mostly clipped": _odd(
        _Y, constant("low", "float {-0.1}"), constant("high", "float {0.1}"), "y = Clip(r, low, high)"
    ),
    "the input itself": _odd("float[batch, 16] y", "y = Identity(x)"),
    "two numbers": _odd("float[batch, 2] y", constant("k", "int64[2] {0, 3}"), "y = Gather<axis = 1>(r, k)"),
    "equal logits": _odd(_Y, constant("k", "int64[4] {0, 0, 1, 1}"), "y = Gather<axis = 1>(r, k)"),
    "nearly equal logits": _odd(
        _Y,
        constant("k", "int64[4] {0, 0, 0, 0}"),
        constant("d", "float[4] {0, 1e-6, 2e-6, 0}"),
        "g = Gather<axis = 1>(r, k) y = Add(g, d)",
    ),
    "float64": _odd("double[batch, 4] y", "y = Cast<to = 11>(r)"),
    "float16": _odd("float16[batch, 4] y", "y = Cast<to = 10>(r)"),
    "no columns": _odd("float[batch, n] y", _NOTHING, _FIRST, "y = Slice(r, zero, zero, one)"),
    "the sum of the batch": _odd("float[4] y", _NOTHING, "y = ReduceSum<keepdims = 0>(r, zero)"),
    "a row less the mean of the batch": _odd(_Y, "m = ReduceMean<axes = [0], keepdims = 1>(r) y = Sub(r, m)"),
    "one number for the batch": _odd("float y", "y = ReduceMean<keepdims = 0>(r)"),
    "outputs of different sizes": _odd(
        f"{_Y}, float[batch, 4] z", constant("k", "float {1e4}"), "z = Mul(r, k) y = Tanh(r)"
    ),
    "one output of two is constant": _odd(f"{_Y}, float[batch, 4] z", "z = Sub(r, r) y = Tanh(r)"),
    "one output of two is near zero": _odd(
        f"{_Y}, float[batch, 4] z", constant("k", "float {1e-6}"), "z = Mul(r, k) y = Tanh(r)"
    ),
    "more numbers than samples": _odd("float[batch, 24] y", "y = Identity(t)"),
    "pixels": _odd(
        "uint8[batch, 4] y", constant("k", "float {100.0}"), "s = Sigmoid(r) l = Mul(s, k) y = Cast<to = 2>(l)"
    ),
    "an axis of one": _odd("float[batch, 1, 24] y", _FIRST, "y = Unsqueeze(t, one)"),
    "a length that depends on the values": _odd(
        "float[n, 4] y",
        constant("k", "float {-9.0}"),
        "mx = ReduceMax<axes = [1], keepdims = 0>(r) keep = Greater(mx, k) y = Compress<axis = 0>(r, keep)",
    ),
}
"""Correct models of odd forms, which must pass."""
