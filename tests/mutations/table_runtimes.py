"""Several runtimes: what they are measured on measures them again, and what judges them only chooses again.

The network is so small that calling OpenVINO takes longer than the network does: ONNX Runtime is chosen in every run.
"""

from mutations.actions import recipe
from mutations.mutation import RUNTIMES, changes, nothing

S = "several"

TABLE = (
    changes("a bound of another value chooses anew by the same figures", S, recipe("cosine: 0.5", "cosine: 0.4"),
            causes={"choose-runtime": "options.cosine.at_least"}, needs=RUNTIMES),
    changes("another shape of bench measures the runtimes again", S, recipe("{batch: 2}]", "{batch: 3}]"),
            causes={"measure-runtimes": "options.shapes"}, spreads="choose-runtime bench",
            needs=RUNTIMES),
    changes("another number of threads measures the runtimes again", S, recipe("threads: 1", "threads: 2"),
            causes={"measure-runtimes": "options.threads"}, spreads="choose-runtime bench",
            needs=RUNTIMES),
    nothing("a budget of bench measures nothing again", S, recipe("{batch: 2}]", "{batch: 2, budget: {p50_ms: 999}}]"),
            needs=RUNTIMES),
    changes("int8 in the weights alone", S, recipe("target: {runtime: auto}\n",
            "target: {runtime: auto}\nprecision: int8\nquantize: {weights_only: true}\n"),
            causes={"openvino-build": ("options.precision", "options.weights_only", "tools.nncf"),
                    "quantize": ("recipe.precision", "recipe.quantize.weights_only")},
            spreads="validate measure-runtimes choose-runtime bench package", needs=RUNTIMES),
    nothing("weights alone beside fp32, which has none in int8", S, recipe("target: {runtime: auto}\n",
            "target: {runtime: auto}\nquantize: {weights_only: true}\n"), needs=RUNTIMES),
    nothing("a comment in the recipe", S, recipe("name: net\n", "name: net  # a network\n"), needs=RUNTIMES),
)  # fmt: skip
