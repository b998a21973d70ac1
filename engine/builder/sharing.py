"""Push the records of recipes to a remote, with their artifacts."""

from __future__ import annotations

from collections.abc import Iterable

from engine.builder.findings import Finding
from engine.builder.variant import PlannedVariant, before
from engine.errors import StepError
from engine.store.remote.tier import Tier


def push(tier: Tier, variants: Iterable[PlannedVariant], findings: Iterable[Finding]) -> int:
    """Push every record of the variants that the store has, and return the number of records.

    Raises UserError: the first error of the remote, or one that names jobs without a record.
    """
    records = {(each.job.recipe, each.job.name): each.record for each in findings}
    count, missing = 0, []
    for variant in variants:
        for job in variant.jobs:
            record = records.get((variant.name, job.name))
            if record is None:
                missing.append(f"{variant.name} {job.name}")
                continue
            earlier = [records.get((variant.name, name)) for name in before(variant, job)]
            tier.push(record, earlier=[each for each in earlier if each is not None])
            count += 1
    if not count:
        raise StepError(
            "there is nothing to push: the store has no record of these recipes",
            [f"without a record: {', '.join(missing)}"],
            "build first: `recipe build`",
        )
    error = tier.wait()
    if error is not None:
        raise error
    return count
