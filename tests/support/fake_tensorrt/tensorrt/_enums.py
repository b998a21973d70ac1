"""The enumerations of TensorRT 10, as far as a build and a run need them."""

from enum import IntEnum

NetworkDefinitionCreationFlag = IntEnum("NetworkDefinitionCreationFlag", {"STRONGLY_TYPED": 1})
MemoryPoolType = IntEnum(
    "MemoryPoolType",
    "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
    start=0,
)
HardwareCompatibilityLevel = IntEnum("HardwareCompatibilityLevel", "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY", start=0)
TilingOptimizationLevel = IntEnum("TilingOptimizationLevel", "NONE FAST MODERATE FULL", start=0)
ProfilingVerbosity = IntEnum("ProfilingVerbosity", "LAYER_NAMES_ONLY NONE DETAILED", start=0)
LayerInformationFormat = IntEnum("LayerInformationFormat", "ONELINE JSON", start=0)
TensorLocation = IntEnum("TensorLocation", "DEVICE HOST", start=0)
TensorIOMode = IntEnum("TensorIOMode", "NONE INPUT OUTPUT", start=0)
DataType = IntEnum("DataType", "FLOAT HALF INT8 INT32 BOOL UINT8 FP8 BF16 INT64 INT4 FP4", start=0)
LayerType = IntEnum(
    "LayerType",
    "CONVOLUTION CAST ACTIVATION POOLING CONSTANT MATRIX_MULTIPLY ELEMENTWISE SHAPE QUANTIZE DEQUANTIZE NORMALIZATION",
    start=0,
)
BuilderFlag = IntEnum(
    "BuilderFlag",
    {
        "REFIT": 4, "TF32": 6, "SPARSE_WEIGHTS": 7, "VERSION_COMPATIBLE": 13, "EXCLUDE_LEAN_RUNTIME": 14,
        "STRIP_PLAN": 19, "REFIT_IDENTICAL": 20, "WEIGHT_STREAMING": 21, "FP16": 0, "INT8": 1, "BF16": 17,
    },
)  # fmt: skip
