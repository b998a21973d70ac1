"""A lock as a value: the keys of this machine and of all others."""

from engine.lockfile.content import Lock, LockedJob, LockedVariant, Made, sections


def test_a_lock_tells_the_keys_of_this_machine_and_of_all_others():
    here = LockedVariant({}, {"export": LockedJob(made=Made("a" * 32))})
    other = ({"cpu.isa": "avx2"}, ("r", "validate"), Made("b" * 32))
    assert Lock({}, {}, {}, {"r": here}, sections([other])).made_keys() == {"a" * 32, "b" * 32}
