"""Plan text: the readable parts of a TensorRT-RTX engine, which list its kernels and the types of its tensors."""

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def backbone(self) -> str:
        """What a fused operation is built around, such as `gemm`; an empty text for other operations."""
        return _first(r"\bbackbone=(\w+)", self.text)


@dataclass(frozen=True)
class PlanPart:
    """A part of an engine: the compute capabilities times ten, the operations, and the types of the tensors by name.

    `fusions` are the parts of the fused matrix products, which have no compute capabilities of their own.
    """

    sms: tuple[int, ...]
    operations: tuple[Operation, ...]
    types: Mapping[str, str]
    fusions: tuple[PlanPart, ...] = ()


def parts(plan: bytes) -> tuple[PlanPart, ...]:
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
