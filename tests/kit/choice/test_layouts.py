"""The layout that a build chose: the file beside the model, and the lines about it."""

import pytest

from engine.errors import StepError
from engine.kit.choice import layouts
from engine.kit.choice.candidates import Lead
from engine.kit.choice.layouts import LayoutReport


def test_what_is_written_is_read(tmp_path):
    layouts.write(tmp_path, "fused", "buckets")
    assert layouts.read(tmp_path) == ("fused", "buckets")


@pytest.mark.parametrize("text", [None, "", "[]", "{}"])
def test_a_missing_or_broken_file_is_an_error(tmp_path, text):
    if text is not None:
        (tmp_path / "layout.json").write_text(text)
    with pytest.raises(StepError, match="nothing says which layout was chosen"):
        layouts.read(tmp_path)


def test_the_lines_have_the_lead_and_where_it_was_measured():
    report = LayoutReport(
        layout="fused", lead=Lead(1.12, (1.08, 1.15)), cpu="a CPU", threads=1, shapes=({"batch": 1}, {"batch": 8})
    )
    lines = list(report.lines())
    assert lines[0] == "layout: fused, padding: none"
    assert lines[1] == "fused answers 1.12 x [1.08, 1.15] as fast as ensemble"
    assert "at 2 shapes on a CPU, 1 thread" in lines[2]


def test_the_lines_have_the_lead_of_padding():
    lead = Lead(1.5, (1.4, 1.6))
    lines = list(LayoutReport(layout="ensemble", padding="buckets", padding_lead=lead, cpu="a CPU", threads=1).lines())
    assert lines[0] == "layout: ensemble, padding: buckets"
    assert "1.50 x [1.40, 1.60] as fast as none" in lines[1]
