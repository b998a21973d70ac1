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
import urllib.error
import urllib.request

TEXT = {"inputs": [{"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["a fine day"]}]}


def main(plan):
    with open(plan) as file:
        plan = json.load(file)
    server = subprocess.Popen(
        plan["command"], env=plan["environment"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        ready(server, plan["url"])
        request = urllib.request.Request(f"{plan['url']}/v2/models/{plan['model']}/infer", json.dumps(TEXT).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            outputs = json.load(answer)["outputs"]
        probe = [sys.executable, "-I", "-S", f"{plan['package']}/probe.py", "--url", plan["url"], "--timeout", "30"]
        probed = subprocess.run(probe, capture_output=True, text=True, check=False)
        print(json.dumps({
            "answer": outputs[0]["data"], "user": os.geteuid(), "written": written(plan["package"]),
            "outside": outside(), "probe": [probed.returncode, probed.stdout],
        }))  # fmt: skip
    finally:
        server.terminate()
        server.communicate()


def ready(server, url):
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{url}/v2/health/ready", timeout=10):
                return
        except OSError:
            pass
        if server.poll() is not None:
            break
        time.sleep(0.2)
    server.kill()
    lines = server.communicate()[0].decode(errors="replace").splitlines()
    sys.exit("\n".join(line[:300] for line in lines if line[:1] not in {"I", "|", "+"})[-3000:])


def written(*folders):
    """Return the folders in which a file can be written."""
    able = []
    for folder in (*folders, "/var/tmp", "/"):
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
