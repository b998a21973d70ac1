"""Fake installed distributions: files, and the list RECORD that an installer writes of them."""

import base64
import hashlib
import json


def checksum(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def install(site, name, version, files, *, record=True, direct_url=None, compiled=True):
    """Write a distribution into a folder of the import path; return the folder of its metadata.

    `files` maps relative paths to texts. If `compiled` is true, each module has a compiled copy, as pip writes it.
    """
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    every = {**files, f"{info.name}/METADATA": metadata, f"{info.name}/INSTALLER": "pip\n"}
    if direct_url is not None:
        every[f"{info.name}/direct_url.json"] = json.dumps(direct_url)
    lines = []
    for path, text in every.items():
        content = text.encode()
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)
        lines.append(f"{path},{checksum(content)},{len(content)}")
        if compiled and path.endswith(".py"):
            folder, _, module = path.rpartition("/")
            copy = f"{folder}/__pycache__/{module[:-3]}.cpython-311.pyc".lstrip("/")
            (site / copy).parent.mkdir(exist_ok=True)
            (site / copy).write_bytes(b"compiled")
            lines.append(f"{copy},,")
    lines += [f"../../../bin/{name},{checksum(b'')},0", f"{info.name}/RECORD,,"]
    if record:
        (info / "RECORD").write_text("".join(f"{line}\n" for line in lines))
    return info
