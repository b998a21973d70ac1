"""Results at a prompt and in a notebook: short, and never markup of a model."""

from types import SimpleNamespace

from summaries import bench, row, summary

from engine.builder import notebook
from engine.builder.findings import Finding
from engine.key import Change
from engine.kit.bench.report import BenchReport


def test_a_summary_is_a_line_at_a_prompt():
    assert repr(summary(bench=bench())) == "<Summary m: 1 of 1 job built, 22.8 MB>"


def test_a_summary_is_a_table_of_its_latencies_in_a_notebook():
    text = summary(bench=bench())._repr_html_()
    assert text.startswith("<table><caption>Summary m: 1 of 1 job built, 22.8 MB</caption>")
    for cell in ("p95 ms", "batch 1 x sequence 16", "onnxruntime-int8 (ours)", "1.500"):
        assert f">{cell}</t" in text, cell
    assert summary()._repr_html_() == "<p>Summary m: 0 of 0 jobs built</p>"


def test_names_are_never_markup():
    rows = (row("<b>", ours=True),)
    text = notebook.latencies("<i>", BenchReport(threads=1, cpu="c", rows=rows), ())
    assert "&lt;b&gt; (ours)" in text
    assert "<i>" not in text


def test_a_finding_names_its_job_and_the_rows_that_changed():
    job = SimpleNamespace(recipe="m", name="quantize")
    assert repr(Finding(job, "stale", (Change("options.a", "1", "2"),))) == "<Finding m quantize: stale (options.a)>"
    assert repr(Finding(job, "cached")) == "<Finding m quantize: cached>"
