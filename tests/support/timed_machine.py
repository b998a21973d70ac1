"""A machine whose clock only the calls of contenders move on."""

from contextlib import nullcontext

from engine.kit.bench.interleaving import Contender


def contender(call, active=nullcontext):
    return Contender(runtime="m", via="in-process", ours=True, prepare=lambda _: call, active=active)


class Machine:
    """A clock that only calls move on, and the names of the contenders in the order of their calls."""

    def __init__(self):
        self.now = 0.0
        self.diary = []

    def clock(self):
        return self.now

    def contender(self, name, seconds, *, slow_at_first=0):
        left = [slow_at_first]

        def call():
            self.diary.append(name)
            self.now += seconds * (3 if left[0] > 0 else 1)
            left[0] -= 1

        return contender(call)
