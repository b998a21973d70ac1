"""The store damaged: at most the job whose artifact it was is made again; what only speeds up or explains, none."""

from mutations.actions import flip, recipe, remove, touch, truncate, write
from mutations.actions_around import artifact, build_with, killed, record, stored
from mutations.mutation import Mutation, Rows, changes, nothing

B, N = "bert", "net"


def _hurt(
    says: str, *action, causes: dict[str, Rows], spreads: str = "", project: str = B
) -> tuple[Mutation, Mutation]:
    """Return the mutation with `why` asked before the build, and without: asking may mend what it finds."""
    explained, unexplained = (
        changes(f"{says}{words}", project, *action, causes=causes, spreads=spreads, may_be_mended=True, asks_why=asks)
        for words, asks in (("", True), (", without asking why", False))
    )
    return explained, unexplained


TABLE = (
    *_hurt("one bit of fetched weights, size and time kept", stored("fetch", "model.safetensors", flip),
            causes={"fetch": "artifact"}),
    *_hurt("one bit of the quantized model, which is in the package, too", stored("quantize", "model.onnx", flip),
           causes={"quantize": "artifact"}, spreads="validate package"),
    *_hurt("one bit of the package's configuration, size and time kept", stored("package", "tiny/config.pbtxt", flip),
           causes={"package": "artifact"}),
    *_hurt("one bit of the measurements", stored("bench", "latencies.json", flip), causes={"bench": "artifact"}),
    *_hurt("a file of an artifact cut in half", stored("fetch", "tokenizer.json", truncate),
            causes={"fetch": "artifact"}),
    *_hurt("a whole artifact removed", artifact("fuse", remove), causes={"fuse": "artifact"}, spreads="quantize"),
    *_hurt("a record removed", record("reference", remove), causes={"reference": "record"}),
    *_hurt("a record emptied", record("export", lambda name: write(name, "")), causes={"export": "record"}),
    *_hurt("one bit of a record", record("shape-infer", lambda name: flip(name, at=40)),
            causes={"shape-infer": "record"}),
    *_hurt("a network's fetched weights changed", stored("fetch", "net.data", flip), causes={"fetch": "artifact"},
           spreads="shape-infer fuse validate package", project=N),
    nothing("an artifact's files touched", B, artifact("export", touch)),
    nothing("the snapshots removed", B, remove("cache/snapshots")),
    nothing("one bit of a snapshot", B, flip("cache/snapshots/*", at=200)),
    nothing("a snapshot cut in half, without asking why", B, truncate("cache/snapshots/*"), asks_why=False),
    nothing("the notes, the logs and the locks removed", B, remove("cache/heads", "cache/stat", "cache/logs",
            "cache/locks")),
    nothing("the pool of contents removed", B, remove("cache/files")),
    nothing("left-overs of a killed build, and a file of another program", B,
            write("cache/staging/old/out/model.onnx", "half"), write("cache/README", "mine")),
    nothing("killed while a job was forced", B, killed("--force", "fuse", at="fuse")),
    changes("killed while a change was built", B, recipe("bench:", "bench:\n  threads: 1"), killed(at="bench"),
            causes={"bench": "options.threads"}),
    changes("killed while a change was built whose first step was done", N, recipe("[1, 2, 4]", "[2, 2, 5]"),
            killed(at="validate"), causes={"validate": "inputs.reference"}, spreads="package"),
    nothing("a job forced, which gives what it gave", B, build_with("--to", "package"), killed("--force", "quantize",
            at="quantize")),
)  # fmt: skip
