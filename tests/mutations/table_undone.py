"""There and back again, and several changes at once."""

from mutations.actions import append, flip, recipe, remove, rewrite, write
from mutations.actions_around import built, elsewhere, say, tool, untool
from mutations.mutation import Action, changes, nothing
from mutations.projects import SAMPLES

B, N, S = "bert", "net", "source"


def _there_and_back(says: str, project: str, there: Action, back: Action):
    return nothing(f"{says}, built, and back", project, there, built, back)


TABLE = (
    _there_and_back("another precision", B, recipe("int8", "fp32"), recipe("fp32", "int8")),
    _there_and_back("one bit of the weights", N, flip("net/net.data"), flip("net/net.data")),
    _there_and_back("a tool's version", N, tool("sympy", "9.9"), untool),
    _there_and_back("a step's code", S, append("src/engine/steps/package.py", "_EDITED = 1\n"),
                    rewrite("src/engine/steps/package.py", lambda text: text.removesuffix("_EDITED = 1\n"))),
    _there_and_back("all samples but one", B, write("samples.jsonl", '{"text": "no"}\n'), write("samples.jsonl",
            SAMPLES)),
    nothing("another precision on the command line, built, and back", B, recipe("int8", "fp32"), built, say("--set",
            "precision=int8")),
    changes("another name and another shape", B, recipe("name: tiny", "name: other"), recipe("sequence: 8",
            "sequence: 9"),
            causes={"package": ("options.serving.model_name", "options.serving.ensemble"), "bench": "options.shapes"}),
    changes("other samples in another place", B, append("samples.jsonl", '{"text": "slow"}\n'), elsewhere,
            causes={"reference": "inputs.samples"}, spreads="validate"),
    changes("a tool and a shape", B, tool("sympy", "9.9"), recipe("sequence: 8", "sequence: 9"),
            causes={"export": "tools.sympy"}, spreads="shape-infer fuse quantize bench"),
    changes("other samples, and no snapshot", B, append("samples.jsonl", '{"text": "slow"}\n'),
            remove("cache/snapshots"),
            causes={"reference": "inputs.samples"}, spreads="validate"),
    changes("another precision, without the notes of last builds", B, recipe("int8", "fp32"), remove("cache/heads"),
            causes={"validate": ()}, spreads="bench package"),
)  # fmt: skip
