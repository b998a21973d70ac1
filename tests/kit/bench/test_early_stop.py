"""The early stop of a race: how often it cuts a contestant that it should not, and how soon one that it should."""

import math
import random

import pytest

from engine.kit.bench import early_stop, interleaving, stats

CUT = 1.25
RACES, ROUNDS, CALLS = 800, 10, 9


def round_after(ratio, *, noise, seed):
    """Yield for each round how many times slower a contestant is whose calls take `ratio` times as long.

    The speed of the machine drifts by 2 % from turn to turn, and halves for some turns. `noise` is the standard
    deviation of a whole turn, which other programs cause; calls vary by 5 %, and one of twenty takes half longer.
    """
    draw = random.Random(seed)
    speed, slow_turns = 1.0, 0
    for number in range(ROUNDS):
        took = {}
        for index in interleaving.turn_order(number, 2):
            speed *= math.exp(draw.gauss(0, 0.02))
            slow_turns = max(0, slow_turns - 1) or (3 if draw.random() < 0.02 else 0)
            turn = speed * (2 if slow_turns else 1) * math.exp(draw.gauss(0, noise)) * (ratio if index else 1)
            took[index] = [
                turn * math.exp(draw.gauss(0, 0.05)) * (1.5 if draw.random() < 0.05 else 1) for _ in range(CALLS)
            ]
        yield stats.median(took[1]) / stats.median(took[0])


def cut_after(ratio, *, noise, seed):
    """Return after how many rounds a contestant is cut; None for one that has all rounds."""
    slower = []
    for each in round_after(ratio, noise=noise, seed=seed):
        slower.append(each)
        if early_stop.is_cut(slower, CUT):
            return len(slower)
    return None


@pytest.mark.parametrize("noise", [0.02, 0.07, 0.2])
def test_fewer_than_one_of_a_hundred_is_cut_that_is_3_percent_inside(noise):
    false = sum(cut_after(0.97 * CUT, noise=noise, seed=seed) is not None for seed in range(RACES))
    assert false / RACES < 0.01


def test_most_that_are_clearly_outside_are_cut_and_most_of_those_early():
    cuts = [cut_after(1.5 * CUT, noise=0.07, seed=seed) for seed in range(300)]
    assert sum(each is not None for each in cuts) > 0.9 * len(cuts)
    assert sum(each == 4 for each in cuts) > 0.5 * len(cuts)


def test_the_first_rounds_alone_and_one_round_inside_cut_nobody():
    assert not any(early_stop.is_cut([9.0] * rounds, CUT) for rounds in range(4))
    assert early_stop.is_cut([9.0] * 4, CUT)
    assert not early_stop.is_cut([9.0, 9.0, 1.5, 9.0], CUT)
    assert early_stop.is_cut([1.3] * 7, CUT)
    assert not early_stop.is_cut([*[9.0] * 6, 1.2], CUT)
