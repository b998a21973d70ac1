"""The step `choose-layout`: one Python model or an ensemble, by stored figures."""

import pytest

from engine.kit.accuracy import batching
from engine.kit.accuracy.batching import RowBatching
from engine.kit.choice import layouts
from engine.kit.choice.candidates import Latency
from engine.kit.choice.layouts import LayoutsReport, TimedLayout
from engine.recipe.schema import ModelSection, PackageSection, Recipe, Triton
from engine.step import write_report
from engine.steps.choose_layout import ChooseLayout
from engine.steps.measure_layouts import MeasureLayouts

ROUNDS = (10.0, 10.5, 9.5, 10.0)


def timed(**times):
    return {name: TimedLayout((Latency({"batch": 1, "clients": 1}, rounds),)) for name, rounds in times.items()}


def chosen(folder, step=None, paddings=None, **times):
    """Choose by figures: for each layout its rounds in milliseconds; return the report and what is handed on."""
    absent = {} if "fused" in times else {"fused": "a reason"}
    report = LayoutsReport(cpu="a CPU", threads=1, layouts=timed(**times), absent=absent, paddings=paddings or {})
    write_report(folder / "layouts", report.to_json())
    (folder / "validated").mkdir(exist_ok=True)
    (folder / "validated" / "model").write_text("the model")
    out = folder / f"out-{len(list(folder.iterdir()))}"
    return (step or ChooseLayout()).run(out, validated=folder / "validated", layouts=folder / "layouts"), out


def test_the_faster_layout_is_named_beside_the_model(tmp_path):
    report, out = chosen(tmp_path, ensemble=ROUNDS, fused=tuple(each / 1.2 for each in ROUNDS))
    assert report.layout == "fused"
    assert layouts.read(out) == ("fused", "none")
    assert {case: lead.ratio for case, lead in report.leads.items()} == {"batch 1, 1 client": pytest.approx(1.2)}
    assert (out / "model").read_text() == "the model"


def test_new_figures_with_the_same_choice_change_no_byte(tmp_path):
    outs = [chosen(tmp_path, ensemble=ROUNDS, fused=tuple(each / by for each in ROUNDS))[1] for by in (1.2, 1.3)]
    first, second = ({path.name: path.read_bytes() for path in out.iterdir()} for out in outs)
    assert first == second


def test_where_one_python_model_is_not_possible_the_ensemble_is_kept_and_the_reason_is_shown(tmp_path):
    report, out = chosen(tmp_path, ensemble=())
    assert layouts.read(out) == ("ensemble", "none")
    assert "fused is not possible: a reason" in list(report.lines())


@pytest.mark.parametrize(("factor", "padding"), [(0.5, "buckets"), (1.0, "none"), (1.5, "none")])
def test_padding_is_kept_where_it_is_faster_beyond_the_noise(tmp_path, factor, padding):
    paddings = timed(none=ROUNDS, buckets=tuple(each * factor for each in ROUNDS))
    report, out = chosen(tmp_path, paddings=paddings, ensemble=())
    assert report.padding == padding
    assert report.padding_lead.ratio == pytest.approx(1 / factor, abs=1e-4)
    assert layouts.read(out) == ("ensemble", padding)


@pytest.mark.parametrize(("named", "padding"), [("auto", "none"), ("none", "none"), ("buckets", "buckets")])
def test_without_figures_the_padding_is_that_of_the_recipe(tmp_path, named, padding):
    assert chosen(tmp_path, ChooseLayout(padding=named), ensemble=())[0].padding == padding


@pytest.mark.parametrize("joins", [RowBatching.EQUAL_LENGTHS, RowBatching.ALONE])
def test_a_model_whose_rows_depend_on_each_other_has_an_ensemble_and_no_padding(joins, tmp_path):
    (tmp_path / "validated").mkdir()
    batching.write(tmp_path / "validated", joins)
    faster = tuple(each / 2 for each in ROUNDS)
    report, out = chosen(tmp_path, paddings=timed(none=ROUNDS, buckets=faster), ensemble=ROUNDS, fused=faster)
    assert (report.layout, report.padding) == layouts.read(out) == ("ensemble", "none")
    assert batching.read(out) is joins


def test_a_recipe_that_names_layout_and_padding_measures_nothing():
    def recipe(layout, padding="none"):
        triton = Triton(layout=layout, padding=padding)
        return Recipe(name="m", model=ModelSection(source="net.onnx"), package=PackageSection(triton=triton))

    for kind in (MeasureLayouts, ChooseLayout):
        assert [kind.for_recipe(recipe(layout)) is None for layout in ("ensemble", "fused", "auto")] == [
            True,
            True,
            False,
        ]
        assert kind.for_recipe(recipe("ensemble", "buckets")) is None
        assert kind.for_recipe(recipe("ensemble", "auto")) is not None
