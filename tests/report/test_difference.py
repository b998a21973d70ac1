"""What `recipe diff` prints."""

import json
from dataclasses import replace

from engine.builder import difference as compare
from engine.builder.diff_sides import Side, SideJob, SideVariant
from engine.report import difference
from engine.store.history import HeadlineFigures, MeasuredLatency


def variant(name, options, p50, *, size=100, stored=True, label="", device="a CPU", cosine=0.99):
    latency = MeasuredLatency(place="batch 1", p50_ms=p50, interval=(p50 * 0.95, p50 * 1.05))
    jobs = {
        "quantize": SideJob({"options.a": options}, {}, is_stored=stored, seconds=None if stored else 4.0),
        "bench": SideJob({"inputs.quantized": options}, {"quantized": "quantize"}, is_stored=True),
    }
    return SideVariant(
        name, label, jobs, HeadlineFigures(size=size, cosine=cosine, latencies=(latency,), device=device)
    )


def comparison(old, new):
    return compare.of(Side("main:r.yaml", tuple(old)), Side("r.yaml", tuple(new)))


ONE = comparison([variant("x", "1", 2.0)], [variant("x", "2", 1.0, size=50, stored=False)])


def test_text_says_what_is_built_and_why_and_how_the_figures_differ():
    lines = list(difference.as_text(ONE))
    assert lines[:4] == [
        "main:r.yaml -> r.yaml",
        "x: 2 of 2 jobs differ; to build: quantize, about 4.0 s",
        "  quantize: options.a 1 -> 2",
        "  follow: bench",
    ]
    assert [line.split() for line in lines[4:]] == [
        ["size", "100", "bytes", "50", "bytes", "-50.0%"],
        ["cosine", "0.9900", "0.9900"],
        ["p50,", "batch", "1", "2.000", "ms", "1.000", "ms", "-50.0%", "(-54.8%", "to", "-44.7%)"],
    ]


def test_markdown_for_one_variant_is_a_short_table():
    lines = list(difference.as_markdown(ONE))
    assert lines[0] == "### main:r.yaml → r.yaml"
    assert "| size | 100 bytes | 50 bytes | -50.0% |" in lines
    assert "- quantize: options.a 1 -> 2" in lines
    assert len(lines) < 20


def test_markdown_for_many_variants_has_a_row_each_and_equal_causes_once():
    old = [variant(f"x-{n}", "1", 2.0, label=str(n)) for n in range(40)]
    new = [variant(f"x-{n}", "2" if n else "1", 2.0, label=str(n)) for n in range(40)]
    text = "\n".join(difference.as_markdown(comparison(old, new)))
    assert text.count("within noise") == 39
    assert text.count("quantize: options.a 1 -> 2") == 1
    assert "39 variants:" in text
    assert text.endswith("1 further variant: nothing differs")


def test_equal_sides_other_devices_and_variants_of_one_side_are_told():
    side = [variant("x", "1", 2.0)]
    assert list(difference.as_text(comparison(side, side))) == ["main:r.yaml -> r.yaml", "nothing differs"]
    other = comparison(side, [variant("x", "2", 1.0, device="a GPU")])
    assert "  measured on different devices: a CPU, a GPU" in difference.as_text(other)
    assert "- measured on different devices: a CPU, a GPU" in difference.as_markdown(other)
    apart = comparison([*side, variant("y", "1", 2.0)], [*side, variant("z", "1", 2)])
    assert {"z: new; all built", "y: no longer there"} < set(difference.as_text(apart))


def test_machines_get_all_jobs_with_all_rows_and_the_bands():
    fields = json.loads(json.dumps(difference.as_json(ONE)))
    [only] = fields["variants"]
    assert [(job["job"], job["change"]) for job in only["jobs"]] == [("quantize", "changed"), ("bench", "follows")]
    assert only["jobs"][0]["rows"] == [{"row": "options.a", "old": "1", "new": "2"}]
    [latency] = only["latencies"]
    assert (latency["ratio"], latency["verdict"]) == (0.5, "faster")
    assert latency["band"][0] < 0.5 < latency["band"][1]


def test_a_pause_and_a_start_are_shown_on_both_sides_without_a_verdict():
    def paused(side, milliseconds):
        latency = replace(side.figures.latencies[0], paused_ms=milliseconds)
        return replace(side, figures=replace(side.figures, latencies=(latency,), load_s=milliseconds / 10))

    sides = [paused(variant("x", str(n), 2.0), 3.0 + n) for n in (1, 2)]
    lines = [line.split() for line in difference.as_text(comparison(*([side] for side in sides)))]
    assert ["after", "a", "pause,", "batch", "1", "4.000", "ms", "5.000", "ms"] in lines
    assert ["load", "s", "0.40", "0.50"] in lines
    old = [variant("x", "1", 2.0)]
    lines = [line.split() for line in difference.as_text(comparison(old, sides[1:]))]
    assert ["after", "a", "pause,", "batch", "1", "5.000", "ms"] in lines
