"""The readable text in an engine of TensorRT-RTX: parts, operations, types; and text of another form."""

import pytest

from engine.runtimes.tensorrt import plan_text
from engine.runtimes.tensorrt.plan_text import UnreadablePlanError

TEXT = """header {
  version = 5
  accelerators={sm75 sm86 }
}
descriptors {
  tensor={ alignment=2 dims={ 1 } name="x" offset=0 type=int8 }
  sub_tensor={ base="w" dims={ 1 } name="w^deref" offset=0 type=half }
}
main {
 label bb1:
  fully_connected={ name="a/MatMul" output={"y" } input={"x" "w^deref" } relu=false layers="[ONNX Layer: a/MatMul]
[ONNX Layer: a/scale]" }
  function={ name=__myl_Add input_args={ "y" } layers="" }
}
"""
FUSED = """header {
  version = 4
  accelerators={*}
}
descriptors {
}
main {
  add={ name="b" output={"z" } input={"y" "x" } layers="" }
}
"""


def plan(*texts, version=0x1EDAA1):
    parts = (text.encode() for text in texts)
    heads = ((b"NLYM" + version.to_bytes(4, "little") + len(part).to_bytes(8, "little"), part) for part in parts)
    return b"\x00vtrt NLYM is no part" + b"".join(head + part + b"\x00\x01" for head, part in heads)


def test_a_part_has_its_gpus_its_operations_and_the_types_of_its_tensors():
    (part,) = plan_text.parts(plan(TEXT))
    assert part.sms == (75, 86)
    assert part.types == {"x": "int8", "w^deref": "half"}
    product, kernel = part.operations
    assert (product.kind, product.name, product.inputs) == ("fully_connected", "a/MatMul", ("x", "w^deref"))
    assert product.layers == ("a/MatMul", "a/scale")
    assert (kernel.kind, kernel.name, kernel.inputs) == ("function", "__myl_Add", ("y",))


def test_the_text_of_a_fused_product_belongs_to_the_part_before_it():
    first, second = plan_text.parts(plan(TEXT, FUSED, FUSED, TEXT))
    assert ([len(each.fusions) for each in (first, second)], first.fusions[0].operations[0].kind) == ([2, 0], "add")


@pytest.mark.parametrize(
    ("bytes_", "reason"),
    [
        (b"", "no readable text"),
        (plan(), "no readable text"),
        (plan(TEXT, version=0x1EDAA2), "has the version 0x1edaa2"),
        (plan(TEXT.replace("version = 5", "version = 6")), "has the version 6"),
        (plan(TEXT.replace("sm75 sm86", "turing")), "is for turing"),
        (plan(FUSED), "before every profile"),
        (plan(TEXT)[:-200], "has the version"),
    ],
)
def test_text_of_another_form_is_not_read(bytes_, reason):
    with pytest.raises(UnreadablePlanError, match=reason):
        plan_text.parts(bytes_)
