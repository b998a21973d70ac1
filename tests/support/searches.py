"""Results of searches with drawn figures, for the page and the table of a search."""

import random

from engine.tuning.result import TrialRow, TuneResult, front

POINTS = [
    {"target.runtime": runtime, "precision": precision, **more}
    for runtime in ("onnxruntime", "openvino")
    for precision in ("fp32", "int8", "int4", "bf16")
    for more in (
        {},
        {"package.triton.threads": 2},
        {"quantize.weights_only": True},
        {"quantize.keep_in.fp32": ["/a/b"]},
    )
]
SIZES = {"fp32": 90_900_000, "bf16": 45_500_000, "int8": 22_800_000, "int4": 15_100_000}
LOSSES = {"fp32": 1e-7, "bf16": 2e-5, "int8": 4e-3, "int4": 3e-2}
TIMES = {"fp32": 9.0, "bf16": 7.0, "int8": 3.0, "int4": 4.0}


def result(count, *, failed=0, figure="p95_ms", why="it leads by more than the noise"):
    """Return the result of a search with so many trials; the last `failed` ones failed."""
    draw = random.Random(count)
    points = [{}, *(POINTS * 3)][:count]
    rows = [row(number, point, draw, figure) for number, point in enumerate(points, 1)]
    for index in range(count - failed, count):
        broken = {"state": "failed", "why": "the operator <Foo> & 'Bar' is unknown"}
        rows[index] = TrialRow(number=index + 1, point=points[index], seconds=3.0, **broken)
    whole = [each for each in rows if each.state == "validated"]
    best = max(whole, key=lambda each: each.lead, default=None)
    finals = tuple(each.number for each in whole if each is best or each.number == 1)
    return TuneResult(
        recipe="recipes/<r>.yaml", objective=f"the smallest {figure} at batch 1, sequence 128", trials=tuple(rows),
        bounds="cosine at least 0.99", front=front(whole, best and best.number), finals=finals,
        chosen=best and best.number, why=why, seconds=754.0, notes=("only 20 samples were compared",),
    )  # fmt: skip


def row(number, point, draw, figure):
    """Return a trial of this point with figures that its precision makes likely."""
    kind = point.get("precision", "fp32")
    loss, time = LOSSES[kind] * draw.uniform(0.5, 2), TIMES[kind] * draw.uniform(0.7, 1.4)
    speed = {"throughput": 1000 / time} if figure == "throughput" else {"p50_ms": time * 0.9, "p95_ms": time}
    lead = 9.0 / time
    return TrialRow(
        number=number, point=point, state="missed" if loss > 1e-2 else "validated", size=SIZES[kind],
        why="cosine 0.97 of line 3" if loss > 1e-2 else "", accuracies={"cosine": 1 - loss}, mean_cosine=1 - loss / 2,
        samples=20, figures=speed, lead=lead, interval=(lead * 0.98, lead * 1.03), seconds=time * 4,
    )  # fmt: skip
