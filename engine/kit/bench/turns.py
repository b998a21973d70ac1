"""Turns: the order in which contenders are measured in each round, so that no one always follows the same other one."""

from __future__ import annotations

import time

_REST = 0.06
"""Seconds without calls before a turn.

After each call, the threads of ONNX Runtime 1.31 wait in a loop for work: for 0.036 s of CPU time on an AMD EPYC. A
call of another contender that begins meanwhile lacks a core.
"""


def order(number: int, count: int) -> list[int]:
    """Return the indices of `count` contenders in the order of their turns in round `number`, which counts from 0.

    What ran before a call changes its time, for example because its weights still fill the caches. So a contender must
    not always follow the same one. Over `count` rounds, or twice as many where `count` is odd, all contenders go first
    equally often, and each comes right after each of the others equally often.

    Source: E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments (1949).
    """
    zigzag = [(place + 1) // 2 if place % 2 else (count - place // 2) % count for place in range(count)]
    odd = count % 2
    shift = number // 2 if odd else number
    turns = [(index + shift) % count for index in zigzag]
    return turns[::-1] if odd and number % 2 else turns


def rest(before: int | None, place: int) -> None:
    """Wait before the turn of the contender `place`, so that no thread of `before` still waits in a loop for work.

    `before` is the contender of the turn before; None stands for no turn.
    """
    if before not in (None, place):
        time.sleep(_REST)
