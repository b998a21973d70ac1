"""A lock of two jobs and two kinds of machines, as a value and as text."""

from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, MachineSection
from engine.lockfile.text import dump

A, B, C, D = (letter * 32 for letter in "abcd")
AVX2, AVX512 = {"cpu.isa": "avx2"}, {"cpu.isa": "avx2 avx512f"}
FETCH = LockedJob(reads={"source": "model"}, options={"weights": "safetensors"}, output=LockedOutput(A, B))
LOCK = Lock(
    sources={"model": A, "samples/s.jsonl": B, "hf:acme/tiny@main": "1" * 40},
    tools={"onnx": "1.23.2", "numpy": "2.10"},
    steps={"fetch": A, "validate": B},
    variants={
        "tiny": LockedVariant(
            {"name": "tiny", "validate.cosine.at_least": "0.5"},
            {
                "fetch": FETCH,
                "validate": LockedJob(needs={"compiled": "fetch"}, gates=("bench", "other"), options={"task": "null"}),
            },
        )
    },
    machines=(MachineSection(AVX2, {("tiny", "validate"): LockedOutput(C, D)}),),
)
TEXT = dump(LOCK)
