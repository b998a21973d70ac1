"""Of all builders in a cluster, one has the right to a key."""

from engine.cluster import claims
from engine.cluster.claims import SILENCE, ClaimTable


def test_one_builder_has_a_key_until_it_gives_it_back():
    table = ClaimTable()
    assert table.claim("k", "a") == ""
    assert table.claim("k", "a") == ""
    assert table.claim("k", "b") == "a"
    table.hear("b", ["k"])
    assert table.claim("k", "b") == "a"
    table.hear("a", ["k"])
    assert table.claim("k", "b") == ""
    assert table.claim("l", "b", ["k"]) == ""
    assert (table.claim("k", "a"), table.claim("l", "a")) == ("", "b")


def test_the_keys_of_a_builder_that_leaves_are_free():
    table = ClaimTable()
    table.claim("k", "a")
    table.claim("l", "b")
    table.leave("a")
    assert (table.claim("k", "c"), table.claim("l", "c")) == ("", "b")


def test_the_keys_of_a_builder_that_is_silent_are_free(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(claims.time, "monotonic", lambda: clock[0])
    table = ClaimTable()
    table.claim("k", "a")
    clock[0] = SILENCE - 1
    table.hear("a")
    clock[0] = 2 * SILENCE - 2
    assert table.claim("k", "b") == "a"
    clock[0] = 3 * SILENCE
    assert table.claim("k", "b") == ""
