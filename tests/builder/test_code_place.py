"""The digest of code does not depend on paths and names of modules; a change of code shows in all that reach it."""

import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.builder.code import digests as code

A = "def f(x):\n    return x\n\ndef g(x):\n    return -x\n"
B = "def f(x):\n    return x + 1\n\ndef g(x):\n    return -x\n"
PLAIN = {
    "__init__.py": '"""A package."""\n',
    "room/__init__.py": "",
    "room/a.py": A,
    "room/b.py": B,
    "step.py": "from placed.room.a import f\nVALUE = f(1)\n",
}


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """Write a package with these files, and return the digest of one of its modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    tried = []

    def digest(files, module="step", package="placed"):
        tried.append(tmp_path / f"turn-{len(tried)}")
        monkeypatch.setattr(sys, "path", [str(tried[-1]), *(entry for entry in sys.path if "/turn-" not in entry)])
        for name, text in files.items():
            path = tried[-1] / package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code.forget()
        return code.of_module(f"{package}.{module}").digest

    yield digest
    code.forget()


@pytest.mark.parametrize(
    "step",
    [
        "from placed.room.a import f as other\nVALUE = other(1)\n",
        "from .room.a import f\nVALUE = f(1)\n",
        "from placed.room import a\nVALUE = a.f(1)\n",
        "from .room import a as named\nVALUE = named.f(1)\n",
        "import placed.room.a\nVALUE = placed.room.a.f(1)\n",
        "import placed.room.a as deep\n\n\nVALUE = deep.f(1)\n",
    ],
)
def test_how_a_name_is_imported_does_not_count(digest_of, step):
    if "import f" not in step:  # then nothing says which name of the module is taken, until it is taken
        plain = digest_of({**PLAIN, "step.py": "from placed.room import a\nVALUE = a.f(1)\n"})
    else:
        plain = digest_of(PLAIN)
    assert digest_of({**PLAIN, "step.py": step}) == plain


@pytest.mark.parametrize(
    "step",
    [
        "from placed.room.b import f\nVALUE = f(1)\n",
        "from placed.room.a import g\nVALUE = g(1)\n",
        "from placed.room.a import g as f\nVALUE = f(1)\n",
        "from placed.room.a import f\nfrom placed.room import b\nVALUE = f(1)\n",
        "from placed.room.a import f\ndef g(f):\n    return f(1)\n",
    ],
)
def test_what_a_name_leads_to_counts(digest_of, step):
    assert digest_of({**PLAIN, "step.py": step}) != digest_of(PLAIN)


def test_two_names_that_change_places_count(digest_of):
    one = "from placed.room.a import f as p, g as q\nVALUE = p(1), q(1)\n"
    other = "from placed.room.a import g as p, f as q\nVALUE = p(1), q(1)\n"
    assert digest_of({**PLAIN, "step.py": one}) != digest_of({**PLAIN, "step.py": other})


def test_the_order_of_imports_does_not_count(digest_of):
    both = ["from placed.room.a import f\n", "import json\n", "from placed.room import b\n"]
    use = "VALUE = f(b.g(json.loads('1')))\n"
    digests = {
        digest_of({**PLAIN, "step.py": "".join(order) + use}) for order in (both, both[::-1], both[1:] + both[:1])
    }
    assert len(digests) == 1


def test_an_import_in_a_function_counts_like_one_at_the_top(digest_of):
    top = "from placed.room.a import f\n\ndef run():\n    return f(1)\n"
    inside = "def run():\n    from placed.room.a import f as mine\n    return mine(1)\n"
    assert digest_of({**PLAIN, "step.py": top}) == digest_of({**PLAIN, "step.py": inside})


def test_which_of_two_modules_is_tried_first_counts(digest_of):
    tried = (
        "try:\n    from placed.room.{} import f\nexcept ImportError:\n    from placed.room.{} import f\nVALUE = f(1)\n"
    )
    one, other = ({**PLAIN, "step.py": tried.format(*order)} for order in (("a", "b"), ("b", "a")))
    assert digest_of(one) != digest_of(other)


def test_a_parameter_of_the_name_of_a_module_is_no_module(digest_of):
    step = "from placed.room import {0}\n\ndef run(a, b):\n    return [a.f(each) for each in b]\n\nVALUE = {0}.f(1)\n"
    moved = {**PLAIN, "room/c.py": A, "step.py": step.format("c")}
    assert digest_of(moved) == digest_of({**PLAIN, "step.py": step.format("a")})


def test_a_decorator_a_default_and_an_annotation_lead_where_they_lead(digest_of):
    step = "from placed.room.{0} import f\n\n@f\ndef run(x=f, *, y: f) -> f: ...\n\nclass C(f, k=f): ...\n"
    moved = {**PLAIN, "moved.py": A, "step.py": step.format("a").replace("placed.room.a", "placed.moved")}
    plain = digest_of({**PLAIN, "step.py": step.format("a")})
    assert digest_of(moved) == plain
    assert digest_of({**PLAIN, "step.py": step.format("b")}) != plain


def test_a_name_that_is_handed_on_is_what_it_is_where_it_comes_from(digest_of):
    files = {**PLAIN, "step.py": "from placed.room import f\nVALUE = f(1)\n"}
    one = digest_of({**files, "room/__init__.py": "from placed.room.a import f\n"})
    assert digest_of({**files, "room/__init__.py": "from .a import f as f\n"}) == one
    assert digest_of({**files, "room/__init__.py": "from .b import f\n"}) != one


def test_all_names_of_a_module_lead_there(digest_of):
    files = {**PLAIN, "step.py": "from placed.room.a import *\nVALUE = f(1)\n"}
    one = digest_of(files)
    assert digest_of({**files, "c.py": A, "step.py": "from .c import *\nVALUE = f(1)\n"}) == one
    assert digest_of({**files, "step.py": "from placed.room.b import *\nVALUE = f(1)\n"}) != one


def test_a_circle_may_move_and_an_edit_anywhere_in_it_counts(digest_of):
    circle = {
        "step.py": "from placed import one\nVALUE = one.start\n",
        "one.py": "from placed import two\ndef start(): return two.go(1)\n",
        "two.py": "from placed import three\ndef go(x): return three.on(x)\n",
        "three.py": "from placed import one\ndef on(x): return one.start if x else 3\n",
    }
    plain = digest_of({**PLAIN, **circle})
    moved = {"room/six.py" if name == "two.py" else name: text for name, text in circle.items()}
    moved["one.py"] = moved["one.py"].replace("from placed import two", "from .room import six as two")
    assert digest_of({**PLAIN, **moved}) == plain
    for name in ("one.py", "two.py", "three.py"):
        assert digest_of({**PLAIN, **circle, name: circle[name] + "MORE = 1\n"}) != plain


def test_a_package_that_does_something_counts_for_the_modules_in_it(digest_of):
    plain = digest_of(PLAIN)
    assert digest_of({**PLAIN, "room/__init__.py": "import os\nos.environ['A'] = 'b'\n"}) != plain
    assert digest_of({**PLAIN, "room/__init__.py": '"""Words."""\nfrom __future__ import annotations\n'}) == plain


def test_a_text_that_names_a_module_is_its_place(digest_of):
    step = "import importlib\n\ndef run(): return importlib.import_module('placed.{}')\n"
    plain = digest_of({**PLAIN, "step.py": step.format("room.a")})
    assert digest_of({**PLAIN, "moved.py": A, "step.py": step.format("moved")}) == plain
    assert digest_of({**PLAIN, "step.py": step.format("no.module")}) != plain


def test_a_library_counts_by_its_name(digest_of):
    assert digest_of({**PLAIN, "step.py": "import json\n"}) != digest_of({**PLAIN, "step.py": "import csv\n"})
    one, other = "from json import dumps as d\nD = d\n", "from json import loads as d\nD = d\n"
    assert digest_of({**PLAIN, "step.py": one}) != digest_of({**PLAIN, "step.py": other})


def test_what_a_class_says_of_its_place_in_the_plan_does_not_count_unless_it_is_read(digest_of):
    step = "class C:\n    makes = '{0}'\n    after = '{0}'\n    gates: tuple = ('{0}',)\n    level = 1\n"
    plain = digest_of({**PLAIN, "step.py": step.format("x")})
    assert digest_of({**PLAIN, "step.py": step.format("y")}) == plain
    assert digest_of({**PLAIN, "step.py": step.format("x").replace("= 1", "= 2")}) != plain
    read = step + "    def run(self): return self.makes\n"
    one, other = ({**PLAIN, "step.py": read.format(name)} for name in "xy")
    assert digest_of(one) != digest_of(other)


def test_the_whole_package_may_be_renamed(digest_of):
    renamed = {name: text.replace("placed", "named") for name, text in PLAIN.items()}
    assert digest_of(renamed, package="named") == digest_of(PLAIN)


NAMES = st.lists(st.from_regex(r"[a-z]{3,6}", fullmatch=True), min_size=5, max_size=5, unique=True)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=NAMES.map(lambda names: [f"m_{name}" for name in names]),
    leads=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8, unique=True),
    edited=st.integers(0, 4),
)
def test_any_graph_of_modules_may_be_renamed_and_an_edit_counts_exactly_where_it_is_reached(
    digest_of, names, leads, edited
):
    def files(names):
        modules = {f"{name}.py": f"VALUE = {number}\n" for number, name in enumerate(names)}
        for at, to in leads:
            modules[f"{names[at]}.py"] += f"from placed import {names[to]}\nV{to} = {names[to]}.VALUE\n"
        return {"__init__.py": "", **modules}

    plain = [f"n{number}" for number in range(5)]
    before = [digest_of(files(plain), module=name) for name in plain]
    assert [digest_of(files(names), module=name) for name in names] == before
    changed = files(plain)
    changed[f"{plain[edited]}.py"] += "MORE = 1\n"
    reached = {edited}
    while more := {at for at, to in leads if to in reached} - reached:
        reached |= more
    after = [digest_of(changed, module=name) for name in plain]
    assert {number for number in range(5) if after[number] != before[number]} == reached


def test_the_code_of_several_packages_counts_each_with_its_own(digest_of, tmp_path, monkeypatch):
    other = tmp_path / "other"
    (other / "elsewhere").mkdir(parents=True)
    (other / "elsewhere" / "runtime.py").write_text("from elsewhere import tool\nX = tool.X\n")
    (other / "elsewhere" / "tool.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(str(other))
    digest_of(PLAIN)
    both = ("placed.step", "elsewhere.runtime")
    before = code.of_modules(both).digest
    (other / "elsewhere" / "tool.py").write_text("X = 2\n")
    code.forget()
    assert code.of_modules(both).digest != before
    assert re.search("elsewhere/tool.py", " ".join(map(str, code.of_modules(both).files)))


def test_what_our_interface_hands_on_counts_as_where_it_comes_from(digest_of):
    """`engine.tasks` re-exports names of its modules, which other packages import from there."""
    by_interface = digest_of({**PLAIN, "step.py": "from engine.tasks import Task\nVALUE = Task\n"})
    assert by_interface != digest_of({**PLAIN, "step.py": "from engine.step import Hardware as Task\nVALUE = Task\n"})
    assert any(file.match("engine/tasks/task.py") for file in _files("engine.tasks", "Task", digest_of))
    assert not any(file.match("engine/*.py") for file in _files("engine.step", "Hardware", digest_of))


@pytest.mark.parametrize(
    ("module", "neighbour"),
    [("engine.tasks.task", "tasks/registry.py"), ("engine.runtimes.devices", "runtimes/runtime.py")],
)
def test_a_module_of_our_interface_does_not_count_what_its_package_hands_on(module, neighbour):
    assert not any(file.match(f"engine/{neighbour}") for file in code.of_module(module).files)


def _files(module, name, digest_of):
    digest_of({**PLAIN, "step.py": f"from {module} import {name}\nVALUE = {name}\n"})
    return code.of_module("placed.step").files


def test_a_module_may_move_into_a_folder_without_an_init_file(digest_of):
    plain = digest_of(PLAIN)
    moved = {**PLAIN, "deep/inside/c.py": A, "step.py": "from placed.deep.inside.c import f\nVALUE = f(1)\n"}
    assert digest_of(moved) == plain
