"""The log of a running job: a node sends it in whole lines, because half a secret looks like any other text."""

import pytest

from engine.cluster.node import whole_lines
from engine.text.redaction import redacted_bytes

LOG = b"loads\ntoken abcdefgh1234 is taken\r10 %\r90 %\ndone"
SECRETS = {"HF_TOKEN": "abcdefgh1234"}


@pytest.mark.parametrize(
    ("piece", "sent"),
    [(b"one\ntw", b"one\n"), (b"10 %\r20", b"10 %\r"), (b"one\r\n", b"one\r\n"), (b"half", b""), (b"", b"")],
)
def test_a_piece_ends_with_a_line(piece, sent):
    assert whole_lines(piece) == sent


@pytest.mark.parametrize("border", range(1, len(LOG)))
def test_no_border_between_pieces_lets_a_secret_through(border):
    first = whole_lines(LOG[:border])
    pieces = redacted_bytes(first, SECRETS) + redacted_bytes(whole_lines(LOG[len(first) :]), SECRETS)
    assert pieces == redacted_bytes(whole_lines(LOG), SECRETS)
