"""The machine: its CPU counts where kernels run or time is measured, its GPU where a recipe is for one."""

from mutations.actions import recipe
from mutations.actions_around import architecture, cpuinfo, cpus, gpu, tool, without_flag
from mutations.mutation import ARCHITECTURE, CHOOSE, MOUNT, changes, nothing

B, N, G, A = "bert", "net", "gpu", "ampere"
_T4 = ("Tesla T4", "7.5")

TABLE = (
    changes("another model of CPU", B, cpuinfo("model name", "model name\t: another CPU\nunused"),
            causes={"bench": "facts.cpu.model"}, needs=MOUNT),
    changes("a CPU without VNNI", B, without_flag("avx512_vnni"),
            causes={"reference": "facts.cpu.isa", "quantize": "facts.cpu.isa"}, spreads="validate bench", needs=MOUNT),
    changes("a CPU without AVX-512", N, without_flag("avx512f"), causes={"reference": "facts.cpu.isa"},
            spreads="validate bench", needs=MOUNT),
    nothing("a CPU of another clock rate and microcode, without a feature that chooses no kernel", B,
            cpuinfo("cpu MHz", "cpu MHz\t\t: 1.0\nformer"), cpuinfo("microcode", "microcode\t: 0x1\nformer"),
            without_flag("rdrand"), needs=MOUNT),
    changes("one CPU instead of several", B, cpus("0"), causes={"bench": "facts.cpu.count"}, needs=CHOOSE),
    changes("the other CPU alone", N, cpus("1"), causes={"bench": "facts.cpu.count"}, needs=CHOOSE),
    changes("another architecture of the kernel", N, architecture("i686"), causes={"bench": "facts.arch"},
            needs=ARCHITECTURE),
    nothing("a GPU and a TensorRT appear beside a recipe for the CPU", B, gpu(*_T4, "535.1"), tool("tensorrt", "10.9")),
    nothing("another driver where the CPU is meant", N, gpu(*_T4, "535.1"), gpu(*_T4, "550.9")),
    nothing("a GPU of another kind appears where one is waited for", G, gpu("NVIDIA A10", "8.6", "535.1"), exit=3),
    nothing("the GPU that is waited for appears, without TensorRT", G, gpu(*_T4, "535.1"), exit=3),
    nothing("a TensorRT appears where its GPU is waited for", G, tool("tensorrt", "10.9"), exit=3),
    nothing("one CPU instead of several where nothing is measured", G, cpus("0"), exit=3, needs=CHOOSE),
    changes("TF32, which the graph is tried in on the CPU", A, recipe("name: net\n", "name: net\ntf32: true\n"),
            causes={"validate-onnx": "options.tf32"}, exit=3),
    nothing("no TF32, as the graph was tried already", A, recipe("name: net\n", "name: net\ntf32: false\n"), exit=3),
)  # fmt: skip
