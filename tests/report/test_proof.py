"""The outcomes of `recipe prove`: each part has one, the file has them after each part, the exit code sums them up."""

import json

import pytest

from engine.errors import Exit, HardwareError, StepError
from engine.report.proof import Proof


@pytest.fixture
def proof(tmp_path):
    return Proof(tmp_path / "results.json", {"gpu.name": "Tesla T4 (sm_75)"})


def written(proof):
    return json.loads(proof.file.read_text())


def test_a_part_without_an_error_has_passed_and_is_written_at_once(proof):
    with proof.part("net", "build", "Tesla T4") as outcome:
        outcome.text = "built in 1 s"
        outcome.figures.append({"throughput": 3.5})
    assert written(proof)["machine"] == {"gpu.name": "Tesla T4 (sm_75)"}
    [part] = written(proof)["parts"]
    assert part == part | {"recipe": "net", "part": "build", "device": "Tesla T4", "state": "passed"}
    assert part["figures"] == [{"throughput": 3.5}]
    assert proof.exit is Exit.OK


@pytest.mark.parametrize(
    ("error", "state", "text"),
    [
        (StepError("it broke", ["a fact"], "a hint"), "failed", "it broke; a fact; a hint"),
        (HardwareError("no docker"), "did not run", "no docker"),
        (ValueError("a bug"), "failed", "ValueError: a bug"),
    ],
)
def test_an_error_is_the_outcome_of_its_part_and_the_next_part_goes_on(proof, error, state, text):
    with proof.part("net", "load", "CPU"):
        raise error
    with proof.part("net", "ask", "CPU"):
        pass
    first, second = written(proof)["parts"]
    assert (first["state"], first["text"]) == (state, text)
    assert ("raise error" in first["trace"]) == isinstance(error, ValueError)
    assert second["state"] == "passed"


def test_an_interruption_keeps_the_figures_and_goes_on(proof):
    def interrupted():
        with proof.part("net", "load test", "CPU") as outcome:
            outcome.figures.append({"concurrency": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    [part] = written(proof)["parts"]
    assert (part["state"], part["figures"]) == ("interrupted", [{"concurrency": 1}])


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([None, HardwareError("no server")], Exit.OK),
        ([None, StepError("no")], Exit.FAILED),
        ([HardwareError("no GPU")], Exit.WAITING),
    ],
)
def test_the_exit_code_follows_from_all_parts(proof, errors, code):
    for error in errors:
        with proof.part("net", "build", "CPU"):
            if error is not None:
                raise error
    assert proof.exit is code
    proof.is_interrupted = True  # also between two parts
    assert proof.exit is Exit.INTERRUPTED


def test_the_table_says_what_ran_where(proof, capsys):
    with proof.part("net", "build", "Tesla T4"):
        pass
    with proof.part("net", "load", "Tesla T4"):
        raise StepError("it ended")
    proof.skip("net", "ask", "no server has loaded it")
    proof.show()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["net", "build", "Tesla"], ["net", "load", "Tesla"], ["net", "ask", "-"],
    ]  # fmt: skip
    assert lines[3].endswith("did not run: no server has loaded it")
    assert lines[4] == "of 3 parts ran: 2 on Tesla T4"
