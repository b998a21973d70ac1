"""Packages for tests of publishing, and the reader that looks for half versions while a publisher works."""

import hashlib
import json

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from engine.publishing import package
from engine.runtimes.backends import Backend

SERVICE = "films_text"


def model(name, *, count=1, dims=4, platform="backend: 'python'"):
    """Return the text of a configuration with one input and one output."""
    return (
        f"name: '{name}' {platform} max_batch_size: 8 input {{ name: 'x' data_type: TYPE_FP32 dims: {dims} }}"
        f" output {{ name: 'y' data_type: TYPE_FP32 dims: {dims} }} instance_group {{ count: {count} kind: KIND_CPU }}"
    )


def ensemble():
    """Return the text of an ensemble that calls both models one after the other."""
    steps = "".join(
        f"step {{ model_name: '{name}' model_version: -1 input_map {{ key: 'x' value: '{source}' }}"
        f" output_map {{ key: 'y' value: '{target}' }} }}"
        for name, source, target in (("films_first", "x", "t1"), ("films_second", "t1", "y"))
    )
    return (
        f"name: '{SERVICE}' platform: 'ensemble' max_batch_size: 8 input {{ name: 'x' data_type: TYPE_FP32 dims: 4 }}"
        f" output {{ name: 'y' data_type: TYPE_FP32 dims: 4 }} ensemble_scheduling {{ {steps} }}"
        f" parameters {{ key: 'recipe_task' value {{ string_value: 'numbers' }} }}"
    )


CODE = """
import triton_python_backend_utils as triton

class TritonPythonModel:
    def execute(self, requests):
        given = [triton.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [triton.InferenceResponse([triton.Tensor("y", array + {add})]) for array in given]
"""


def write(folder, *, add, size=3000, **changes):
    """Write a package of two python models and an ensemble; each model adds `add` to each number."""
    for name in ("films_first", "films_second"):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(model(name, **changes))
        (folder / name / "1" / "model.py").write_text(CODE.format(add=add))
        (folder / name / "1" / "weights.bin").write_bytes(bytes([add % 256]) * size)
        (folder / name / "requirements.txt").write_text("# nothing\n")
    (folder / SERVICE / "1").mkdir(parents=True)
    (folder / SERVICE / "config.pbtxt").write_text(ensemble())
    (folder / SERVICE / "1" / "ensemble.txt").write_text(f"{add}\n")
    return package.read(folder, recipe="films", key=f"key-{add}")


def half_versions(read, names):
    """Return what a server could load that is not whole: `read` gives an object's bytes or None, `names` lists objects.

    A reader sees one object after the other, so the order is that of a server: first a configuration, then the files
    that it names; and a model of an ensemble must have the version that the ensemble names.
    """
    wrong = []
    for name in sorted(each.partition("/")[0] for each in names() if each.endswith("/config.pbtxt")):
        config = _config(read(f"{name}/config.pbtxt"))
        package_name = config.parameters["recipe_package"].string_value
        listed = list(config.version_policy.specific.versions)
        if not listed:
            wrong.append(f"{name} lists no version")
        for version in listed:
            decision = json.loads(read(f".recipe.{package_name}.{version}.json") or b"{}")
            wrong += _differing(read, decision, f"{name}/", f"{name} {version}")
        for step in config.ensemble_scheduling.step:
            behind = _config(read(f"{step.model_name}/config.pbtxt") or b"")
            again = _config(read(f"{name}/config.pbtxt"))
            is_newer = again.SerializeToString() != config.SerializeToString()
            if step.model_version not in behind.version_policy.specific.versions and not is_newer:
                wrong.append(f"{name} calls {step.model_name} {step.model_version}, which is not served")
    return wrong + _loadable(read, names())


def _loadable(read, names):
    """Return each version, listed or not, whose folder has the file that makes it loadable, and lacks another file."""
    return [
        f"{starter} is there without {file}"
        for starter in names
        if starter.endswith(f"/{Backend.PYTHON.file}")
        for file in ("weights.bin", "requirements.txt")
        if read(f"{starter.rpartition('/')[0]}/{file}") is None and read(starter) is not None
    ]


def _differing(read, decision, prefix, what):
    if decision.get("state") != "complete":
        return [f"{what} is served and not complete"]
    return [
        f"{what}: {file}"
        for file, facts in decision["files"].items()
        if file.startswith(prefix) and hashlib.sha256(read(file) or b"").hexdigest() != facts["sha256"]
    ]


def _config(data):
    return text_format.Parse(data.decode(), model_config_pb2.ModelConfig())
