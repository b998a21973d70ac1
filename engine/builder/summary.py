"""Gather the records and reports of a variant's last build into a Summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import TypeVar

from engine import reporting
from engine.builder.job import Job, current_report, read_report
from engine.builder.lookup import Lookup
from engine.builder.variant import PlannedVariant
from engine.feasibility.facts import ModelFacts
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.bench import proposal
from engine.kit.bench.report import BenchReport, BenchRow, case_in_words
from engine.kit.bench.sample_report import SampleLengths
from engine.reporting import TypedReport
from engine.runtimes import threads
from engine.step import Section
from engine.store.heads import NEVER, Head
from engine.store.history import HeadlineFigures, MeasuredLatency
from engine.store.record import Record
from engine.text import lists, sizes

NOT_ON_DEVICE = "not validated on the device yet"
_WHERE_KNOWN = (Section.ENGINE, Section.RUNTIME, "licenses", "sample_lengths", "starts")
"""The fields of the JSON of a summary that are left out where they are empty."""
R = TypeVar("R", bound=TypedReport)


@dataclass(frozen=True)
class Summary:
    """The records of a variant by job, in the plan's order.

    A job that has no record in the store is missing in `records`.
    """

    variant: PlannedVariant
    records: Mapping[str, Record]
    head: Head = NEVER
    """The last build of the variant, which says whose results the records are."""

    def __repr__(self) -> str:
        """Return the variant's name, how many of its jobs are built, the size of its model, and what `about` says."""
        size = "" if self.model is None else f", {sizes.decimal(self.model.size)}"
        built = f"{len(self.records)} of {lists.counted(len(self.variant.jobs), 'job')} built"
        return f"<Summary {'; '.join((f'{self.variant.name}: {built}{size}', *self.about))}>"

    def _repr_html_(self) -> str:
        """Return the latencies as a table, which a notebook shows."""
        return html_latencies(repr(self)[1:-1], self.report(Section.BENCH, BenchReport), self.warnings)

    def report(self, section: Section, kind: type[R]) -> R | None:
        """Return the first report of type `kind` in a section (validation, precision, bench), or None."""
        reports_of_section = map(self._read, self._about(section))
        return next((report for report in reports_of_section if isinstance(report, kind)), None)

    def taken(self, section: Section, name: str) -> Record | None:
        """Return the record of the job that made the input `name` of the job that reports on `section`; else None."""
        jobs = (job for job in self.variant.jobs if job.step.section is section)
        return next((self.records.get(job.needs.get(name, "")) for job in jobs), None)

    @property
    def precision(self) -> str:
        """The precision of the recipe that was built, which may have changed since."""
        return next(self._built_with("precision"), self.variant.loaded.recipe.precision)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the recipe that was built."""
        return tuple(self._built_with("target.device")) or self.variant.loaded.recipe.target.devices

    @property
    def runtime(self) -> str:
        """The runtime of the recipe that was built."""
        return next(self._built_with("target.runtime"), self.variant.loaded.recipe.target.runtime)

    def _built_with(self, name: str) -> Iterator[str]:
        """Yield the value of a field of the recipe that was built, or each entry of its list; nothing if unknown."""
        fields = self.head.results.recipe.items()
        return (value for field, value in fields if f"{field}.".startswith(f"recipe.{name}."))

    @property
    def about(self) -> tuple[str, ...]:
        """Which build and machine the results are of, where that is not the last build, or where they are from afar."""
        lines, failed = [], self.head.failed
        if failed is not None and failed.passed is None:
            lines.append(f"the last build {failed.why}; no build has passed so far")
        elif failed is not None and failed.passed is not None:
            moment = datetime.fromtimestamp(failed.passed.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
            which = f"results of the last successful build, {self.precision}, of {moment}"
            lines.append(f"{which}; the last build {failed.why}")
        bench = self.report(Section.BENCH, BenchReport)
        if bench is not None and any(self.records[job.name].origin for job in self._about(Section.BENCH)):
            lines.append(f"replayed: the latencies were measured elsewhere, on {bench.device}")
        return tuple(lines)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands beside the figures wherever they are shown."""
        bench, accuracy = self.report(Section.BENCH, BenchReport), self._accuracy
        on_device = self.report(Section.VALIDATION, AccuracyReport)
        return (
            *self.about,
            *(() if bench is None else bench.warnings),
            *filter(None, [self.other_threads]),
            *([f"{NOT_ON_DEVICE}; accuracy of ONNX on the CPU"] if accuracy and not on_device else ()),
            *(() if accuracy is None else accuracy.warnings),
        )

    @property
    def other_threads(self) -> str:
        """That the package is served with other threads than it was measured with, as a line; "" where it is not."""
        bench = self.report(Section.BENCH, BenchReport)
        if bench is None or bench.gpu is not None:
            return ""
        return threads.other_threads(self.variant.loaded.recipe, bench.threads)

    @property
    def headline(self) -> HeadlineFigures:
        """The few figures by which people compare builds; a figure is None where the store has no measurement."""
        bench, accuracy = self.report(Section.BENCH, BenchReport), self._accuracy
        cosine = None if accuracy is None else accuracy.cosine
        rows = () if bench is None else bench.rows
        start = next((each for each in bench.starts if each.ours), None) if bench is not None else None
        return HeadlineFigures(
            size=None if self.model is None else self.model.size,
            cosine=None if cosine is None else cosine.mean,
            worst_cosine=None if cosine is None else cosine.worst,
            agreement=None if accuracy is None or accuracy.agreement is None else accuracy.agreement.share,
            metrics={} if accuracy is None else _metrics(accuracy),
            latencies=tuple(_latency(row) for row in rows if row.ours or row.other_way),
            load_s=None if start is None else start.load_s,
            first_ms=None if start is None else start.first_ms,
            peak_mib=None if start is None else start.peak_mib,
            device="" if bench is None or not rows else bench.device,
            warnings=self.warnings,
        )

    @property
    def _accuracy(self) -> AccuracyReport | None:
        """The accuracy on the device; that of ONNX on the CPU as long as the device has not validated."""
        sections = (Section.VALIDATION, Section.VALIDATION_ONNX)
        return next(filter(None, (self.report(section, AccuracyReport) for section in sections)), None)

    @property
    def model(self) -> Record | None:
        """The record of the packaged model: the output of the last job with a record that carries the model."""
        carriers = carrying(self.variant.jobs)
        return next((self.records[job.name] for job in reversed(self._built) if job.name in carriers), None)

    @property
    def facts(self) -> ModelFacts | None:
        """What the model's files tell about the model; None if no job has read the model's files."""
        return next((report for report in map(self._read, self._built) if isinstance(report, ModelFacts)), None)

    @property
    def _built(self) -> list[Job]:
        """The jobs that have a record, in the order of the plan."""
        return [job for job in self.variant.jobs if job.name in self.records]

    def to_json(self) -> dict[str, object]:
        """Return the summary as the JSON values that `recipe show --json` prints for each variant."""
        bench, rows = self.report(Section.BENCH, BenchReport), self._filed(Section.BENCH).get("rows", [])
        if bench is not None and isinstance(rows, Sequence):  # with what a reader must know before comparing numbers
            rows = [
                {**raw, "busy": row.is_busy, "speed_up": bench.speed_ups(row), "rows_per_s": row.rows_per_s}
                for raw, row in zip(rows, bench.rows, strict=True)
            ]
        lengths = () if bench is None else bench.samples
        fields = {
            "recipe": self.variant.name,
            "variant": self.variant.loaded.variant,
            "precision": self.precision,
            "target": self._target(),
            "steps": [_step(job.name, self.records.get(job.name)) for job in self.variant.jobs],
            "size": self.model.size if self.model else None,
            Section.VALIDATION: self._filed(Section.VALIDATION),
            Section.VALIDATION_ONNX: self._filed(Section.VALIDATION_ONNX),
            Section.ENGINE: self._filed(Section.ENGINE),
            Section.BENCH: rows,
            Section.RUNTIME: self._filed(Section.RUNTIME),
            "licenses": [] if self.facts is None else self.facts.to_json().get("licenses", []),
            "sample_lengths": [{**asdict(each), "proposal": self.proposal(each)} for each in lengths],
            "starts": [] if bench is None else [each.to_json() for each in bench.starts],
            "warnings": list(self.warnings),
        }
        return {name: value for name, value in fields.items() if value or name not in _WHERE_KNOWN}

    def _target(self) -> dict[str, object]:
        """Return the target of the recipe that was built."""
        target = self.variant.loaded.recipe.target
        fields = target.model_dump(mode="json", exclude_none=True)
        if self.devices != target.devices:
            fields["device"] = self.devices[0] if len(self.devices) == 1 else list(self.devices)
        return {**fields, "runtime": self.runtime}

    def proposal(self, lengths: SampleLengths) -> str:
        """Return the profiles and the batching that follow from the lengths of samples, as YAML; "" if not known."""
        return "" if self.facts is None else proposal.yaml(self.variant.loaded.recipe, self.facts, lengths)

    def _about(self, section: Section) -> list[Job]:
        rejected = self.rejected
        return [job for job in self._built if job.step.section is section and job.name not in rejected]

    @cached_property
    def rejected(self) -> frozenset[str]:
        """The jobs that only serve runtimes which were not chosen: their reports are not about the packaged model."""
        choosing = [job for job in self.variant.jobs if job.step.section is Section.RUNTIME]
        models = {runtime: job.needs[name] for job in choosing for name, runtime in job.step.models_of().items()}
        reports_of_choice = (self.records[job.name].report for job in choosing if job.name in self.records)
        chosen = models.get(str(next(reports_of_choice, {}).get("runtime")))
        if chosen is None:
            return frozenset()
        jobs = {job.name: job for job in self.variant.jobs}
        needed = {model: {model, *self.variant.before(jobs[model])} for model in models.values()}
        return frozenset(set().union(*needed.values()) - needed[chosen])

    def _read(self, job: Job) -> object:
        return read_report(type(job.step), self.records[job.name])

    def _filed(self, section: Section) -> Mapping[str, object]:
        """Return the JSON of the report whose subject is `section`; {} for a missing report."""
        return next((self.records[job.name].report for job in self._about(section)), {})


def _metrics(accuracy: AccuracyReport) -> dict[str, float]:
    metrics = {}
    if accuracy.metric is not None:
        metrics[accuracy.metric.name] = accuracy.metric.value
    if accuracy.perplexity is not None and accuracy.perplexity.ratio is not None:
        metrics["perplexity ratio"] = accuracy.perplexity.ratio
    if accuracy.rank is not None:
        metrics["rank correlation"] = accuracy.rank.worst
    return metrics


def _latency(row: BenchRow) -> MeasuredLatency:
    """Return the figures of a row of the recipe's own model, run in either way."""
    tokens = "" if row.new_tokens is None else f" + {row.new_tokens} tokens"
    return MeasuredLatency(
        place=f"{case_in_words(row)}{tokens}",
        p50_ms=row.p50_ms,
        interval=row.interval("p50_ms"),
        p95_ms=row.p95_ms,
        busy=row.is_busy,
        paused_ms=row.paused_ms,
        rows_per_s=row.rows_per_s,
    )


def carrying(jobs: Sequence[Job]) -> set[str]:
    """Return the names of the jobs whose output is the model, including jobs that come `after` one of them."""
    names: set[str] = set()
    for job in jobs:
        taken = next(iter(job.needs.values()), None)
        if job.step.carries_model or (job.step.after is not None and taken in names):
            names.add(job.name)
    return names


def summarize(lookup: Lookup, variant: PlannedVariant, head: Head | None = None, *, newest: bool = False) -> Summary:
    """Return the records of a variant's last build that gave a result, as far as the store still has the records.

    Without such a build, they are those of the last build. `head` is of another recipe that the variant continues. With
    `newest`, they are the newest record of each job, also of builds that failed.
    """
    head = lookup.heads.of(variant.subject) if head is None else head
    keys = head.newest if newest else head.results.jobs
    records = {}
    for job in variant.jobs:
        stored = lookup.store.read(keys[job.name]) if job.name in keys else None
        record = None if stored is None else current_report(type(job.step), stored)
        if record is not None:
            records[job.name] = record
    return Summary(variant, records, head)


def _step(job: str, record: Record | None) -> dict[str, object]:
    if record is None:
        return {"job": job, "artifact": None}
    return {
        "job": job,
        "artifact": record.artifact,
        "bytes": record.size,
        "seconds": record.seconds,
        "peak_bytes": record.peak_bytes,
        "anonymous_bytes": record.anonymous_bytes,
        "made_on": dict(record.machine),
        "tools": {row[len("tools.") :]: value for row, value in record.key.items() if row.startswith("tools.")},
        "report": dict(record.report),
    }


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML, with the caption above; the cells are plain text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>"
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_latencies(caption: str, bench: BenchReport | None, warnings: Sequence[str]) -> str:
    """Return the latencies of a bench report and their warnings as HTML; without a report the caption and warnings."""
    below = "".join(f"<p>warning: {escape(warning)}</p>" for warning in warnings)
    if bench is None or not bench.rows:
        return f"<p>{escape(caption)}</p>{below}"
    numbers = reporting.numbers(BenchRow)
    header = ("shape", "runtime", *(f"{number.label} {number.unit}".rstrip() for number in numbers.values()))
    return html_table(caption, header, [tuple(_cells(row, numbers)) for row in bench.rows]) + below


def _cells(row: BenchRow, numbers: dict[str, reporting.Number]) -> Iterator[str]:
    yield from (case_in_words(row), row.title)
    for name, number in numbers.items():
        value = getattr(row, name)
        yield "" if value is None else number.text(value)
