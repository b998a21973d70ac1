"""A packaged model as a stranger opens it: the file and the options that its config.pbtxt names, without `engine`."""

from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

LEVELS = {-1: "ORT_ENABLE_BASIC", 0: "ORT_ENABLE_ALL", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
"""`optimization.graph.level` of Triton's ONNX Runtime backend -> ONNX Runtime's GraphOptimizationLevel."""


def opened(folder: Path):
    """Return a function from inputs to outputs, by their names, that runs the ONNX model in a folder of a package."""
    config = _config(folder)
    names = [each.name for each in config.output]
    session = _session(folder / "1" / "model.onnx", config)

    def run(inputs):
        return dict(
            zip(names, session.run(names, {each.name: inputs[each.name] for each in config.input}), strict=True)
        )

    return run


def _config(folder: Path):
    return text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def call(folder: Path, inputs):
    """Return a function that runs the model in a folder of a package on inputs."""
    config = _config(folder)
    fed = {each.name: inputs[each.name] for each in config.input}
    if config.platform == "onnxruntime_onnx":
        session, outputs = _session(folder / "1" / "model.onnx", config), [each.name for each in config.output]
        return lambda: session.run(outputs, fed)
    assert config.backend == "openvino", config
    return _openvino(folder / "1" / "model.xml", _parameters(config), fed)


def _parameters(config):
    parameters = {name: value.string_value for name, value in config.parameters.items()}
    return {name: value for name, value in parameters.items() if not name.startswith("recipe_")}  # for clients


def _session(model, config):
    import onnxruntime

    parameters = _parameters(config)
    assert set(parameters) <= {"intra_op_thread_count"}, "this script knows no other option"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(parameters.get("intra_op_thread_count", "0"))
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, LEVELS[config.optimization.graph.level]
    )
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def _openvino(model, parameters, fed):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", parameters)
    request = compiled.create_infer_request()
    for name, array in fed.items():
        request.set_tensor(name, openvino.Tensor(array))
    return lambda: request.infer(share_outputs=True)
