"""Installed versions: each counts for the steps that use the package, and for no other."""

import shutil
from importlib import metadata
from pathlib import Path

from mutations.actions_around import built, in_tool, patched, tool, tool_copy
from mutations.mutation import Action, changes, nothing, split

from engine.text import distribution

B = "bert"
_NEWER = {
    "tokenizers": "0.23.9",
    "numpy": "2.99",
    "huggingface-hub": "2.99",
    "safetensors": "0.9.9",
    "packaging": "99.0",
    "tqdm": "9.9",
    "regex": "2099.1.1",
    "filelock": "9.9",
    "pyyaml": "9.9",
}
_USED_BY = {
    "torch": "export reference",
    "transformers": "export reference",
    "onnx": "export shape-infer fuse quantize validate bench package",
    "onnxruntime": "export shape-infer fuse quantize validate bench package",
    "onnxscript": "export",
    "onnx-ir": "export shape-infer fuse quantize",
    "numpy": "export shape-infer fuse reference quantize validate bench package",
    "ml_dtypes": "export shape-infer fuse quantize validate bench package",
    "protobuf": "export shape-infer fuse quantize validate bench package",
    "safetensors": "export reference",
    "sentencepiece": "export reference",
    "sympy": "export shape-infer fuse quantize",
    "tokenizers": "export reference package",
    "tritonclient": "package",
}
"""What each step computes with, by its own account of what it does."""
_UNUSED = (
    distribution.NAME, "pydantic", "networkx", "rich", "xxhash", "pyyaml", "pytest", "huggingface-hub",
    "grpcio", "mpmath", "some-package", "filelock", "tensorrt", "regex", "tqdm",
)  # fmt: skip


def _upgraded(name: str):
    causes, spreads = split(_USED_BY[name], f"tools.{name}")
    return changes(f"another {name}", B, tool(name, _NEWER.get(name, "9.9")), causes=causes, spreads=spreads)


_COPY = tool_copy("tritonclient", "tritonclient")
_INFO = f"tritonclient-{metadata.version('tritonclient')}.dist-info"
_MODULE = "tritonclient/utils/__init__.py"
_BY_CONTENT = {"package": "tools.tritonclient"}


def _edited(says: str, *change: Action):
    """Change a copy of a tool that an earlier build has used, and that a snapshot therefore watches."""
    return changes(f"a tool's copy, {says}", B, _COPY, built, *change, causes=_BY_CONTENT)


def _kept(says: str, *change: Action):
    return nothing(f"a tool's copy, {says}", B, _COPY, built, *change)


_CODE = (
    _kept("as it is, but for its times", in_tool(_MODULE, Path.touch)),
    _kept("with files more that no program runs, from another installer",
          in_tool("tritonclient/utils/__init__.pyi", lambda path: path.write_text("x: int")),
          in_tool("tritonclient/READ.md", lambda path: path.write_text("read")),
          in_tool("tritonclient/tests/test_it.py", lambda path: path.parent.mkdir() or path.write_text("x = 1")),
          in_tool(f"{_INFO}/INSTALLER", lambda path: path.write_text("uv"))),
    _kept("its metadata removed", in_tool(_INFO, shutil.rmtree)),
    _kept("its package removed", in_tool("tritonclient", shutil.rmtree)),
    _kept("in another folder", tool_copy("tritonclient", "tritonclient", into="more tools")),
    _edited("a module edited in place with its old time", in_tool(_MODULE, patched)),
    _edited("a module edited where no metadata lie", in_tool(_INFO, shutil.rmtree), in_tool(_MODULE, patched)),
    _edited("a module removed", in_tool("tritonclient/grpc/auth/__init__.py", Path.unlink)),
    _edited("a module more", in_tool("tritonclient/more.py", lambda path: path.write_text("x = 1"))),
    _edited("machine code before a module", in_tool("tritonclient/utils/_dlpack.so",
                                                    lambda path: path.write_text("x"))),
    _edited("a line of its RECORD removed", in_tool(f"{_INFO}/RECORD", lambda path: path.write_text(
        "".join(line for line in path.read_text().splitlines(keepends=True) if _MODULE not in line)))),
    _edited("its RECORD removed", in_tool(f"{_INFO}/RECORD", Path.unlink)),
    _edited("a checkout in place of a release", in_tool(f"{_INFO}/direct_url.json", lambda path: path.write_text(
        '{"url": "https://example.com/x.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}'))),
    _edited("an editable installation", in_tool(f"{_INFO}/direct_url.json", lambda path: path.write_text(
        '{"url": "file:///x", "dir_info": {"editable": true}}'))),
)  # fmt: skip

TABLE = (
    *_CODE,
    *(_upgraded(name) for name in _USED_BY),
    nothing("another version of all that no step uses", B,
            *(tool(name, _NEWER.get(name, "9.9")) for name in _UNUSED)),
)  # fmt: skip
