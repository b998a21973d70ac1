"""Tables of the page: a column that is empty in all rows is left out, and the measures in a table are explained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from engine.kit.bench.interleaving import PAUSE_MS
from engine.recipe import matrix
from engine.report import history as past_builds
from engine.report.graph import GraphJob
from engine.report.page.values import FILTERS, NOTHING, Value, per_second
from engine.report.page.variant import PageVariant, place, title
from engine.store.history import PastBuild
from engine.text import lists

_NAMED = 12
"""The most variants that a row of the table of jobs names."""

_WORDS: Mapping[str, str] = {
    "mean ms": "The mean time of a call.",
    "p50 ms": "The median: half of all calls took at most this time.",
    "p95 ms": "95 % of all calls took at most this time.",
    "p99 ms": "99 % of all calls took at most this time.",
    "after a pause ms": f"The median of calls after a pause of {PAUSE_MS} ms, in which threads fall asleep and other "
    "data fills the caches, as for a request to an idle server. All other times are of calls in a loop.",
    "load s": "The seconds in which a new process loads the model, without the imports of its runtime.",
    "first call ms": "The first call of that process.",
    "peak memory MiB": "The peak of the memory of that process, above that before loading.",
    "interval ms": "The 95 % confidence interval of the median. Latencies differ only if their intervals do not meet.",
    "noise": "The uncertainty of the median: half the width of its 95 % confidence interval, as a share of the median.",
    "speed-up": "How many times longer a call of this model takes than one of ours; in brackets the 95 % confidence "
    "interval. An interval with 1 in it means no difference.",
    "lead": "How many times as fast as the first trial this one is, measured in turns with it.",
    "capture s": "The seconds in which the CUDA graph was captured; its calls replay it.",
    "graph memory": "By how much the free memory of the GPU fell when the CUDA graph was captured.",
    "rows a second": "The size of the batch divided by the median, one call at a time.",
    "cosine": "The cosine similarity of the outputs of both models: 1 is the same direction.",
    "max_abs": "The largest absolute difference between the outputs of both models: 0 is no difference.",
    "relative": "max_abs as a share of the output's largest value or, for single numbers, of their spread.",
    "variation": "The share of the variation of an output that the built model reproduces: 1 is all of it.",
    "variation_near_zero": "The same as variation, for outputs near zero.",
    "rank": "The rank correlation of an output with one number per sample: 1 is the same order.",
    "in_batch": "How alike the answers to a row alone and to the row in a batch are, by the built model: 1 is equal.",
    "in_equal_batch": "The same as in_batch, among rows of one shape.",
    "agreement": "The share of cases in which both models choose the same class, token or nearest neighbour.",
    "perplexity": "How unsure a model is about the next token, on average: lower is better.",
    "Pareto front": "No other variant is faster without being less accurate.",
}
"""The title of a column or the name of a measure -> what it says, in a sentence."""


@dataclass(frozen=True)
class PageColumn:
    """A column of a table: its title, and a cell for each row."""

    title: str
    cells: Sequence[str | Markup]
    right: bool = False
    always: bool = False
    """Whether the column is shown although it is empty in all rows."""


@dataclass(frozen=True)
class PageTable:
    """A table: its name for screen readers, and its columns; `ours` marks the rows of the built model."""

    label: str
    columns: Sequence[PageColumn]
    ours: Sequence[bool] = ()
    anchor: str = ""
    """The id of a table that readers sort and filter; empty for any other table."""

    @property
    def shown(self) -> list[PageColumn]:
        """The columns that are not empty in all rows."""
        return [column for column in self.columns if column.always or any(column.cells)]

    @property
    def rows(self) -> list[tuple[str | Markup, ...]]:
        """The cells of each row."""
        return list(zip(*(column.cells for column in self.shown), strict=True))

    @property
    def words(self) -> dict[str, str]:
        """The measures of the table and what each says, in a sentence."""
        names = [*(column.title for column in self.shown), *map(str, self.columns[0].cells)]
        return {name: _WORDS[name] for name in dict.fromkeys(names) if name in _WORDS}


def numbers(name: str, style: str, cells: Iterable[Value]) -> PageColumn:
    """Return a column of numbers, each shown by a filter of the templates."""
    return PageColumn(name, [FILTERS[style](cell) for cell in cells], right=True)


def variants(those: Sequence[PageVariant], linked: Iterable[str], front: Iterable[str]) -> PageTable:
    """Return the table with a row for each variant; the axes of the matrix are columns of their own."""
    values = [matrix.values_of(each.overview.label) for each in those]
    axes = list(dict.fromkeys(axis for each in values for axis in each))
    latencies = [each.latency for each in those]
    validated = [each.shown["validation"] for each in those]
    names = [
        Markup('<a href="#{}">{}</a>').format(each.anchor, each.overview.name)
        if each.anchor in linked
        else each.overview.name
        for each in those
    ]
    intervals = [row["intervals"]["p50_ms"] for row in latencies]
    metrics = dict.fromkeys(each["metric"]["name"].text for each in validated if each["metric"])
    fixed = {"precision": "precision", "target.device": "device"}
    columns = [
        PageColumn("recipe", names),
        *(PageColumn(fixed.get(axis, axis), [each.get(axis, "") for each in values], always=True) for axis in axes),
        *([] if "precision" in axes else [PageColumn("precision", [each.overview.precision for each in those])]),
        *([] if "target.device" in axes else [PageColumn("device", [each.overview.device for each in those])]),
        PageColumn("state", [each.overview.state for each in those]),
        numbers("size", "size", [each.shown["size"] for each in those]),
        numbers("cosine", "accuracy", [each["cosine"]["mean"] for each in validated]),
        numbers("agreement", "accuracy", [each["agreement"]["share"] for each in validated]),
        *(numbers(name, "accuracy", [_metric(each, name) for each in validated]) for name in metrics),
        numbers("p50 ms", "ms", [row["p50_ms"] for row in latencies]),
        PageColumn("interval ms", [interval(each, "ms") for each in intervals], right=True),
        numbers("p95 ms", "ms", [row["p95_ms"] for row in latencies]),
        PageColumn("shape", [place(row) if row else "" for row in latencies]),
        PageColumn(
            "against last build", [each.overview.change.in_words() if each.overview.change else "" for each in those]
        ),
        PageColumn("Pareto front", ["front" if each.anchor in front else "" for each in those]),
        PageColumn("warnings", ["; ".join(each.overview.figures.warnings) for each in those]),
    ]
    return PageTable("all variants", columns, anchor="variants")


def _metric(validated: Value, name: str) -> Value:
    metric = validated["metric"]
    return metric["value"] if metric["name"].raw == name else NOTHING


def interval(ends: Value, style: str) -> Markup:
    """Return an interval in words, with its ends shown by a filter of the templates."""
    return Markup(" to ").join(FILTERS[style](end) for end in ends)


def latencies(rows: Sequence[Value], name: str) -> PageTable:
    """Return the table of the latencies at one shape."""
    ours = next((row for row in rows if row["ours"].raw), NOTHING)
    busy = [" (busy)" if row["busy"].raw else "" for row in rows]
    speed_ups = ["" if row["ours"].raw else _speed_up(ours, row) for row in rows]
    columns = [
        PageColumn("runtime", [f"{title(row)}{mark}" for row, mark in zip(rows, busy, strict=True)]),
        *(numbers(f"{each} ms", "ms", [row[f"{each}_ms"] for row in rows]) for each in ("mean", "p50", "p95", "p99")),
        numbers("after a pause ms", "ms", [row["paused_ms"] for row in rows]),
        numbers("rows a second", "rate", [row["rows_per_s"] for row in rows]),
        numbers("noise", "percent", [row["noise"] for row in rows]),
        numbers("runs", "num", [row["runs"] for row in rows]),
        PageColumn("speed-up", speed_ups),
        numbers("capture s", "num", [row["graph"]["capture_s"] for row in rows]),
        numbers("graph memory", "memory", [row["graph"]["memory_bytes"] for row in rows]),
    ]
    return PageTable(f"latencies at {place(rows[0])} of {name}", columns, [bool(row["ours"].raw) for row in rows])


def _speed_up(ours: Value, rival: Value) -> Markup:
    """Return the speed-up over a rival with its confidence interval, or why there is none."""
    name = rival["runtime"].text
    if ours["busy"].raw or rival["busy"].raw:
        return Markup("{}").format(ours["speed_up"][name].text)
    ratio, between = FILTERS["times"](ours["ratio_to"][name]), interval(ours["ratio_intervals"][name], "times")
    return Markup("{} ({})").format(ratio, between) if ratio and between else ratio


def starts(those: Sequence[Value], name: str) -> PageTable:
    """Return the table of what the start of each model costs."""
    columns = [
        PageColumn("runtime", [title(each) for each in those]),
        numbers("load s", "num", [each["load_s"] for each in those]),
        numbers("first call ms", "ms", [each["first_ms"] for each in those]),
        numbers("peak memory MiB", "num", [each["peak_mib"] for each in those]),
        PageColumn("not measured", [each["reason"].text for each in those]),
    ]
    return PageTable(f"starts of {name}", columns, [bool(each["ours"].raw) for each in those])


def throughput(lines: Mapping[str, Sequence[tuple[int, Value]]], name: str) -> PageTable:
    """Return the table of rows a second by runtime and batch."""
    rows = [(runtime, batch, p50) for runtime, line in lines.items() for batch, p50 in line]
    columns = [
        PageColumn("runtime", [runtime for runtime, _, _ in rows]),
        PageColumn("batch", [str(batch) for _, batch, _ in rows], right=True),
        numbers("p50 ms", "ms", [p50 for _, _, p50 in rows]),
        PageColumn("rows a second", [per_second(p50, batch) for _, batch, p50 in rows], right=True),
    ]
    return PageTable(f"throughput of {name}", columns)


def accuracy(measured: Value, name: str) -> PageTable:
    """Return the table of the measures of accuracy, with the case in which each is worst."""
    distances = {key: each for key, each in measured.items() if each["worst"].number is not None}
    rows: list[tuple[str, Value, Value, str, str, Markup]] = [
        (key, each["mean"], each["worst"], each["sample"].text or each["output"].text, each["text"].text, Markup())
        for key, each in distances.items()
    ]
    num = FILTERS["num"]
    agreement, metric, perplexity = measured["agreement"], measured["metric"], measured["perplexity"]
    if agreement:
        others = ", ".join(each.text for each in agreement["differ"].shown)
        same = Markup("the same answer in {} choices").format(num(agreement["choices"]))
        remark = Markup("other answers in: {}").format(others) if others else same
        rows.append(("agreement", agreement["share"], NOTHING, "", "", remark))
    if metric:
        remark = Markup("the original {}, on {} samples").format(num(metric["original"]), num(metric["samples"]))
        rows.append((metric["name"].text, metric["value"], NOTHING, "", "", remark))
    if perplexity:
        remark = Markup("the original {}, ratio {}").format(num(perplexity["original"]), num(perplexity["ratio"]))
        rows.append(("perplexity", perplexity["value"], NOTHING, "", "", remark))
    columns = [
        PageColumn("measure", [row[0] for row in rows]),
        numbers("mean", "num", [row[1] for row in rows]),
        numbers("worst", "num", [row[2] for row in rows]),
        PageColumn("worst case", [row[3] for row in rows]),
        PageColumn("its text", [row[4] for row in rows]),
        PageColumn("remark", [row[5] for row in rows]),
    ]
    return PageTable(f"accuracy of {name}", columns)


def jobs(listed: Collection[GraphJob], steps: Sequence[Value], name: str) -> PageTable:
    """Return the table of jobs; `steps` are the jobs in `recipe show --json`, in the same order."""
    several = len({each for job in listed for each in job.variants}) > 1
    columns = [
        PageColumn("job", [job.name for job in listed]),
        PageColumn("variants", [lists.first_of(job.variants, _NAMED) if several else "" for job in listed]),
        PageColumn("state", [job.state for job in listed]),
        numbers("took", "lasting", [step["seconds"] for step in steps]),
        numbers("memory", "memory", [step["peak_bytes"] for step in steps]),
        numbers("output", "size", [step["bytes"] for step in steps]),
        PageColumn("reads", [", ".join(job.reads) for job in listed]),
    ]
    return PageTable(f"jobs of {name}", columns)


def builds(those: Sequence[Value], name: str) -> PageTable:
    """Return the table of a variant's builds."""
    figures = [build["figures"] for build in those]
    p50s = [Markup(" / ").join(FILTERS["ms"](each["p50_ms"]) for each in one["latencies"]) for one in figures]
    columns = [
        PageColumn("when", [past_builds.when(build["at"].number or 0.0) for build in those]),
        PageColumn("state", [build["state"].text for build in those]),
        numbers("took", "lasting", [build["seconds"] for build in those]),
        numbers("size", "size", [each["size"] for each in figures]),
        numbers("cosine", "accuracy", [each["cosine"] for each in figures]),
        PageColumn("p50 ms", p50s, right=True),
        PageColumn("what ran and why", [_causes(build) for build in those]),
        PageColumn("warnings", ["; ".join(each.text for each in one["warnings"]) for one in figures]),
    ]
    return PageTable(f"builds of {name}", columns)


def _causes(build: Value) -> Markup:
    """Return the jobs of a build that ran, each with the rows that changed."""
    raw = build.raw
    fields = {name: each for name, each in raw.items() if name != "seconds"} if isinstance(raw, Mapping) else {}
    lines = [Markup("<li>{}</li>").format(cause) for cause in past_builds.jobs(PastBuild.from_json(fields))]
    return Markup('<ul class="plain">{}</ul>').format(Markup().join(lines)) if lines else Markup()
