"""A packaged model as a stranger opens it: the file and the options that its config.pbtxt names, without `engine`."""

from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

LEVELS = {-1: "ORT_ENABLE_BASIC", 0: "ORT_ENABLE_ALL", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
"""`optimization.graph.level` of Triton's ONNX Runtime backend -> ONNX Runtime's GraphOptimizationLevel."""


def call(folder: Path, inputs):
    """Return a function that runs the model in a folder of a package on inputs."""
    config = text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    parameters = {name: value.string_value for name, value in config.parameters.items()}
    parameters = {name: value for name, value in parameters.items() if not name.startswith("recipe_")}  # for clients
    fed = {each.name: inputs[each.name] for each in config.input}
    if config.platform == "onnxruntime_onnx":
        return _onnxruntime(folder / "1" / "model.onnx", config, parameters, fed)
    assert config.backend == "openvino", config
    return _openvino(folder / "1" / "model.xml", parameters, fed)


def _onnxruntime(model, config, parameters, fed):
    import onnxruntime

    assert set(parameters) <= {"intra_op_thread_count"}, "this script knows no other option"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(parameters.get("intra_op_thread_count", "0"))
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, LEVELS[config.optimization.graph.level]
    )
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    outputs = [each.name for each in config.output]
    return lambda: session.run(outputs, fed)


def _openvino(model, parameters, fed):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", parameters)
    request = compiled.create_infer_request()
    for name, array in fed.items():
        request.set_tensor(name, openvino.Tensor(array))
    return lambda: request.infer(share_outputs=True)
