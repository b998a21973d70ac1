"""What an upgrade of this program costs: the jobs that run again only because their code came with another version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.builder.costs import numbered_twins
from engine.builder.findings import Finding
from engine.step import Section
from engine.text import distribution, lists


@dataclass(frozen=True)
class Upgrade:
    """The jobs that run again because of an upgrade; equal jobs of variants count once."""

    versions: tuple[str, ...]
    """The versions of this program that made the last results; "" for a version that did not say so."""
    jobs: int
    engines: int
    """How many of the jobs compile a TensorRT engine."""
    gpus: tuple[str, ...]
    """The GPUs of these engines, by their names in the catalogue."""

    def __str__(self) -> str:
        before = " and ".join(map(distribution.earlier, self.versions))
        gpus = f" ({', '.join(self.gpus)})" if self.gpus else ""
        engines = f", of these {lists.counted(self.engines, 'TensorRT engine')}{gpus}" if self.engines else ""
        again = f"{lists.counted(self.jobs, 'job')} would run again{engines}"
        return f"after the upgrade from {before} to {distribution.running()}: {again}"

    def fields(self) -> dict[str, object]:
        """Return the upgrade as JSON values; a version is null where it is not known."""
        return {
            "from": [version or None for version in self.versions],
            "to": distribution.version() or None,
            "jobs": self.jobs,
            "engines": self.engines,
            "gpus": list(self.gpus),
        }


def of(findings: Sequence[Finding]) -> Upgrade | None:
    """Return what an upgrade makes run again; None if it makes nothing run again."""
    twins = numbered_twins(findings)
    again = {twins[each.job.recipe, each.job.name]: each for each in findings if each.is_upgrade}
    if not again:
        return None
    steps = [each.job.step for each in again.values()]
    hardware = [step.hardware() for step in steps if step.section is Section.ENGINE]
    gpus = dict.fromkeys(device.name for each in hardware if each is not None for device in each.devices)
    versions = {each.maker_version or "" for each in again.values()}
    return Upgrade(tuple(sorted(versions)), len(again), len(hardware), tuple(gpus))
