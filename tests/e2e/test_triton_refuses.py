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
OVERRIDES = {
    "a-preferred-batch-beyond": "dynamic_batching { preferred_batch_size: 16 }",
    "a-preferred-batch-of-none": "dynamic_batching { preferred_batch_size: 0 }",
    "a-priority-that-is-not-there": "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    "an-order-among-priorities": (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }"),
    "a-version-that-is-not-there": "version_policy { specific { versions: 2 } }",
    "the-latest-none": "version_policy { latest { } }",
    "a-cache-of-pieces": "response_cache { enable: true } model_transaction_policy { decoupled: true }",
    "more-than-all-slots": "sequence_batching { direct { minimum_slot_utilization: 2 } }",
    "another-name": 'name: "other"',
    "a-field-that-is-later": "model_metrics { }",
}  # fmt: skip
"""What is refused by a recipe's check, as a server meets it in a config.pbtxt."""
IO = 'backend: "python" max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 4 } '


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
    for name, config in OVERRIDES.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(CODE)
        (repository / name / "config.pbtxt").write_text(IO + config)
    installation = Packaged("pip", pip_server.VERSION, "for tests", environment=environment)
    log = tmp_path / "log"
    with (
        pytest.raises(StepError),
        servers.start(repository, installation=installation, log=log, patience=60.0),
    ):
        pass
    text = log.read_text(errors="replace")
    errors = [line for line in text.splitlines() if line.startswith("E")]
    assert [case for name, case in names.items() if not any(mentions(line, name) for line in errors)] == []
    assert [name for name in OVERRIDES if f"'{name}'" not in text] == []
    assert sorted(re.findall(r"successfully loaded '([^']+)'", text)) == ["e", "m"]
