"""The same recipe, written otherwise or kept elsewhere: nothing of that counts."""

from mutations.actions import append, copy, edit, mode, move, recipe, remove, rewrite, write
from mutations.actions_around import named
from mutations.mutation import changes, nothing

B, N = "bert", "net"


def _lines_last_first(text: str) -> str:
    """Put the sections of a recipe in the opposite order."""
    sections: list[str] = []
    for line in text.splitlines(keepends=True):
        if line[0] in " #":
            sections[-1] += line
        else:
            sections.append(line)
    return "".join(reversed(sections))


_BLOCK = """\
"name": 'tiny'
model:
  source: "model"
precision: int8
profiles:
- batch:
    min: 1
    opt: 1
    max: 4
  sequence: {max: 32, min: 1, opt: 16}
validate:
  max_abs: 100
  agreement: 0.1
  cosine: 0.5
  samples: samples.jsonl
bench:
  against: {runtime: onnxruntime}
  shapes:
    sequence: 8
    batch: 1
"""

TABLE = (
    nothing("comments, blank lines and no newline at the end", B, append("r.yaml", "\n\n# the end"),
            recipe("precision: int8", "precision: int8   # small"),
            rewrite("r.yaml", lambda text: f"# about\n\n{text}")),
    nothing("sections in another order", B, rewrite("r.yaml", _lines_last_first)),
    nothing("long forms, blocks, quotes, another order of keys", B, write("r.yaml", _BLOCK)),
    nothing("an escape, a folded text, an anchor, a deeper indentation", B,
            recipe("precision: int8", 'precision: "int\\x38"'), recipe("name: tiny", "name: >-\n  tiny"),
            recipe("{batch: 1, sequence: 8}", "&shape {batch: 1, sequence: 8}"),
            recipe("  - {batch: [1, 1, 4]", "      - {batch: [1, 1, 4]")),
    nothing("a byte-order mark, marks of a document and line ends of another system", B,
            rewrite("r.yaml", lambda text: f"\ufeff---\n{text}...\n".replace("\n", "\r\n"))),
    nothing("short and long forms of values", B, recipe("[1, 16, 32]", "{min: 1, opt: 16, max: 32}"),
            recipe("{at_least: 0.5}", "0.5"), recipe("{at_most: 100}", "{at_most: 100.0}"),
            recipe("[{runtime: onnxruntime}]", "{runtime: onnxruntime}"),
            recipe("name: tiny", "target: {}\nname: tiny")),
    nothing("a profile as trtexec writes it", B,
            recipe("{batch: [1, 1, 4], sequence: [1, 16, 32]}", "{input_ids: [1x1, 1x16, 4x32]}")),
    nothing("one profile without a list", N, recipe("profiles:\n  - {batch: [1, 2, 4]}",
            "profiles: {batch: [1, 2, 4]}")),
    nothing("a path that begins here, with a slash at its end", B, recipe("source: model", "source: ./model/")),
    nothing("a path through the folder above", N, recipe("net/net.onnx", "net/../net/net.onnx")),
    nothing("an absolute path", B, lambda place: recipe("source: model", f"source: {place.path('model')}")(place)),
    nothing("the recipe written anew with the same text, read-only", B, rewrite("r.yaml", lambda text: text),
            mode(0o400, "r.yaml")),
    nothing("the recipe under another name", B, move("r.yaml", "q.yml"), named("q.yml")),
    nothing("a second recipe of the same text", B, copy("r.yaml", "q.yaml"), named("q.yaml")),
    nothing("recipe, samples and model in another folder", B, move("r.yaml", "mine/r.yaml"), move("samples.jsonl",
            "mine/samples.jsonl"),
            move("model", "mine/model"), named("mine/r.yaml")),
    nothing("the recipe in a folder below, its files where they were", N, move("r.yaml", "recipes/r.yaml"),
            edit("recipes/r.yaml", "net/net.onnx", "../net/net.onnx"), named("recipes/r.yaml")),
    nothing("half of it in a parent", B, rewrite("r.yaml",
            lambda text: "extends: parent.yaml\n" + text.split("bench:")[0]),
            write("parent.yaml", "bench:\n  shapes: [{batch: 1, sequence: 8}]\n  against: [{runtime: onnxruntime}]\n")),
    nothing("a parent that says what the recipe overrides", B, rewrite("r.yaml",
            lambda text: f"extends: parent.yaml\n{text}"),
            write("parent.yaml", "precision: fp32\nname: other\nbench: {threads: null}\n")),
    changes("a parent that says what the recipe does not", B, rewrite("r.yaml",
            lambda text: f"extends: parent.yaml\n{text}"),
            write("parent.yaml", "bench: {threads: 1}\n"), causes={"bench": "options.threads"}),
    changes("a matrix of one value, which the name tells", B, recipe("precision: int8", "matrix: {precision: [int8]}"),
            causes={"package": ()}),
    nothing("another recipe, a folder, and a project file with content beside it", B,
            write("other.yaml", "name: other\nmodel: {source: nowhere}\n"), write("notes/plan.md", "soon"),
            write("pyproject.toml", "[project]\nname = 'mine'\nversion = '1'\n")),
    nothing("a .git folder instead of the project file", B, remove("pyproject.toml"), write(".git/HEAD",
            "ref: refs/heads/main\n")),
)  # fmt: skip
