"""What a variant's last build made and measured, gathered from its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from engine.builder import reports
from engine.builder.lookup import Lookup, Variant
from engine.reporting import TypedReport
from engine.store.store import Record

R = TypeVar("R", bound=TypedReport)


@dataclass(frozen=True)
class Summary:
    """The records of a variant by job, in the plan's order; a job that was never made has none."""

    variant: Variant
    records: Mapping[str, Record]

    def report(self, name: str, kind: type[R]) -> R | None:
        """Return what a job reported, None where it was not made, or reports something else."""
        step = next((type(job.step) for job in self.variant.jobs if job.name == name), None)
        record = self.records.get(name)
        found = None if step is None or record is None else reports.read(step, record)
        return found if isinstance(found, kind) else None

    @property
    def model(self) -> Record | None:
        """The record of the model that is packaged: the last one made before the package."""
        order = ("validate", "trt-build", "validate-onnx", "quantize", "fuse", "shape-infer", "export", "fetch")
        return next((self.records[job] for job in order if job in self.records), None)

    def to_json(self) -> dict[str, object]:
        """Return the machine-readable form that `recipe show --json` prints per variant."""
        recipe = self.variant.loaded.recipe
        return {
            "recipe": self.variant.name,
            "variant": self.variant.loaded.variant,
            "precision": recipe.precision,
            "target": recipe.target.model_dump(mode="json", exclude_none=True),
            "steps": [_step(job.name, self.records.get(job.name)) for job in self.variant.jobs],
            "size": self.model.size if self.model else None,
            "validation": self._filed("validate"),
            "validation_onnx": self._filed("validate-onnx"),
            "bench": self._filed("bench").get("rows", []),
        }

    def _filed(self, job: str) -> Mapping[str, object]:
        """Return a job's report as JSON, {} where it was not made."""
        record = self.records.get(job)
        return record.report if record is not None else {}


def summarise(lookup: Lookup, variant: Variant) -> Summary:
    """Return what the store knows of a variant's last build."""
    notes = lookup.heads.of(variant.loaded).get("jobs", {})
    records = {}
    for job in variant.jobs:
        found = lookup.store.read(notes.get(job.name, {}).get("key", "none"))
        record = None if found is None else reports.current(type(job.step), found)
        if record is not None:
            records[job.name] = record
    return Summary(variant, records)


def _step(job: str, record: Record | None) -> dict[str, object]:
    if record is None:
        return {"job": job, "artifact": None}
    return {
        "job": job,
        "artifact": record.artifact,
        "bytes": record.size,
        "seconds": record.seconds,
        "peak_bytes": record.peak_bytes,
        "made_on": dict(record.machine),
        "tools": {row[len("tools.") :]: value for row, value in record.key.items() if row.startswith("tools.")},
        "report": dict(record.report),
    }
