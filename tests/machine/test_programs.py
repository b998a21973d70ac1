"""Programs that end, fail, take too long, or are not there."""

from __future__ import annotations

import sys

from engine.machine import programs


def test_the_last_line_of_a_program_that_ends_is_of_its_output():
    done = programs.run([sys.executable, "-c", "print(input()); print('b')"], seconds=60, text="a\n")
    assert (done.stdout, programs.last_line(done)) == ("a\nb\n", "b")


def test_the_last_line_of_a_program_that_fails_is_its_error():
    done = programs.run([sys.executable, "-c", "print('a'); raise SystemExit('b')"], seconds=60)
    assert (done.returncode, programs.last_line(done)) == (1, "b")


def test_a_silent_program_is_known_by_its_exit_code():
    assert programs.last_line(programs.run([sys.executable, "-c", "exit(3)"], seconds=60)) == "exit 3"


def test_a_program_that_takes_too_long_or_is_not_there_says_so():
    slow = programs.run([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2)
    assert slow.returncode
    assert programs.last_line(slow).startswith("no answer within")
    assert "nowhere" in programs.last_line(programs.run(["/nowhere/program"], seconds=1))
