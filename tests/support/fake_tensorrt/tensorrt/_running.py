"""Loading and running a fake engine: ONNX Runtime, on the CPU, on memory that is given by its address."""

# ruff: noqa: A002 - the names are those of TensorRT

import ctypes
import json

import numpy as np
import onnx

from tensorrt import _building, _machine, _network
from tensorrt._enums import LayerInformationFormat, TensorIOMode, TensorLocation
from tensorrt._logging import complain, register

_WORDS = {"FLOAT": "Float", "HALF": "Half", "INT8": "Int8", "INT32": "Int32", "INT64": "Int64", "BOOL": "Bool"}


class Runtime:
    __slots__ = ("_logger", "_plugins", "engine_host_code_allowed")

    def __init__(self, logger):
        register(logger)
        self.engine_host_code_allowed, self._logger, self._plugins = False, logger, []

    def get_plugin_registry(self):
        return _building.IPluginRegistry(self._plugins)

    def deserialize_cuda_engine(self, serialized_engine):
        content = bytes(serialized_engine)
        if not content.startswith(_building.MAGIC):
            complain("IRuntime::deserializeCudaEngine: Error Code 1: Serialization (magic tag does not match)")
            return None
        place = len(_building.MAGIC) + 16
        length = int.from_bytes(content[place : place + 8], "little")
        head = json.loads(content[place + 8 : place + 8 + length])
        problem = self._problem(head)
        if problem:
            complain(f"IRuntime::deserializeCudaEngine: Error Code 6: {problem}")
            return None
        return ICudaEngine(head, content[place + 8 + length :])

    def _problem(self, head):
        if head["version"] != _machine.VERSION:
            return f"The engine plan file is not compatible with this version of TensorRT, expecting {_machine.VERSION}"
        if head["compatibility"] == "NONE" and head["sm"] != _machine.gpu()["sm"]:
            return "The engine plan file is generated on an incompatible device, please rebuild."
        if head["host_code"] and not self.engine_host_code_allowed:
            return "the engine holds host code, and engine_host_code_allowed is not set"
        missing = set(head["needs"]) - {*head["plugins"], *self._plugins}
        if missing:
            return f"Cannot deserialize plugin since corresponding IPluginCreator not found: {sorted(missing)}"
        return ""


def nptype(trt_type):
    kinds = {"HALF": np.float16, "INT8": np.int8, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_}
    return kinds.get(trt_type.name, np.float32)


class IOutputAllocator:
    def __init__(self):
        pass


class ICudaEngine:
    __slots__ = ("_head", "_inputs", "_onnx", "_outputs")

    def __init__(self, head, content):
        self._head, self._onnx = head, content
        graph = onnx.load_from_string(content).graph
        filled = {tensor.name for tensor in graph.initializer}
        self._inputs = {value.name: _tensor(value) for value in graph.input if value.name not in filled}
        self._outputs = {value.name: _tensor(value) for value in graph.output}

    num_io_tensors = property(lambda self: len(self._inputs) + len(self._outputs))
    num_optimization_profiles = property(lambda self: max(1, len(self._head["profiles"])))

    def get_tensor_name(self, index):
        return [*self._inputs, *self._outputs][index]

    def get_tensor_mode(self, name):
        return TensorIOMode.INPUT if name in self._inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name):
        return {**self._inputs, **self._outputs}[name][0]

    def get_tensor_location(self, name):
        return TensorLocation.HOST if self.is_shape_inference_io(name) else TensorLocation.DEVICE

    def is_shape_inference_io(self, name):
        return any(name in values for values in self._head["values"])

    def get_tensor_profile_values(self, profile_index, name):
        return self._head["values"][profile_index].get(name, [])

    def get_tensor_shape(self, name):
        return _network.Dims(list({**self._inputs, **self._outputs}[name][1]))

    def get_tensor_profile_shape(self, name, profile_index):
        fixed = [self.get_tensor_shape(name)] * 3
        return [_network.Dims([*shape]) for shape in self._head["profiles"][profile_index].get(name, fixed)]

    def create_execution_context(self):
        return IExecutionContext(self)

    def create_engine_inspector(self):
        return EngineInspector(self)


class EngineInspector:
    __slots__ = ("_engine",)

    def __init__(self, engine):
        self._engine = engine

    def get_engine_information(self, format):
        assert format == LayerInformationFormat.JSON
        head = self._engine._head
        layers = {
            "NONE": [],
            "LAYER_NAMES_ONLY": [name for name, _ in head["layers"]],
            "DETAILED": [
                {"Name": name, "Outputs": [{"Name": name, "Format/Datatype": _WORDS.get(dtype, dtype)}]}
                for name, dtype in head["layers"]
            ],
        }[head["verbosity"]]
        return json.dumps({"Layers": layers, "Bindings": [*self._engine._inputs, *self._engine._outputs]})


class IExecutionContext:
    __slots__ = ("_addresses", "_engine", "_outputs", "_profile", "_session", "_shapes")

    def __init__(self, engine):
        import onnxruntime

        self._engine, self._shapes, self._addresses, self._profile, self._outputs = engine, {}, {}, 0, None
        self._session = onnxruntime.InferenceSession(engine._onnx, providers=["CPUExecutionProvider"])

    def set_optimization_profile_async(self, profile_index, stream_handle):
        if not 0 <= profile_index < self._engine.num_optimization_profiles:
            return False
        self._profile, self._shapes, self._outputs = profile_index, {}, None
        return True

    def set_input_shape(self, name, shape):
        shape, profiles = tuple(shape), self._engine._head["profiles"]
        if profiles and name in profiles[self._profile]:
            least, _, most = profiles[self._profile][name]
            if len(shape) != len(least) or any(not a <= n <= b for a, n, b in zip(least, shape, most, strict=True)):
                complain(f"IExecutionContext::setInputShape: {name} {shape} is not in profile {self._profile}")
                return False
        self._shapes[name], self._outputs = shape, None
        return True

    def infer_shapes(self):
        return self._open()

    def get_tensor_shape(self, name):
        if name in self._engine._inputs:
            return _network.Dims(list(self._shapes.get(name, self._engine.get_tensor_shape(name))))
        if self._open():
            return self._engine.get_tensor_shape(name)
        return _network.Dims(list(self._results(self._zeros())[name].shape))

    def set_output_allocator(self, name, output_allocator):
        return True  # no output of an ONNX file that the fake runs has a size that only running tells

    def set_tensor_address(self, name, memory):
        self._addresses[name] = memory
        if self._engine.is_shape_inference_io(name):
            self._outputs = None
        return True

    def execute_async_v3(self, stream_handle):
        if self._open() or set(self._addresses) < {*self._engine._inputs, *self._engine._outputs}:
            complain("IExecutionContext::enqueueV3: not all shapes and addresses are set")
            return False
        addresses, zeros = dict(self._addresses), self._zeros()
        _machine.put(lambda: self._compute(addresses, zeros))
        return True

    def _compute(self, addresses, zeros):
        feed = {name: _at(addresses[name], like) for name, like in zeros.items()}
        for name, value in self._results(feed, keep=False).items():
            ctypes.memmove(addresses[name], np.ascontiguousarray(value).ctypes.data, value.nbytes)

    def _open(self):
        """Return the inputs without a shape, and the shape tensors without an address (NVIDIA, `inferShapes`)."""
        return [
            name
            for name, (_, shape) in self._engine._inputs.items()
            if (name not in self._shapes and -1 in shape)
            or (self._engine.is_shape_inference_io(name) and name not in self._addresses)
        ]

    def _zeros(self):
        kinds = {value.name: _NUMPY[value.type] for value in self._session.get_inputs()}
        zeros = {
            name: np.zeros(self._shapes.get(name, shape), kinds[name])
            for name, (_, shape) in self._engine._inputs.items()
        }
        sizes = [name for name in zeros if self._engine.is_shape_inference_io(name)]
        return {**zeros, **{name: _at(self._addresses[name], zeros[name]) for name in sizes}}

    def _results(self, feed, *, keep=True):
        if keep and self._outputs is not None:
            return self._outputs
        names = list(self._engine._outputs)
        outputs = dict(zip(names, self._session.run(names, feed), strict=True))
        if keep:
            self._outputs = outputs
        return outputs


_NUMPY = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
}  # fmt: skip


def _tensor(value):
    tensor = value.type.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
    return _network.dtype_of(tensor.elem_type), shape


def _at(address, like):
    """Return what lies at an address of this machine's own memory."""
    content = ctypes.string_at(address, like.nbytes)
    return np.frombuffer(content, like.dtype).reshape(like.shape)
