"""A report says what few samples cannot show."""

import random

from engine.kit.accuracy import few_samples
from engine.kit.accuracy.report import Work

INT8 = Work({"int8": 0.9, "fp32": 0.1}, {})


def test_a_few_samples_of_a_rounded_model_have_a_note_with_the_share_that_they_cannot_rule_out():
    [note] = few_samples.note({"tensors": 32, "random": 4}, INT8)
    assert note.startswith("32 samples")
    assert "up to 9%" in note
    assert few_samples.note({"sample": 59}, INT8) == ()  # they rule out 5 %
    assert few_samples.note({"random": 4}, INT8) == ()  # a report of random inputs says so already
    assert few_samples.note({"sample": 3}, Work({"fp32": 1.0}, {})) == ()
    assert few_samples.note({"sample": 3}, None) == ()


def test_the_share_is_one_that_samples_hide_in_one_of_twenty_draws():
    generator = random.Random(0)
    hidden = sum(all(generator.random() >= 0.0894 for _ in range(32)) for _ in range(4000)) / 4000
    assert 0.035 < hidden < 0.065
