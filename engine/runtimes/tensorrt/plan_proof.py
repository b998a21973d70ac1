"""Plan proof: what the text of a TensorRT-RTX engine shows of its matrix products, their types and their kernels."""

# The proof speaks of TensorRT-RTX alone. Native TensorRT chooses other kernels, on the GPU that it builds on.

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.runtimes.tensorrt import plan_text
from engine.runtimes.tensorrt.plan_text import Operation, PlanPart, UnreadablePlanError

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
        parts = plan_text.parts(plan)
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
        for place, operation in enumerate(fusion.operations):
            if operation.kind in _PRODUCTS:
                yield operation, _type(operation, fusion), bool(fusion.operations[place + 1 :])


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
