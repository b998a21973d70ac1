"""The table of peers: processes that take turns, environments that are made once, and what the table says."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import onnx
import pytest
from onnx import helper

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))

import peers
from frontier import bars, environments, measuring
from frontier.accuracy import Accuracy
from frontier.contenders import Contender
from frontier.measuring import Timings
from frontier.seats import Seat, SeatError
from frontier.standings import CSV, Standings
from frontier.subjects import SUBJECTS

EXACT, INT8, WEAK = (Accuracy(mean, worst, mean, worst, 1.0, 1.0, 300) for mean, worst in
                     ((1.0, 0.99999), (0.998, 0.99), (0.9, 0.4)))  # fmt: skip


def negation(folder):
    """An ONNX file that negates `x`, as a contender."""
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return Contender("negation", "onnx", "fp32", str(path))


def standings(precision, accuracies, **milliseconds):
    """Three processes of ten rounds, with a noise that all share."""
    noise = np.random.default_rng(0).uniform(1, 2, (3, 10))
    timings = Timings(tuple({name: list(time * row) for name, time in milliseconds.items()} for row in noise), 0.0)
    contenders = [Contender(name, "ours" if name == "ours" else "onnx", name) for name in milliseconds]
    contenders.append(Contender("gone", "onnx", "gone", absent="not installed: pip"))
    return Standings(precision, "ours", contenders, accuracies, {"1x16": timings})


def test_contenders_take_turns_in_processes_of_their_own_and_a_broken_one_says_why(tmp_path):
    missing = Contender("missing", "onnx", "fp32", str(tmp_path / "none.onnx"))
    timings, failures = measuring.timed(
        [negation(tmp_path), missing], {"4": {"x": np.ones(4, np.float32)}}, tmp_path,
        threads=1, processes=2, rounds=3, seconds=0.01, clock="wall",
    )  # fmt: skip
    assert [len(process["negation"]) for process in timings["4"].processes] == [3, 3]
    assert timings["4"].has("negation")
    assert not timings["4"].has("missing")
    [why] = failures
    assert why.startswith("missing: NoSuchFile")


def test_the_answers_of_a_contender_come_from_the_interpreter_of_its_environment(tmp_path):
    contender = negation(tmp_path)
    [answer] = measuring.answered(contender, [{"x": np.ones(2, np.float32)}], tmp_path)
    assert answer.tolist() == [-1, -1]
    elsewhere = Contender(**{**vars(contender), "python": str(tmp_path / "no-python")})
    with pytest.raises(SeatError, match="no-python"), Seat(elsewhere, 1, tmp_path):
        pass


def test_a_request_that_takes_too_long_is_stopped(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones(2, np.float32))
    with (
        Seat(negation(tmp_path), 1, tmp_path) as seat,
        pytest.raises(SeatError, match="stopped after 0 s"),
    ):
        seat.ask(do="prepare", shape="2", inputs=str(tmp_path / "x.npz"), seconds=60, limit=0.1)


def test_an_environment_is_made_once_for_the_same_packages(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(environments, "_run", lambda command: (tmp_path / "olive").mkdir(exist_ok=True)
                        or commands.append(command))  # fmt: skip
    python = environments.python("olive", tmp_path)
    assert python == tmp_path / "olive" / "bin" / "python"
    assert "olive-ai==0.13.0" in commands[1]
    made = len(commands)
    assert environments.python("olive", tmp_path) == python
    assert len(commands) == made
    monkeypatch.setitem(environments.PINS, "olive", ("olive-ai==0.14.0",))
    environments.python("olive", tmp_path)
    assert len(commands) == 2 * made


@pytest.mark.parametrize(
    ("peer", "words"),
    [(2.0, "ours is the fastest; peer takes 2.00"), (0.5, "**ours is not the fastest**; peer takes 0.50"),
     (1.0, "no difference to the fastest peer can be told")],
)  # fmt: skip
def test_the_table_says_where_ours_is_not_the_fastest(peer, words):
    each = standings("int8", {"ours": INT8, "peer": INT8, "wrong": WEAK}, ours=1.0, peer=peer, wrong=0.1)
    first, absent = each.words()
    assert words in first
    assert absent == "int8: gone: not installed: pip"
    assert "| wrong |" in each.markdown()
    assert "mean below 0.99" in each.markdown()


def test_a_model_that_computes_partly_in_bf16_is_not_exact():
    each = standings("fp32", {"ours": EXACT, "peer": INT8}, ours=1.0, peer=0.5)
    assert next(each.words()) == "fp32 at 1x16: nothing to compare."
    assert "not exact" in each.markdown()


def test_the_figures_and_the_picture_have_each_contender():
    each = standings("int8", {"ours": INT8, "peer": WEAK}, ours=1.0, peer=2.0)
    rows = [dict(zip(CSV, row, strict=True)) for row in each.rows()]
    assert [(row["contender"], row["of_ours"], row["in_class"]) for row in rows] == [
        ("ours", "1.0000", "true"), ("peer", "2.0000", "false"),
    ]  # fmt: skip
    root = ET.fromstring(bars.drawn([each], "times"))
    styles = [bar.get("class") for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert styles == ["ours", "weak"]


def test_our_recipes_fix_the_shapes_and_the_threads_that_are_measured(tmp_path):
    fields = {"fixed": ["1x16", "8x128"], "samples": tmp_path, "calibration": None, "threads": 2}
    recipe = json.loads(SUBJECTS["minilm"].recipe("r", "auto", **fields))
    assert recipe["profiles"] == [{"batch": 1, "sequence": 16}, {"batch": 8, "sequence": 128}]
    assert recipe["bench"]["threads"] == recipe["package"]["triton"]["threads"] == 2


def test_a_busy_machine_gets_no_table(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: peers.py -->\n<!-- end -->\n")
    nothing = SimpleNamespace(build=list, build_peers=list, compare=list, time=pytest.fail)
    monkeypatch.setattr(peers, "Contest", lambda _: nothing)
    monkeypatch.setattr(peers, "_busy", lambda: 0.7)
    monkeypatch.setattr(sys, "argv", ["peers.py", "--into", str(page)])
    with pytest.raises(SystemExit, match=r"other processes used 0\.70 cores"):
        peers.main()
    assert page.read_text() == "<!-- measured: peers.py -->\n<!-- end -->\n"
