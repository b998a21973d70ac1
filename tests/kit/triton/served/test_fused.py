"""The parts of a package in one process, as they are served."""

import json

import numpy as np
import pytest

from engine.kit.triton.served.fused import Work

SESSION = '''
class ModelSession:
    """Counts its calls, and returns twice the ids and their sum; fails on the id 13."""

    def __init__(self, folder, settings):
        self.calls = []

    def __call__(self, given, outputs):
        ids = given["ids"]
        self.calls.append((ids.shape, outputs))
        if (ids == 13).any():
            raise RuntimeError("thirteen")
        results = {"twice": 2 * ids, "sum": ids.sum(axis=1)}
        return {name: results[name] for name in outputs}
'''
TOKENIZER = '''
import numpy as np


class Work:
    """Each text is numbers."""

    def __init__(self, folder, settings):
        pass

    def __call__(self, given):
        return {"ids": np.array([[int(word) for word in row[0].split()] for row in given["TEXT"].tolist()])}
'''
ANSWER = '''
class Work:
    """Hands on what came, and says whether it is large."""

    def __init__(self, folder, settings):
        self.least = settings["least"]

    def __call__(self, given):
        return {"large": given["twice"].max(axis=1) >= self.least}
'''
STEPS = [
    {"folder": "tokenizer", "takes": {"TEXT": "TEXT"}, "gives": {"ids": "ids"}},
    {"folder": None, "takes": {"ids": "ids"}, "gives": {"twice": "twice_before", "sum": "sum"}},
    {"folder": "answer", "takes": {"twice": "twice_before"}, "gives": {"twice": "twice", "large": "large"}},
]


def opened(tmp_path, warm_up):
    (tmp_path / "session.py").write_text(SESSION)
    for name, code, settings in (("tokenizer", TOKENIZER, {}), ("answer", ANSWER, {"least": 8, "again": ["twice"]})):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(code)
        (tmp_path / name / "settings.json").write_text(json.dumps({"work": f"{name}.py", **settings}))
    settings = {"steps": STEPS, "session": {}, "max_text_bytes": 1000, "most": 4, "warm_up": [warm_up]}
    return Work(tmp_path, settings)


@pytest.fixture
def work(tmp_path):
    work = opened(tmp_path, "1 2 3")
    assert work.session.calls == [((1, 3), ["twice"])], "the warm-up"
    work.session.calls.clear()
    return work


def request(text, outputs=("twice", "large", "sum"), *, cancelled=lambda: False):
    row = np.array([[text.encode()]], dtype=object)
    return lambda: {"TEXT": row}, list(outputs), cancelled


def ask(work, *texts, outputs=("twice", "large", "sum")):
    """Ask for texts, each as a request of its own; return each request's outputs, or its error."""
    results = {}
    for place, result, _ in work.together([request(text, outputs) for text in texts]):
        try:
            results[place] = {name: array.tolist() for name, array in result().items()}
        except (ValueError, RuntimeError) as error:
            results[place] = error
    return [results[place] for place in range(len(texts))]


def test_a_model_that_refuses_the_first_text_is_ready_nevertheless(tmp_path):
    work = opened(tmp_path, "no number")
    assert ask(work, "4", outputs=("sum",)) == [{"sum": [4]}]


def test_each_request_is_answered_before_the_model_runs_for_the_next_shape(work):
    answered = []
    for place, result, others_wait in work.together([request(text) for text in ("1 2 3", "4", "word", "5 6 7", "8 9")]):
        assert place == 2 or len(result()) == 3
        answered.append((place, len(work.session.calls), others_wait))
    assert answered == [(2, 0, True), (0, 1, True), (3, 1, True), (1, 2, True), (4, 3, False)]


def test_a_request_that_is_cancelled_meanwhile_is_not_computed(work):
    gone = []
    requests = [request("1 2"), request("3", cancelled=lambda: bool(gone)), request("4 5 6")]
    places = []
    for place, result, _ in work.together(requests):
        places.append(place)
        gone.append(place)
        assert result() == {} or place != 1
    assert sorted(places) == [0, 1, 2]
    assert [shape for shape, _ in work.session.calls] == [(1, 2), (1, 3)]


def test_requests_of_one_length_are_one_batch_and_each_gets_its_own_rows(work):
    results = ask(work, "1 2", "3", "4 5", "6")
    assert [each["twice"] for each in results] == [[[2, 4]], [[6]], [[8, 10]], [[12]]]
    assert [each["large"] for each in results] == [[False], [False], [True], [True]]
    assert [shape for shape, _ in work.session.calls] == [(2, 2), (2, 1)]


def test_what_is_wrong_with_one_request_hurts_no_other(work):
    text, thirteen, fine = ask(work, "seven", "13", "4")
    assert isinstance(text, ValueError)
    assert str(thirteen) == "thirteen"
    assert fine["sum"] == [4]


def test_only_what_a_client_requests_is_computed(work):
    assert ask(work, "1 2", outputs=["sum"]) == [{"sum": [3]}]
    assert work.session.calls == [((1, 2), ["sum"])]
    assert ask(work, "1 2", outputs=["large"]) == [{"large": [False]}]


def test_a_model_without_batches_runs_each_request_alone(work):
    work.most = 0
    assert [each["sum"] for each in ask(work, "1 2", "3 4")] == [[3], [7]]
    assert [shape for shape, _ in work.session.calls] == [(1, 2), (1, 2)]


def test_a_batch_of_more_rows_than_the_model_takes_is_run_in_parts(work):
    work.most = 1
    texts = np.array([[b"1 2"], [b"3 4"]], dtype=object)
    [(_, result, others_wait)] = work.together([(lambda: {"TEXT": texts}, ["sum"], lambda: False)])
    assert result()["sum"].tolist() == [3, 7]
    assert not others_wait
    assert [shape for shape, _ in work.session.calls] == [(1, 2), (1, 2)]
