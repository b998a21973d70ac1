"""The choice in words: the chosen runtime with its figures, and why each other candidate was not chosen."""

from engine.kit.accuracy.report import Worst
from engine.kit.bench.stats import Lead
from engine.kit.choice.report import ChoiceReport, Compared

COSINE = Worst(worst=0.9939, mean=0.9986, sample="line 3", text="")


def choice(runtime, default="plain", **candidates):
    return ChoiceReport(
        runtime=runtime, default=default, cpu="a CPU", threads=2, shapes=({"batch": 1}, {"batch": 8}),
        order=tuple(candidates), candidates=candidates,
    )  # fmt: skip


def compared(low=None, ratio=None, high=None, rejected=()):
    measured = None if ratio is None else Lead(ratio, (low, high))
    return Compared(p50_ms=(1.0, 2.0), lead=measured, cosine=COSINE, rejected=rejected)


def test_the_headline_has_the_lead_with_its_interval_and_the_accuracy():
    report = choice("other", plain=compared(), other=compared(1.28, 1.31, 1.33))
    expected = "auto -> other, 1.31 x faster than plain [1.28, 1.33], cosine mean 0.9986, worst 0.9939"
    assert report.headline("auto") == expected
    assert list(report.lines()) == [
        "rejected plain: slower than other; cosine mean 0.9986, worst 0.9939",
        "measured interleaved at 2 shapes on a CPU, 2 threads",
    ]


def test_a_candidate_within_the_noise_is_called_so():
    report = choice("plain", plain=compared(), other=compared(0.98, 1.01, 1.05))
    assert report.headline("auto") == "auto -> plain, cosine mean 0.9986, worst 0.9939"
    assert next(report.lines()).startswith("rejected other: within the noise of plain: 1.01 x [0.98, 1.05]")


def test_a_slower_candidate_is_called_so():
    report = choice("plain", plain=compared(), other=compared(0.8, 0.82, 0.85))
    assert next(report.lines()).startswith("rejected other: slower than plain: 0.82 x")


def test_a_candidate_that_does_not_validate_says_which_bound_it_misses():
    report = choice("other", default="other", plain=compared(rejected=("cosine 0.9 is below 0.99", "a fact")),
                    other=compared())  # fmt: skip
    assert report.headline("auto") == "auto -> other, cosine mean 0.9986, worst 0.9939"
    assert next(report.lines()) == "rejected plain: does not validate: cosine 0.9 is below 0.99"


def test_no_choice_is_told():
    report = choice(None, default=None, plain=compared(rejected=("far off",)))
    assert report.headline("auto") == "auto: no candidate validates"
    assert ChoiceReport.from_json(report.to_json()) == report
