"""The same recipe, written otherwise or kept elsewhere: nothing of that counts."""

from mutations.actions import append, copy, edit, mode, move, recipe, remove, rewrite, touch, write
from mutations.actions_around import named, new_folder
from mutations.mutation import changes, nothing

B, N, M = "bert", "net", "matrix"


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
_ANCHORS = ("{batch: 1, sequence: 8}", "&shape {batch: 1, sequence: 8}")

TABLE = (
    nothing("a comment above", B, rewrite("r.yaml", lambda text: f"# about this\n\n{text}")),
    nothing("a comment behind a value", B, recipe("precision: int8", "precision: int8   # small")),
    nothing("blank lines at the end", B, append("r.yaml", "\n\n\n")),
    nothing("no newline at the end", B, rewrite("r.yaml", lambda text: text.rstrip("\n"))),
    nothing("sections in another order", B, rewrite("r.yaml", _lines_last_first)),
    nothing("long forms, blocks, quotes, another order of keys", B, write("r.yaml", _BLOCK)),
    nothing("single quotes", B, recipe("precision: int8", "precision: 'int8'")),
    nothing("double quotes with an escape", B, recipe("precision: int8", 'precision: "int\\x38"')),
    nothing("an anchor that nobody takes up", B, recipe(*_ANCHORS)),
    nothing("a folded text", B, recipe("name: tiny", "name: >-\n  tiny")),
    nothing("an explicit beginning and end of the document", B, rewrite("r.yaml", lambda text: f"---\n{text}...\n")),
    nothing("a byte-order mark", B, rewrite("r.yaml", lambda text: f"\ufeff{text}")),
    nothing("line ends of another system", B, rewrite("r.yaml", lambda text: text.replace("\n", "\r\n"))),
    nothing("deeper indentation", B, recipe("  - {batch: [1, 1, 4]", "      - {batch: [1, 1, 4]")),
    nothing("a profile as minimum, optimum, maximum", B, recipe("[1, 16, 32]", "{min: 1, opt: 16, max: 32}")),
    nothing("a profile as trtexec writes it", B,
            recipe("{batch: [1, 1, 4], sequence: [1, 16, 32]}", "{input_ids: [1x1, 1x16, 4x32]}")),
    nothing("one profile without a list", N, recipe("profiles:\n  - {batch: [1, 2, 4]}",
            "profiles: {batch: [1, 2, 4]}")),
    nothing("a bare number for a bound", B, recipe("{at_least: 0.5}", "0.5")),
    nothing("a whole number for a fraction", B, recipe("{at_most: 100}", "{at_most: 100.0}")),
    nothing("one rival without a list", B, recipe("[{runtime: onnxruntime}]", "{runtime: onnxruntime}")),
    nothing("a section that is said to be empty", B, recipe("name: tiny", "target: {}\nname: tiny")),
    nothing("a path that begins here", B, recipe("source: model", "source: ./model")),
    nothing("a path with a slash at its end", B, recipe("source: model", "source: model/")),
    nothing("a path through the folder above", N, recipe("net/net.onnx", "net/../net/net.onnx")),
    nothing("an absolute path", B, lambda place: recipe("source: model", f"source: {place.path('model')}")(place)),
    nothing("the recipe touched", B, touch("r.yaml")),
    nothing("the recipe read-only", B, mode(0o400, "r.yaml")),
    nothing("the recipe written anew with the same text", B, rewrite("r.yaml", lambda text: text)),
    nothing("the recipe under another name", B, move("r.yaml", "q.yaml"), named("q.yaml")),
    nothing("a second recipe of the same text", B, copy("r.yaml", "q.yaml"), named("q.yaml")),
    nothing("the recipe called .yml", B, move("r.yaml", "r.yml"), named("r.yml")),
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
    nothing("a comment in the parent of a matrix", M, append("base.yaml", "# the end\n")),
    nothing("another recipe beside it", B, write("other.yaml", "name: other\nmodel: {source: nowhere}\n")),
    nothing("a folder beside it", B, new_folder("notes"), write("notes/plan.md", "soon")),
    nothing("a project file with content", B, write("pyproject.toml", "[project]\nname = 'mine'\nversion = '1'\n")),
    nothing("a .git folder instead of the project file", B, remove("pyproject.toml"), write(".git/HEAD",
            "ref: refs/heads/main\n")),
)  # fmt: skip
