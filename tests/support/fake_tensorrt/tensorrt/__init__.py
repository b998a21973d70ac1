"""A fake of the module `tensorrt`, version 10: its engines are ONNX files, and ONNX Runtime runs them on the CPU.

It stands in where no GPU is: what it proves is that the calls are there, in order, with arguments of the right kind.
A strongly typed network is refused where TensorRT refuses it, each rule with its source (`_typed`). It has no name
that TensorRT 10's type stubs lack, and like its classes it refuses every other attribute.
"""
# ruff: noqa: F401, N811 - a package that is only its parts' names

from tensorrt._building import (
    Builder,
    IBuilderConfig,
    IHostMemory,
    IOptimizationProfile,
    IPluginRegistry,
    IProgressMonitor,
    ITimingCache,
    init_libnvinfer_plugins,
)
from tensorrt._enums import (
    BuilderFlag,
    DataType,
    HardwareCompatibilityLevel,
    LayerInformationFormat,
    LayerType,
    MemoryPoolType,
    NetworkDefinitionCreationFlag,
    ProfilingVerbosity,
    TensorIOMode,
    TensorLocation,
    TilingOptimizationLevel,
)
from tensorrt._logging import ILogger, Logger
from tensorrt._machine import VERSION as __version__
from tensorrt._machine import pretend as _pretend
from tensorrt._network import Dims, ILayer, INetworkDefinition, ITensor, OnnxParser, ParserError
from tensorrt._running import EngineInspector, ICudaEngine, IExecutionContext, IOutputAllocator, Runtime, nptype

_pretend()
