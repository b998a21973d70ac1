"""Modules that load when they are used: whoever imports one meets the real module."""

import platform
import subprocess
import sys

import pytest

ASK = "import sys; from engine.system import late_modules; late_modules.put_off(); "
LOADED = "print('importlib.metadata._functools' in sys.modules)"


def printed(code):
    done = subprocess.run([sys.executable, "-c", ASK + code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_an_import_of_its_function_loads_nothing_and_a_call_loads_it():
    code = f"from importlib.metadata import entry_points; {LOADED}; entry_points(group='no such'); {LOADED}"
    assert printed(code) == ["False", "True"]


@pytest.mark.parametrize(
    "code",
    [
        "import importlib.metadata; print(importlib.metadata.version('pytest'))",
        "import importlib.metadata as named; print(named.version('pytest'))",
        "from importlib.metadata import version; print(version('pytest'))",
        "from importlib import metadata; print(metadata.version('pytest'))",
        "from importlib.metadata import entry_points, version; entry_points(); print(version('pytest'))",
    ],
)
def test_each_way_to_import_it_ends_at_the_real_module(code):
    assert printed(code) == [pytest.__version__]


def test_its_errors_are_those_that_others_catch():
    code = (
        "import importlib.metadata as first\n"
        "try: first.version('no such package')\n"
        "except first.PackageNotFoundError as error: print(type(error).__module__)\n"
    )
    assert printed(code) == ["importlib.metadata"]


def test_the_functions_that_are_there_at_once_answer_as_those_of_the_module():
    code = (
        "from gettext import gettext, ngettext; from urllib.parse import quote_from_bytes; "
        "print(gettext('word'), ngettext('one', 'many', 1), ngettext('one', 'many', 2), quote_from_bytes(b'a/%'))"
    )
    assert printed(code) == ["word", "one", "many", "a/%25"]


def test_a_module_that_is_loaded_stays():
    code = (
        "import importlib.metadata as real; real.version; real = sys.modules['importlib.metadata']; "
        "late_modules.put_off(); print(sys.modules['importlib.metadata'] is real)"
    )
    assert printed(code) == ["True"]


def test_pydantic_does_not_load_it():
    without = "import os; os.environ['PYDANTIC_DISABLE_PLUGINS'] = '__all__'"
    assert printed(f"{without}; from pydantic import BaseModel; {LOADED}") == ["False"]


def test_the_system_is_named_without_the_module_that_names_it():
    named = "import platform; print(platform.system())"
    assert printed(f"{named}; print('__file__' in vars(platform))") == [platform.system(), "False"]


@pytest.mark.parametrize(
    "code",
    [
        "import platform; platform.machine()",
        "from platform import machine",
        "import secrets; secrets.token_hex()",
        "from json import dumps",
        "import json; json.dumps(1)",
        "import gettext; gettext.find('no such')",
        "import urllib.parse; urllib.parse.urlsplit('')",
        "from urllib.parse import urlsplit",
        "import linecache; linecache.getline('no such', 1)",
        "import tokenize; tokenize.NAME",
        "import traceback; traceback.format_exc()",
    ],
)
def test_what_else_is_asked_of_a_module_loads_it(code):
    assert printed(f"{code}; name = {code.split()[1].strip(';')!r}; print('__file__' in vars(sys.modules[name]))") == [
        "True"
    ]
