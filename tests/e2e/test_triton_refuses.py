"""A real Triton server refuses the configurations that the rules of `kit/triton/loading.py` refuse."""

import re

import pytest
from refused_configs import ENSEMBLE, MODEL, REFUSED

from engine import server as servers
from engine.errors import StepError
from engine.server import pip_server
from engine.server.pip_server import Packaged

pytestmark = pytest.mark.slow

CODE = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""


def put(repository, name, text):
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "1" / "model.py").write_text(CODE)
    kept = text.partition('name: "')
    (repository / name / "config.pbtxt").write_text(f'name: "{name}"{kept[2].partition(chr(34))[2]}')


def mentions(line, name):
    return re.search(rf"\b{name}\b", line) is not None


def test_a_real_server_loads_what_the_rules_accept_and_nothing_that_they_refuse(environment, tmp_path):
    repository = tmp_path / "models"
    put(repository, "m", MODEL)
    put(repository, "e", ENSEMBLE)
    names = {f"refused_{number}": case for number, case in enumerate(REFUSED)}
    for name, case in names.items():
        put(repository, name, REFUSED[case])
    installation = Packaged("pip", pip_server.VERSION, "for tests", environment=environment)
    log = tmp_path / "log"
    with (
        pytest.raises(StepError),
        servers.start(repository, installation=installation, log=log, patience=60.0),
    ):
        pass
    errors = [line for line in log.read_text().splitlines() if line.startswith("E")]
    assert [case for name, case in names.items() if not any(mentions(line, name) for line in errors)] == []
    assert "successfully loaded 'm'" in log.read_text()
    assert "successfully loaded 'e'" in log.read_text()
