"""Models of AOTInductor that were never compiled, and a tiny one that is compiled once for all tests."""

from engine.runtimes import passport_file
from engine.runtimes.inductor import passport
from engine.runtimes.inductor.passport import CompiledTensor, Pt2Passport

CONTENT = b"native code"
H100 = {"gpu": "NVIDIA H100 80GB HBM3", "sm": 90, "cuda": "13.0", "driver": "580"}


def make(*, gpu=None, **fields):
    """Return the passport of a text classifier that was compiled here, or on a pretended GPU like `H100`."""
    machine = passport.here(None).model_copy(update=gpu or {})
    text = CompiledTensor(dtype="int64", shape=("batch", "sequence"))
    return Pt2Passport.model_validate({
        "machine": machine, "cxx": "12.2.0", "precision": "fp32", "bytes": len(CONTENT),
        "axes": {"batch": {"min": 1, "max": 8}, "sequence": {"min": 1, "max": 32}},
        "inputs": {"input_ids": text, "attention_mask": text, "token_type_ids": text},
        "outputs": {"logits": CompiledTensor(dtype="float32", shape=("batch", 2))},
        **fields,
    })  # fmt: skip


def write(directory, **fields):
    """Write what looks like a compiled model, with its passport, into a new directory."""
    directory.mkdir(parents=True)
    (directory / passport.MODEL).write_bytes(CONTENT)
    passport_file.save(directory, make(**fields))
    return directory
