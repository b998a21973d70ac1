"""What lies under build/: nothing is made again, and the package is put back as it was."""

from mutations.actions import aged, append, flip, mode, move, new_folder, older, remove, truncate, write
from mutations.actions_around import build_with
from mutations.mutation import nothing

B = "bert"
_CONFIG = "build/tiny/tiny/config.pbtxt"
_MODEL = "build/tiny/tiny/1/model.onnx"

TABLE = (
    nothing("one bit of the model, size and time kept", B, flip(_MODEL)),
    nothing("one bit of the configuration, size and time kept", B, flip(_CONFIG, at=5)),
    nothing("one bit of the tokenizer, without asking why", B, flip("build/tiny/tiny_tokenizer/1/tokenizer.json"),
            asks_why=False),
    nothing("the configuration edited", B, append(_CONFIG, "# mine\n")),
    nothing("the model cut in half", B, truncate(_MODEL)),
    nothing("the configuration removed", B, remove(_CONFIG)),
    nothing("the model removed, without asking why", B, remove(_MODEL), asks_why=False),
    nothing("a folder of a model removed", B, remove("build/tiny/tiny_text")),
    nothing("the whole package removed", B, remove("build/tiny")),
    nothing("the whole package moved away by hand", B, move("build/tiny", "build/.previous/tiny")),
    nothing("build/ removed", B, remove("build")),
    nothing("build/ emptied", B, remove("build"), new_folder("build")),
    nothing("a file more in the package", B, write("build/tiny/tiny/1/notes.txt", "mine")),
    nothing("a folder more in a model, without asking why", B, new_folder("build/tiny/tiny/2"), asks_why=False),
    nothing("the configuration replaced by an older one", B, older(_CONFIG, "tiny", "t1ny")),
    nothing("the files given a time long ago, the model read-only", B, aged("build"), mode(0o444, _MODEL)),
    nothing("two files swapped", B, move(_MODEL, "m"), move("build/tiny/tiny_tokenizer/1/model.py", _MODEL),
            move("m", "build/tiny/tiny_tokenizer/1/model.py")),
    nothing("a half-made package of a killed build", B, write("build/.tiny.fresh/tiny/config.pbtxt", "half"),
            write("build/.tiny.artifact", "")),
    nothing("another folder for packages, and another package", B, build_with("-o", "elsewhere"),
            write("build/other/config.pbtxt", "x")),
)  # fmt: skip
