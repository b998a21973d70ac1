"""The section `tune`: its errors have places and hints, and a build neither reads it nor has a row of it."""

import pytest
from models import checkpoint

from engine import api
from engine.builder.lookup import Lookup
from engine.errors import RecipeError
from engine.recipe.load import load
from engine.store.heads import subject_of
from engine.store.store import Store

RECIPE = """name: tiny
model: {source: model, task: text-classification}
profiles: [{batch: [1, 1, 4], sequence: [1, 8, 32]}]
package: {}
"""
WRONG = [
    ("{minimize: p95}", "`tune.minimize` cannot be 'p95'", "did you mean `p95_ms`?"),
    ("{minimize: {p90_ms: {batch: 1}}}", "unknown field `p90_ms` in `tune.minimize`", "did you mean `p"),
    ("{minimize: size, maximize: throughput}", "a search has one objective", "bound the other in `subject_to`"),
    ("{trials: 3}", "`tune` has no objective", "minimize: size"),
    ("{minimize: size, budget: 10}", "`tune.budget` is '10'; a duration is meant", "write 10m, 90s or 2h"),
    ("{minimize: size, budget: soon}", "`tune.budget` is 'soon'; a duration is meant", "write 10m, 90s or 2h"),
    ("{minimize: size, trials: 0}", "`tune.trials` is 0; at least 1 is meant", ""),
    ("{minimize: size, subject_to: {cosine: 1.5}}", "`tune.subject_to.cosine` is 1.5; at most 1.0 is meant", ""),
    ("{minimize: size, subject_to: {cosin: 0.9}}", "unknown field `cosin` in `tune.subject_to`", "`cosine`"),
    ("{minimize: size, subject_to: {size: 40}}", "`tune.subject_to.size` is 40, a size without a unit", "40MiB"),
    ("{minimize: size, over: {precision: int8}}", "a list is meant", "write `precision: [int8]`"),
    ("{minimize: size, over: {target.runtim: [a]}}", "a field that no recipe has", "did you mean `target.runtime`?"),
    ("{minimize: size, over: {precision: [fp32, int7]}}", "'int7'", "did you mean"),
    ("{minimize: size, over: {target.runtime: [openvno]}}", "'openvno'", "did you mean `openvino`?"),
    ("{minimize: size, over: {validate.cosine: [1]}}", "which every trial has in common", "precision"),
]


@pytest.fixture
def written(tmp_path):
    checkpoint(tmp_path / "model", task="text-classification")

    def write(tune=None):
        path = tmp_path / "tiny.yaml"
        path.write_text(RECIPE + ("" if tune is None else f"tune: {tune}\n"), "utf-8")
        return path

    return write


@pytest.mark.parametrize(("tune", "what", "hint"), WRONG, ids=[each for each, *_ in WRONG])
def test_a_wrong_section_is_one_error_with_its_place_and_a_hint(written, tune, what, hint):
    path = written(tune)
    with pytest.raises(RecipeError) as caught:
        api.plan(path)
    assert what in str(caught.value)
    assert hint in caught.value.hint
    assert str(caught.value.position).startswith(f"{path}:5:")


def test_short_forms_mean_what_the_long_ones_do(written):
    [short] = load(written("{maximize: throughput, budget: 1.5m, subject_to: {size: 40MB, p95_ms: 20}}"))
    tune = short.recipe.tune
    assert tune.objective == ("throughput", {})
    assert tune.budget == 90
    assert tune.subject_to.model_dump(exclude_none=True) == {"size": 40_000_000, "p95_ms": 20}


def test_no_key_and_no_note_has_the_section(written, tmp_path):
    keys, fields = [], []
    for tune in (None, "{minimize: size, subject_to: {cosine: 0.5}, over: {precision: [int8]}}"):
        [variant] = api.plan(written(tune))
        lookup = Lookup(Store(tmp_path / "cache"))
        keys.append({job.name: lookup.key(job, dict.fromkeys(job.needs, "content")) for job in variant.jobs})
        fields.append(subject_of(variant.loaded).fields)
    assert len(keys[0]) > 5
    assert keys[0] == keys[1]
    assert fields[0] == fields[1]
    assert not any("tune" in row for key in keys[1].values() for row in key)
