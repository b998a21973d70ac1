"""What a bare machine does with a package: no recipe, no network, no root, nothing to write to but /dev/shm and /tmp.

A test runs this file in namespaces of its own, as another user, with a Python that has no further package. Argument: a
JSON file with the server's command and environment, the URL, the folder of the package and the model to ask. Prints
what happened as one JSON object.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

LOG = "/tmp/bare-server.log"
TEXTS = ["a fine day", "Triton answers without a network, without root and without a place to write."]


def main(plan):
    with open(plan) as file:
        plan = json.load(file)
    with open(LOG, "wb") as log:
        server = subprocess.Popen(plan["command"], env=plan["environment"], stdout=log, stderr=log)
    try:
        ready(server, plan["url"])
        tensor = {"name": "TEXT", "shape": [len(TEXTS), 1], "datatype": "BYTES", "data": TEXTS}
        body = json.dumps({"inputs": [tensor]}).encode()
        with urllib.request.urlopen(f"{plan['url']}/v2/models/{plan['model']}/infer", body, timeout=60) as answer:
            outputs = json.load(answer)["outputs"]
        probe = [sys.executable, "-I", "-S", f"{plan['package']}/probe.py", "--url", plan["url"], "--timeout", "30"]
        probed = subprocess.run(probe, capture_output=True, text=True, check=False)
        print(json.dumps({
            "shape": outputs[0]["shape"], "data": outputs[0]["data"], "user": os.geteuid(),
            "able": capabilities(server.pid), "written": written(plan["package"], plan["server"]),
            "outside": outside(), "probe": [probed.returncode, probed.stdout],
        }))  # fmt: skip
    finally:
        server.terminate()
        server.wait(30)


def ready(server, url):
    """Wait until all models are ready; end with what the server logs where it does not become ready."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{url}/v2/health/ready", timeout=10):
                return
        except OSError:
            pass
        if server.poll() is not None:
            break
        time.sleep(0.2)
    with open(LOG, errors="replace") as log:
        lines = [line.rstrip()[:300] for line in log if line[:1] not in {"I", "|", "+"}]
    sys.exit("\n".join(lines)[-3000:])


def capabilities(pid):
    """Return what the kernel says about a process: its user and its capabilities."""
    with open(f"/proc/{pid}/status") as status:
        return dict(line.split(None, 1) for line in status.read().splitlines() if line.startswith(("CapEff", "CapBnd")))


def written(*folders):
    """Return the folders in which a file can be written."""
    able = []
    for folder in (*folders, os.path.dirname(__file__), "/var/tmp", "/"):
        try:
            with open(f"{folder}/written-by-a-bare-server", "w"):
                able.append(folder)
        except OSError:
            pass
    return able


def outside():
    """Return the error of a connection to another machine (RFC 5737)."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return "connected"


if __name__ == "__main__":
    main(*sys.argv[1:])
