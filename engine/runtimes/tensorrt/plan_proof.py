"""Plan proof: what the text of a TensorRT-RTX engine shows of its matrix products, their types and their kernels."""

# The proof speaks of TensorRT-RTX alone. Native TensorRT chooses other kernels, on the GPU that it builds on.
#
# NVIDIA does not document this text. The form below was read from engines of TensorRT-RTX 1.7; text of another form is
# not read at all.
#
# An engine has a part for each profile, and behind it a part for each of its fused matrix products:
#     NLYM, version (4 bytes), size of the text (8 bytes), the text
#     header { ... accelerators={sm75 sm86 } }    of the part of a fused product: accelerators={*}
#     descriptors { tensor={ ... name="x" ... type=half } ... }
#     main { fully_connected={ name="..." input={"x" "w" } layers="[ONNX Layer: ...]" } runtime_fusion={ ... } ... }

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_PRODUCTS = ("fully_connected", "corrltn")
"""The operations that are a matrix product or a convolution."""
_FUSION, _KERNEL = "runtime_fusion", "function"
_ATTENTION = "_gemm_mha"
"""What the name of a kernel begins with that computes scores, softmax and the weighted sum of attention."""
_EPILOGUE = re.compile(r"\b(?:relu|gelu|gelu_erf|tanh|sigmoid|swish|leaky_relu|bias|accu|quantize)=true\b")
"""What a product computes beside its sums: an activation, a bias, a second summand."""
_TYPES = {"half": "fp16", "float": "fp32", "bfloat16": "bf16", "fp8_e4m3": "fp8"}
"""The names of types in an engine's text, with their names in recipes; other names are the same in both."""
_LISTED = 20
"""The largest number of layers that a proof names."""
_MAGIC = b"NLYM"
_VERSION = 0x1EDAA1
"""The version of the parts of an engine of TensorRT-RTX 1.7."""
_TEXTS = {"4", "5"}
"""The versions that the texts of an engine of TensorRT-RTX 1.7 state: 5 for a profile, 4 for a fused product."""
_HEAD = len(_MAGIC) + 12
_BEGIN = b"header {\n"
_ANY = "*"
_BLOCK = r"^{} \{{\n(.*?)^\}}$"
_OPERATION = re.compile(r"^  (\w+)=\{ ", re.MULTILINE)
_TENSOR = re.compile(r'^  (?:sub_)?tensor=\{ .*?\bname="([^"]*)".*\btype=(\w+)', re.MULTILINE)
_LAYER = re.compile(r"\[ONNX Layer: ([^\]\n]*)\]")


@dataclass(frozen=True, kw_only=True)
class PlanProfile:
    """The kernels of an engine for one profile, and the compute capabilities, times ten, that run these kernels.

    `products` counts the matrix products and convolutions outside of attention, by the type of their factors. Products
    of one input count once where the compiler merged them. `fused` counts those among them that compute what follows
    them in the same kernel, such as a bias or an activation. `attention` counts kernels that compute a whole attention.
    `others` counts all other kernels.
    """

    sms: tuple[int, ...]
    products: Mapping[str, int]
    fused: Mapping[str, int]
    attention: int
    others: int


@dataclass(frozen=True, kw_only=True)
class PlanProof:
    """What the text of an engine proves, and whether the products of the graph kept the recipe's precision.

    Of `layers` products that the graph has in the precision and the text shows, `kept` compute in it for every
    profile; `lost` names the others, each with its type.
    """

    precision: str
    profiles: tuple[PlanProfile, ...]
    layers: int
    kept: int
    lost: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """The share of the graph's products in the precision that compute in it; None where the text shows none."""
        return self.kept / self.layers if self.layers else None


def prove(plan: bytes, precision: str, graph: Mapping[str, str]) -> tuple[PlanProof | None, str]:
    """Return what the text of an engine proves; or None, and the reason why nothing is known.

    `graph` maps each product of the parsed network to the type in which the network has it.
    """
    try:
        parts = plan_parts(plan)
        profiles = tuple(_profile(part) for part in parts)
    except UnreadablePlanError as error:
        return None, str(error)
    shown = [_by_layer(part) for part in parts]
    layers = [name for name, kind in graph.items() if kind == precision and any(name in each for each in shown)]
    lost = {
        name: kind for name in layers for each in shown for kind in [each.get(name, precision)] if kind != precision
    }
    return PlanProof(
        precision=precision,
        profiles=profiles,
        layers=len(layers),
        kept=len(layers) - len(lost),
        lost=tuple(f"{name}: {kind}" for name, kind in list(lost.items())[:_LISTED]),
    ), ""


def _profile(part: PlanPart) -> PlanProfile:
    products, fused = Counter[str](), Counter[str]()
    for operation, kind, carries_more in _products(part):
        del operation
        products[kind] += 1
        fused[kind] += carries_more
    kernels = [operation for operation in part.operations if operation.kind == _KERNEL]
    attention = sum(kernel.name.startswith(_ATTENTION) for kernel in kernels)
    return PlanProfile(
        sms=part.sms,
        products=dict(sorted(products.items())),
        fused={kind: count for kind, count in sorted(fused.items()) if count},
        attention=attention,
        others=len(kernels) - attention,
    )


def _products(part: PlanPart) -> Iterator[tuple[Operation, str, bool]]:
    """Yield each product of a profile, its type, and whether it computes what follows it, too."""
    if sum(operation.kind == _FUSION for operation in part.operations) != len(part.fusions):
        raise UnreadablePlanError("its fused products and their texts differ in number")
    for operation in part.operations:
        if operation.kind in _PRODUCTS:
            yield operation, _type(operation, part), bool(_EPILOGUE.search(operation.text))
    for fusion in part.fusions:
        for index, operation in enumerate(fusion.operations):
            if operation.kind in _PRODUCTS:
                yield operation, _type(operation, fusion), bool(fusion.operations[index + 1 :])


def _by_layer(part: PlanPart) -> dict[str, str]:
    """Return the type of each product of a profile by the ONNX nodes that it computes, with those of attention."""
    types = {layer: kind for operation, kind, _ in _products(part) for layer in operation.layers}
    for operation in part.operations:
        if operation.kind == _KERNEL and operation.name.startswith(_ATTENTION):
            types |= dict.fromkeys(operation.layers, _type(operation, part))
    return types


def _type(operation: Operation, part: PlanPart) -> str:
    """Return the type of the factors of a product; the two types, if they differ."""
    kinds = [part.types.get(name) for name in operation.inputs[:2]]
    if not kinds or None in kinds:
        raise UnreadablePlanError(f"the types of {operation.name or 'a product'} are missing")
    return " x ".join(dict.fromkeys(_TYPES.get(str(kind), str(kind)) for kind in kinds))


class UnreadablePlanError(Exception):
    """An engine whose text has a form that this code does not know."""


@dataclass(frozen=True)
class Operation:
    """An operation of a part: its kind, such as `fully_connected`, and its text."""

    kind: str
    text: str

    @cached_property
    def name(self) -> str:
        """The name of the operation, or of the kernel that it calls."""
        return _first(r'\bname=(?:"([^"]*)"|([^\s"]+))', self.text)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the tensors that the operation reads; a matrix product reads its two factors first."""
        return tuple(re.findall(r'"([^"]*)"', _first(r"\binput(?:_args)?=\{([^}]*)\}", self.text)))

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """The names of the ONNX nodes that the operation computes."""
        return tuple(dict.fromkeys(_LAYER.findall(self.text)))


@dataclass(frozen=True)
class PlanPart:
    """A part of an engine: the compute capabilities times ten, the operations, and the types of the tensors by name.

    `fusions` are the parts of the fused matrix products, which have no compute capabilities of their own.
    """

    sms: tuple[int, ...]
    operations: tuple[Operation, ...]
    types: Mapping[str, str]
    fusions: tuple[PlanPart, ...] = ()


def plan_parts(plan: bytes) -> tuple[PlanPart, ...]:
    """Return the parts of an engine, usually one for each profile, each with the parts of its fused products.

    Raises UnreadablePlanError where the engine has no readable text, or text of another version than TensorRT-RTX 1.7.
    """
    whole: list[PlanPart] = []
    for text in _texts(plan):
        part = _part(text)
        if part.sms:
            whole.append(part)
        elif whole:
            last = whole[-1]
            whole[-1] = PlanPart(last.sms, last.operations, last.types, (*last.fusions, part))
        else:
            raise UnreadablePlanError("a fused product stands before every profile")
    if not whole:
        raise UnreadablePlanError("it has no readable text")
    return tuple(whole)


def _texts(plan: bytes) -> Iterator[str]:
    at = plan.find(_MAGIC)
    while at >= 0:
        text, after = at + _HEAD, at + len(_MAGIC)
        if plan.startswith(_BEGIN, text):
            version = int.from_bytes(plan[at + len(_MAGIC) : at + len(_MAGIC) + 4], "little")
            size = int.from_bytes(plan[text - 8 : text], "little")
            if version != _VERSION or text + size > len(plan):
                raise UnreadablePlanError(f"its text has the version {version:#x}, and {_VERSION:#x} is known")
            yield plan[text : text + size].decode("utf-8", "replace").rstrip("\0")
            after = text + size
        at = plan.find(_MAGIC, after)


def _part(text: str) -> PlanPart:
    header, descriptors, main = (_first(_BLOCK.format(name), text) for name in ("header", "descriptors", "main"))
    version = _first(r"^  version = (\S+)", header)
    if version not in _TEXTS or not main:
        raise UnreadablePlanError(f"a part of its text has the version {version or 'none'}")
    targets = _first(r"\baccelerators=\{([^}]*)\}", header).split()
    return PlanPart(() if targets == [_ANY] else _sms(targets), tuple(_operations(main)), _types(descriptors))


def _sms(targets: Sequence[str]) -> tuple[int, ...]:
    sms = [re.fullmatch(r"sm(\d+)\w?", target) for target in targets]
    if not sms or None in sms:
        raise UnreadablePlanError(f"a part of its text is for {' '.join(targets) or 'nothing'}")
    return tuple(int(sm[1]) for sm in sms if sm is not None)


def _operations(main: str) -> Iterator[Operation]:
    begins = [*_OPERATION.finditer(main)]
    ends = [begin.start() for begin in begins[1:]] + [len(main)]
    for begin, end in zip(begins, ends, strict=True):
        yield Operation(begin[1], main[begin.start() : end])


def _types(descriptors: str) -> dict[str, str]:
    return dict(_TENSOR.findall(descriptors))


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    return "" if match is None else next((group for group in match.groups() if group is not None), "")
