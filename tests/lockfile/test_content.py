"""The keys in a lock, for this machine and all others."""

from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, sections


def test_a_lock_tells_the_keys_of_this_machine_and_of_all_others():
    here = LockedVariant({}, {"export": LockedJob(output=LockedOutput("a" * 32))})
    other = ({"cpu.isa": "avx2"}, ("r", "validate"), LockedOutput("b" * 32))
    assert Lock({}, {}, {}, {"r": here}, sections([other])).output_keys() == {"a" * 32, "b" * 32}
