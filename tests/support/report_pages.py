"""Pages of `recipe report` about variants that nothing has built, and the JSON that their numbers come from."""

import html.parser
import json
from dataclasses import replace
from pathlib import Path

from summaries import accuracy, row, summary

from engine.builder.why import Finding
from engine.kit.accuracy.report import Agreement, PrecisionShares
from engine.kit.bench.report import BenchReport
from engine.kit.quantization.report import DynamicReport
from engine.report import history as past_builds
from engine.report.overview import VariantOverview
from engine.report.page import page
from engine.store.history import HeadlineFigures, JobRun, MeasuredLatency, PastBuild


def bench(p50):
    """Return a report with three batches, each beside a rival of another name and one of the same name."""
    rows = []
    for batch in (1, 8, 32):
        for ours, runtime, factor in ((True, "onnxruntime-int8", 1.0), (False, "pytorch-fp32", 3.0),
                                      (False, "onnxruntime-int8", 1.1)):  # fmt: skip
            middle = round(p50 * factor * batch**0.8, 4)
            rows.append(replace(
                row(runtime, ours=ours), shape={"batch": batch, "sequence": 16}, mean_ms=middle * 1.1, p50_ms=middle,
                p95_ms=middle * 1.7, p99_ms=middle * 2.3, ratio_to={"pytorch-fp32": 3.0} if ours else {},
                intervals={"p50_ms": (middle * 0.97, middle * 1.04)},
                ratio_intervals={"pytorch-fp32": (2.9, 3.2)} if ours else {},
            ))  # fmt: skip
    return BenchReport(threads=2, cpu="a CPU", rows=tuple(rows))


def variant(number, name):
    """Return the summary of a variant, whose figures depend on its number."""
    report = accuracy(
        0.97 - number * 1e-4, 0.99 + ((number * 37 + 50) % 101) * 1e-5,
        agreement=Agreement(0.98, ("line 3", "line 9"), 50),
        work=PrecisionShares.of({"int8 MatMul": 97, "fp32 MatMul": 3}, {"batch": 1}), notes=("left out: <1> & a row",),
    )  # fmt: skip
    quantized = DynamicReport(quantized={"MatMul": 36}, left=("2 Conv",), bytes=(90_000_000, 22_800_000))
    one = summary(precision=quantized, validation=report, bench=bench(1.5 + (number * 61 % 97) / 10))
    one.variant.name, one.variant.loaded.path = name, Path("recipes/<r>.yaml")
    for job in one.variant.jobs:
        object.__setattr__(job, "recipe", name)
    return one


def builds(p50):
    """Return two builds, the second of which was faster and ran one job."""

    def figures(middle):
        return HeadlineFigures(size=22_800_000, cosine=0.991, latencies=(
            MeasuredLatency(place="batch 1 x sequence 16", p50_ms=middle, interval=(middle * 0.9, middle * 1.1)),
        ))  # fmt: skip

    return [
        PastBuild(at=1.0, name="x", state="built", jobs={}, figures=figures(p50 * 2)),
        PastBuild(at=90_000.5, name="x", state="built", jobs={}, figures=figures(p50),
                  runs=(JobRun("tell-bench", "built", 12.25),)),
    ]  # fmt: skip


LONG = "quantize-with-the-very-long-name-of-a-step-of-another-package"


def unmeasured(number, name):
    """Return the summary of a variant that waits for a GPU: nothing of it was built, and one job has a long name."""
    one = variant(number, name)
    one.records.clear()
    object.__setattr__(one.variant.jobs[0], "name", LONG)
    return one


def prepared(count, *, measured=None):
    """Return what the page of `count` variants is made of: summaries, findings and overviews.

    The first `measured` ones have figures, by default all; the others wait for a GPU, and their last build failed.
    """
    measured = count if measured is None else measured
    names = [f"<v>-{number}" if count > 1 else "<v>" for number in range(count)]
    summaries = [(variant if number < measured else unmeasured)(number, name) for number, name in enumerate(names)]
    findings = [
        Finding(job, "cached" if number < measured else "unknown")
        for number, each in enumerate(summaries)
        for job in each.variant.jobs
    ]
    failed = PastBuild(at=1.0, name="x", state="failed", jobs={}, figures=HeadlineFigures())
    overviews = [
        VariantOverview(each.variant.name, f"n={number},target.device=cpu", "int8", "cpu",
                        "up to date" if number < measured else "waits for T4 (sm_75) with tensorrt 10.11.0.33",
                        each.headline, builds(1.5) if number < measured else [failed])
        for number, each in enumerate(summaries)
    ]  # fmt: skip
    return summaries, findings, overviews


def rendered(count=1, *, measured=None):
    """Return the page of `count` variants, and the JSON under which its paths are found."""
    summaries, findings, overviews = prepared(count, measured=measured)
    text = page.html(summaries, findings, overviews, "recipe 0")
    shown = json.loads(json.dumps([each.to_json() for each in summaries]))
    past = json.loads(json.dumps([{"builds": past_builds.as_json(each.builds)} for each in overviews]))
    return text, {"show": shown, "history": past}


class Numbers(html.parser.HTMLParser):
    """Collects the marked numbers of a page: path, whole value, formula, and the text that people see."""

    def __init__(self, text):
        super().__init__()
        self.marked, self._open = [], None
        self.feed(text)

    def handle_starttag(self, _tag, attributes):
        fields = dict(attributes)
        if "data-path" in fields:
            value = json.loads(fields["data-value"])
            self._open = [fields["data-path"], value, fields.get("data-formula"), ""]

    def handle_data(self, data):
        if self._open is not None:
            self._open[3] += data

    def handle_endtag(self, _tag):
        if self._open is not None:
            self.marked.append(tuple(self._open))
            self._open = None


def resolved(root, path):
    """Return the value at a path such as "show.0.bench.2.p50_ms"; a name may have dots itself."""
    if path == "":
        return root
    if isinstance(root, list):
        number, _, rest = path.partition(".")
        return resolved(root[int(number)], rest)
    name = next(name for name in sorted(root, key=len, reverse=True) if path == name or path.startswith(f"{name}."))
    return resolved(root[name], path[len(name) + 1 :])
