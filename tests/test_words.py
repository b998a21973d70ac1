"""The words of the code, read from the syntax tree: a name says what a value is, a class has a name of its own."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
VAGUE = {"asked", "found", "held", "made", "said", "told", "wanted"}
"""Participles that say what happened to a value, not what it is: `config`, `response`, `options`, `matches` are."""
SHIPPED = ("engine/kit/triton/served", "engine/kit/generation/greedy.py")
"""Files that packages carry as they are: another name in them would be another package."""
ALLOWED = {
    "engine/kit/bench/report.py: asked": "a key of the reports that `--json` prints",
    "engine/runtimes/tensorrt/passport.py: asked": "a key of the passport.json in packages",
    "engine/store/record.py: made_at": "a key of the records on disk",
}
"""Names with a vague word in them, by their file, and why they keep it."""
TERMS = {"held_out": "data that calibration did not see, as the field calls them"}
"""Terms of the field with a vague word in them."""
_STEMS = (
    "general initial material maxim minim normal optim organ quant recogn serial special summar synchron token util"
)
SPELLING = re.compile(rf"(?:{_STEMS.replace(' ', '|')})is(?:e|ing|ation|er|able)", re.IGNORECASE)
"""Words in -ise, which are written -ize here: `quantize`, `tokenizer`, `normalize`."""
OTHERS_SPELLING = {
    "normalise": "a setting that the shipped embed.py reads from settings.json",
}
"""Words in -ise that files of packages hold, and where."""
SAME_NAME = {
    "TritonPythonModel": "Triton's Python backend looks for a class of this name",
    "ModelSession": "each shipped session.py has one, and the shipped fused.py looks for it by this name",
    "Work": "each shipped file has one, and the shipped model.py looks for it by this name",
}
"""Classes that share their name, and what for."""

PLACES = [
    path
    for folder in ("engine", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "corpus" not in path.parts
]
PROGRAM = [path for path in PLACES if path.is_relative_to(ROOT / "engine")]


def shipped(path: Path) -> bool:
    """Whether packages carry this file as it is."""
    return str(path.relative_to(ROOT)).startswith(SHIPPED)


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that a source names: values, parameters, fields, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield node.lineno, name


def words(name: str) -> set[str]:
    """Return the words of a name, whichever way they are joined: `held_back`, `HeldBack`."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def vague(source: str) -> list[tuple[int, str]]:
    """Return the lines and names that hold a vague word."""
    return [(line, name) for line, name in names(ast.parse(source)) if words(name) & VAGUE and name not in TERMS]


def test_a_name_of_the_program_says_what_a_value_is():
    own = {str(path.relative_to(ROOT)): path for path in PROGRAM if not shipped(path)}
    places = [(file, *each) for file, path in own.items() for each in vague(path.read_text("utf-8"))]
    wrong = [f"{file}:{line}: {name}" for file, line, name in places if f"{file}: {name}" not in ALLOWED]
    assert wrong == [], "say what the value is, as `config`, `response`, `options` and `matches` do"
    assert [file for file in own if words(Path(file).stem) & VAGUE] == [], "name the file by what is in it"


PLANTED = """
said = 1
for found in (): pass
def read(wanted): ...
def asked(): ...
self.told = 1
class Held: ...
class MadeUp: ...
import json as made
with open(path) as held_folder: ...
one = lambda asked: 1
"""


def test_a_vague_name_is_noticed():
    lines = PLANTED.strip().splitlines()
    assert [line for line in lines if not vague(line)] == []
    assert vague("try: ...\nexcept OSError as said: ...")
    assert vague("match 1:\n    case found: ...")


def classes() -> dict[str, list[str]]:
    """Return the public classes of the package, each with the files that have one of its name."""
    places = defaultdict(list)
    for path in PROGRAM:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    return places


def test_a_public_class_has_a_name_of_its_own():
    places = classes()
    assert len(places) > 200
    shared = {name: files for name, files in places.items() if len(files) > 1 and name not in SAME_NAME}
    assert shared == {}, "give each a name of its own, or say in SAME_NAME why they share it"


def british(source: str) -> list[str]:
    """Return the words in -ise of a Python source: those of its names, comments and texts."""
    if not SPELLING.search(source):
        return []  # the tokens of every file would take ten seconds
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = (tokenize.NAME, tokenize.COMMENT, tokenize.STRING)
    return [word for token in tokens if token.type in kinds for word in SPELLING.findall(token.string)]


def test_words_have_one_spelling():
    own = [path for path in PLACES if not shipped(path) and path != Path(__file__)]
    places = [f"{path}: {word}" for path in own for word in british(f"{path.stem}\n{path.read_text('utf-8')}")]
    wrong = [place for place in places if place.split()[-1] not in OTHERS_SPELLING]
    assert wrong == [], "write -ize, as `quantize` and `tokenizer`"


def test_pages_have_the_same_spelling():
    pages = [
        page
        for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "adr", ROOT / "benchmarks")
        for page in folder.glob("*.md")
    ]
    assert len(pages) > 20
    assert [f"{page}: {word}" for page in pages for word in SPELLING.findall(page.read_text("utf-8"))] == []


def test_another_spelling_is_noticed():
    planted = ("quantise = 1", "# a tokeniser\n", "'''Normalised rows.'''\n")
    assert [source for source in planted if not british(source)] == []
