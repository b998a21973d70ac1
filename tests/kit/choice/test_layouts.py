"""The layout that a build chose: the file beside the model, and the lines about it."""

import pytest

from engine.errors import StepError
from engine.kit.choice import layouts
from engine.kit.choice.candidates import Latency, Lead
from engine.kit.choice.layouts import LayoutReport, TimedLayout


def test_what_is_written_is_read(tmp_path):
    layouts.write(tmp_path, "fused", "buckets")
    assert layouts.read(tmp_path) == ("fused", "buckets")


@pytest.mark.parametrize("text", [None, "", "[]", "{}"])
def test_a_missing_or_broken_file_is_an_error(tmp_path, text):
    if text is not None:
        (tmp_path / "layout.json").write_text(text)
    with pytest.raises(StepError, match="nothing says which layout was chosen"):
        layouts.read(tmp_path)


def timed(*rows):
    """Return the times of a layout: for each case its shape and the milliseconds of an answer."""
    return TimedLayout(tuple(Latency(shape, (value, value * 1.01, value * 0.99)) for shape, value in rows))


SHORT, MIXED = {"batch": 1, "sequence": 16, "clients": 1}, {"lengths": 8, "clients": 8}


def test_where_the_cases_disagree_the_lines_say_by_how_much_in_which_case():
    layouts_of = {"ensemble": timed((SHORT, 10.0), (MIXED, 13.0)), "fused": timed((SHORT, 11.0), (MIXED, 10.0))}
    name, leads = layouts.chosen(layouts_of)
    assert name == "fused"
    assert {case: lead.ratio for case, lead in leads.items()} == {
        "batch 1 x sequence 16, 1 client": pytest.approx(0.91, abs=0.005),
        "texts of 8 lengths, 8 clients": pytest.approx(1.3, abs=0.005),
    }
    first, short, mixed, where = LayoutReport(layout=name, leads=leads, cpu="a CPU", threads=1).lines()
    assert first == "layout: fused, padding: none"
    assert short.startswith("batch 1 x sequence 16, 1 client: fused answers 0.91 x [")
    assert short.endswith("as fast as the other layout, slower beyond the noise")
    assert mixed.startswith("texts of 8 lengths, 8 clients: fused answers 1.30 x [")
    assert mixed.endswith("as fast as the other layout")
    assert where == "measured in turns on a CPU, 1 thread"


def test_the_leads_are_those_of_the_layout_that_is_kept():
    same = {"ensemble": timed((SHORT, 10.0)), "fused": timed((SHORT, 12.0))}
    name, leads = layouts.chosen(same)
    assert name == "ensemble"
    assert [lead.ratio for lead in leads.values()] == [pytest.approx(1.2)]


def test_the_lines_have_the_lead_of_padding():
    lead = Lead(1.5, (1.4, 1.6))
    lines = list(LayoutReport(layout="ensemble", padding="buckets", padding_lead=lead, cpu="a CPU", threads=1).lines())
    assert lines[0] == "layout: ensemble, padding: buckets"
    assert "1.50 x [1.40, 1.60] as fast as none" in lines[1]
