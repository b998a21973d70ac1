"""The standard streams: closed ones lead nowhere, a full one is an error of its own or, for messages, nothing."""

import os
import subprocess
import sys

import pytest

from engine.system import streams

_PROTECT = "import sys; from engine.system import streams; streams.protect()\n"


def run(code, *, close=(), full=(), environment=None):
    """Run a script whose standard streams are closed, or lead to a full disk."""

    def prepare():
        for number in full:
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        for number in close:
            os.close(number)

    done = subprocess.run(
        [sys.executable, "-c", _PROTECT + code], capture_output=True, check=False, preexec_fn=prepare,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("close", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_closed_streams_lead_nowhere_and_no_file_takes_their_number(close):
    code = (
        "import os\nprint('out'); print('message', file=sys.stderr)\nassert sys.stdin.read() == ''\n"
        "handle = os.open('.', os.O_RDONLY)\nassert handle > 2, handle\nassert os.get_inheritable(1)\n"
    )
    assert run(code, close=close)[0] == 0


def test_a_full_disk_under_the_output_is_an_error_of_its_own():
    code = (
        "try:\n    print('x' * 100_000); sys.stdout.flush()\n"
        "except streams.OutputError as error:\n"
        "    streams.give_up_output(); print('later')\n    sys.exit(error.errno)\n"
    )
    code_of_exit, _, messages = run(code, full=(1,))
    assert (code_of_exit, messages) == (28, b"")


def test_messages_that_cannot_be_written_are_lost_and_change_nothing():
    code = "print('message', file=sys.stderr, flush=True); print('out')\n"
    assert run(code, full=(2,)) == (0, b"out\n", b"")


def test_what_a_stream_cannot_show_is_escaped_so_that_json_stays_json():
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    code = "import json\nprint(json.dumps('\\u00e9\\u20ac\\U0001f600\\udcff', ensure_ascii=False))\n"
    code_of_exit, output, _ = run(code, environment=plain)
    assert (code_of_exit, output) == (0, b'"\\u00e9\\u20ac\\ud83d\\ude00\\udcff"\n')


def test_a_long_line_is_folded_between_words_and_no_word_is_cut():
    assert streams.folded("  one two three\nfour", 9) == "  one two\n    three\nfour"
    assert streams.folded("a-word-without-end and", 9) == "a-word-without-end\n  and"
    assert streams.folded("short", 9) == "short"
    assert streams.folded("one two and", 7) == "one two\n  and"
    assert streams.folded("one two and", 6) == "one\n  two\n  and"
