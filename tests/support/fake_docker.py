"""A fake `docker` for tests: it notes its command lines, and `run` is the pip-installed Triton in a process of its own.

There is no container: what docker itself does is not tested. FAKE_DOCKER is a folder: `calls` gets a line of JSON for
each call, `images` has the images that are here, a line each.
With the file `podman` it is podman, which tells a digest only in a file. Under the name podman or buildah it is one
of these. `denied` has the name of an image that the registry refuses; with `quiet`, docker tells no digest.
"""

import json
import os
import sys
from pathlib import Path

DIGEST = f"sha256:{'ab' * 32}"
"""The digest that the fake registry gives to each image."""
HOME = Path(os.environ.get("FAKE_DOCKER", "."))


def main(words):
    text = sys.stdin.read() if words[-1] == "-" else ""
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps({"words": words, "text": text}) + "\n")
    images = (HOME / "images").read_text().splitlines() if (HOME / "images").exists() else []
    if words[0] == "info" and (HOME / "silent").exists():
        sys.exit("Cannot connect to the daemon")
    is_podman = (HOME / "podman").exists()
    if words == ["--version"]:
        print("podman version 4.9.3" if is_podman else "Docker version 27.3.1, build ce12230")
    if words[:2] == ["image", "inspect"]:
        sys.exit(0 if words[2] in images else "no such image")
    if words[0] in ("pull", "build", "push") and (HOME / "offline").exists():
        sys.exit("no route to host")
    if words[0] == "push" and (HOME / "denied").exists() and f"/{(HOME / 'denied').read_text()}:" in words[-1]:
        sys.exit("denied: requested access to the resource is denied")
    if words[:2] == ["push", "--digestfile"]:
        Path(words[2]).write_text(DIGEST)
    elif words[0] == "push" and not is_podman:
        layer = f"layer sha256:{'cd' * 32}: Pushed"
        print(
            layer if (HOME / "quiet").exists() else f"{layer}\n{words[-1].rpartition(':')[2]}: digest: {DIGEST} size: 1"
        )
    if words[0] in ("pull", "build"):
        (HOME / "images").write_text("\n".join([*images, words[1] if words[0] == "pull" else words[2]]))
    if words[0] == "run":
        run(words)


def run(words):
    from engine.server import pip_server
    from engine.server.installation import ServerSetup
    from engine.server.pip_server import Packaged
    from engine.server.ports import Ports
    from engine.server.repository_needs import needs_of

    published = [word.partition("=")[2].split(":") for word in words if word.startswith("--publish=")]
    repository = Path(next(word for word in words if word.startswith("--volume="))[9:].split(":")[0])
    ports = Ports(*(int(outside) for _, outside, _ in published), address=published[0][0])
    place = ServerSetup(repository, ports, HOME, "fake", needs_of(repository))
    environment = Path(os.environ["RECIPE_TRITON_VENV"])
    launch = Packaged("pip", pip_server.VERSION, "", environment=environment).launch(place)
    own = next(word for word in words if word.startswith("--id="))  # the server says who it is, wherever it runs
    command = [own if word.startswith("--id=") else word for word in launch.command]
    os.execve(command[0], command, dict(launch.environment))


def install(folder, home):
    """Put the fake on a PATH: return the folder that has it. `home` is its memory."""
    folder.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    program = folder / "docker"
    root, support = Path(__file__).parents[2], Path(__file__).parent
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = [{str(root)!r}, {str(support)!r}]\n"
        "import fake_docker\nfake_docker.main(sys.argv[1:])\n"
    )
    program.chmod(0o755)
    return folder


def calls(home):
    """Return the command lines that the fake was given."""
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]
