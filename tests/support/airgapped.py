"""What a machine without a network does with a wheel, an exported store and a lock; the test runs it in a namespace.

Arguments: the folder of the machine, the Python of an environment with the packages that `recipe` needs, the wheel.
Prints one JSON object.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

X = {"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "data": [0.5] * 64}]}


def main(folder, python, wheel):
    os.chdir(folder)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    environment = install(python, wheel)

    def recipe(*words):
        command = [environment, "-m", "engine", *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    recipe("cache", "trust", "--key", Path("key.pub").read_text().strip())
    answers = {
        "program": subprocess.check_output([environment, "-c", "import engine; print(engine.__file__)"], text=True),
        "import": recipe("cache", "import", "carried.zip"),
        "build": [json.loads(line) for line in recipe("build", "plain.yaml", "--frozen", "--json").splitlines()],
        "pull": recipe("cache", "pull", "plain.yaml", "--locked", "--cache", "pulled"),
        "answer": serve([environment, "-m", "engine", "serve", "plain.yaml", "--frozen", "--server", "pip", "--json"]),
        "outside": outside(),
    }
    print(json.dumps(answers))


def install(python, wheel):
    """Make an environment, install the wheel into it, and return its Python. The other packages are taken as given."""
    subprocess.run([python, "-m", "venv", "venv"], check=True)
    [packages] = Path("venv").glob("lib/python*/site-packages")
    given = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    (packages / "given.pth").write_text(given)
    own = str(Path("venv/bin/python").absolute())
    options = ["--no-index", "--find-links", str(Path(wheel).parent), "--no-deps", "--force-reinstall", "--quiet"]
    subprocess.run([own, "-m", "pip", "install", *options, "recipe-build"], check=True)
    return own


def serve(command):
    """Serve the package, ask the model once over HTTP, end the server, and return the answer."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        status = json.loads(server.stdout.readline())
        request = urllib.request.Request(f"{status['http']}/v2/models/plain/infer", json.dumps(X).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["outputs"][0]["data"]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def outside():
    """Return the error of a connection to an address outside: the trace of system calls has to show this one."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except OSError as error:
        return os.strerror(error.errno)
    return "connected"


if __name__ == "__main__":
    main(*sys.argv[1:])
