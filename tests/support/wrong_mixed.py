"""Models with numbers of different kinds in one output, and wrong copies of them that validation must refuse."""

from __future__ import annotations

from wrong_models import Net, constant

_ROWS = "float[batch, 16] x"
_CHOSEN = (
    f"h = MatMul(x, w) {constant('shape', 'int64[3] {-1, 20, 6}')} g = Reshape(h, shape) s = Sigmoid(g) "
    f"{constant('zero', 'int64[1] {0}')} {constant('four', 'int64[1] {4}')} {constant('five', 'int64[1] {5}')} "
    f"{constant('six', 'int64[1] {6}')} {constant('axis', 'int64[1] {2}')} {constant('pixels', 'float {640.0}')} "
    f"{constant('classes', 'float {80.0}')} bs = Slice(s, zero, four, axis) sc = Slice(s, four, five, axis) "
    "cs = Slice(s, five, six, axis) box = Mul(bs, pixels) cl = Mul(cs, classes) "
    "cf = Floor(cl) out = Concat<axis = 2>(box, sc, cf)"
)
CHOSEN_BOXES = Net(_ROWS, "float[batch, 20, 6] out", _CHOSEN, {"w": (16, 120)}, {"x": (16,)})
ROWS_OF_BOXES = Net(
    "float[1, 16] x",
    "float[n, 6] out",
    f"{_CHOSEN.replace('out =', 'c =')} {constant('flat', 'int64[2] {-1, 6}')} out = Reshape(c, flat)",
    {"w": (16, 120)},
    {"x": (16,)},
)
PRICE = Net(
    _ROWS,
    "float[batch, 2] y",
    f"h = MatMul(x, w) s = Sigmoid(h) {constant('units', 'float[2] {5000.0, 1.0}')} y = Mul(s, units)",
    {"w": (16, 2)},
    {"x": (16,)},
)
SELECTION = Net(
    _ROWS,
    "float[n, 4] y",
    f"h = MatMul(x, w) most = ReduceMax<axes = [1], keepdims = 0>(h) {constant('least', 'float {0.5}')} "
    "kept = Greater(most, least) y = Compress<axis = 0>(h, kept)",
    {"w": (16, 4)},
    {"x": (16,)},
)


def _policy(forbidden: str) -> Net:
    """Return a model that gives two of six actions the logit `forbidden`."""
    return Net(
        _ROWS,
        "float[batch, 6] logits",
        f"h = MatMul(x, w) {constant('mask', 'float[6] {0, 0, 1, 0, 1, 0}')} {constant('zero', 'float {0.0}')} "
        f"{constant('low', f'float {{{forbidden}}}')} hidden = Greater(mask, zero) logits = Where(hidden, low, h)",
        {"w": (16, 6)},
        {"x": (16,)},
    )


NETS = {
    "chosen boxes": CHOSEN_BOXES,
    "rows of boxes": ROWS_OF_BOXES,
    "price": PRICE,
    "selection": SELECTION,
    "policy -1e9": _policy("-1e9"),
    "policy -1e30": _policy("-1e30"),
    "policy smallest float": _policy("-3.4028234e38"),
}
_HALF = f"z_ = Sub(sc, sc) {constant('half', 'float {0.5}')} k_ = Add(z_, half)"
_KEPT = "p_ = Mul(y_, kept) y = Add(p_, half)"
_OTHER = {"sign": "a_ = Neg(h)", "zero": "a_ = Sub(h, h)"}
WRONG: tuple[tuple[str, str, str], ...] = (
    ("chosen boxes", "constant scores", f"{_HALF} n_ = Identity(out_) out = Concat<axis = 2>(box, k_, cf)"),
    ("chosen boxes", "zero classes", "z_ = Sub(cf, cf) n_ = Identity(out_) out = Concat<axis = 2>(box, sc, z_)"),
    (
        "rows of boxes",
        "constant scores",
        f"{_HALF} n_ = Identity(out_) b_ = Concat<axis = 2>(box, k_, cf) out = Reshape(b_, flat)",
    ),
    (
        "price",
        "one probability for all",
        f"{constant('kept', 'float[2] {1.0, 0.0}')} {constant('half', 'float[2] {0.0, 0.5}')} {_KEPT}",
    ),
    (
        "selection",
        "fewer rows",
        f"{constant('more', 'float {1.0}')} k_ = Greater(most, more) n_ = Identity(y_) y = Compress<axis = 0>(h, k_)",
    ),
    ("selection", "other rows", "k_ = Not(kept) n_ = Identity(y_) y = Compress<axis = 0>(h, k_)"),
    *(
        (f"policy {low}", label, f"{end} n_ = Identity(logits_) logits = Where(hidden, low, a_)")
        for low in ("-1e9", "-1e30", "smallest float")
        for label, end in _OTHER.items()
    ),
    ("policy -1e9", "the mask lost", "n_ = Identity(logits_) logits = Identity(h)"),
)
"""Wrong copies, each refused in fp32 and in int8: the model's name, what is wrong, and the end of the wrong body."""

ODD = {
    **NETS,
    "a rare class beside probabilities": Net(
        _ROWS,
        "float[batch, 4] y",
        f"h = MatMul(x, w) {constant('rare', 'float[4] {0, 0, 0, 6}')} l = Sub(h, rare) y = Softmax(l)",
        {"w": (16, 4)},
        {"x": (16,)},
    ),
    "a mask alone": Net(
        _ROWS,
        "float[batch, 4] y",
        f"h = MatMul(x, w) {constant('zero', 'float {0.0}')} {constant('low', 'float {-1e9}')} "
        "g = Greater(h, zero) z = Sub(h, h) y = Where(g, z, low)",
        {"w": (16, 4)},
        {"x": (16,)},
    ),
}
"""Correct models, which must pass."""
