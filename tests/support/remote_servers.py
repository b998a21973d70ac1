"""Real servers for tests of remotes: SeaweedFS (S3) from its Python package, and nginx with DAV from the system.

Azurite is Microsoft's emulator of Azure's blobs, from npm.

`Faulty` is a fake: a proxy before a real server that is slow, cuts connections or answers with errors.
"""

import base64
import contextlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

_START_SECONDS = 60


def free_ports(count):
    """Return ports of the loopback that are free now."""
    with contextlib.ExitStack() as open_sockets:
        every = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in every:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in every]


class Seaweed:
    """A SeaweedFS server with the S3 API, and two pairs of keys: one may write, one may only read."""

    bucket = "team"

    def __init__(self, folder):
        program = Path(sys.executable).with_name("weed")
        if not program.exists():
            pytest.skip("SeaweedFS is not installed (the extra `dev-s3`)")
        users = [
            {"name": name, "credentials": [{"accessKey": name, "secretKey": f"{name}-secret"}], "actions": actions}
            for name, actions in (("writer", ["Admin", "Read", "Write", "List"]), ("reader", ["Read", "List"]))
        ]
        (folder / "s3.json").write_text(json.dumps({"identities": users}))
        (folder / "data").mkdir()
        self.port, master, volume, filer, *grpc = free_ports(8)
        names = ("s3.port.grpc", "master.port.grpc", "volume.port.grpc", "filer.port.grpc")
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                program, "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3",
                f"-s3.port={self.port}", f"-s3.config={folder / 's3.json'}", f"-master.port={master}",
                f"-volume.port={volume}", f"-filer.port={filer}", "-s3.port.iceberg=0", "-s3.port.lance=0",
                "-master.volumeSizeLimitMB=1024", "-volume.max=20",
                *(f"-{name}={port}" for name, port in zip(names, grpc, strict=True)),
            ],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip
        _until(lambda: _answers(f"http://127.0.0.1:{self.port}/"), self._process, folder / "log")
        self._until_written()

    def environ(self, user, port=None):
        """Return the variables with which a user reaches the server, perhaps through a proxy's port."""
        return {
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": f"{user}-secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_REGION": "us-east-1",
        }

    def url(self, name):
        """Return the URL of a remote of its own."""
        return f"s3://{self.bucket}/{name}"

    def _until_written(self):
        import obstore
        from obstore.store import from_url

        config = {key.lower(): value for key, value in self.environ("writer").items()}
        store = from_url(f"s3://{self.bucket}", config=config, client_options={"allow_http": True})

        def written():
            obstore.put(store, "started", b"1")
            return True

        _until(written, self._process, Path(self._log.name))

    def stop(self):
        self._process.kill()  # it waits for its clients for half a minute otherwise
        self._process.wait(timeout=30)
        self._log.close()


class Azurite:
    """Azurite with one container, one key that writes and one signature that only reads."""

    container, account, key = "team", "team", base64.b64encode(b"writer-secret").decode()

    def __init__(self, folder):
        program = shutil.which("azurite-blob")
        if program is None:
            pytest.skip("Azurite is not installed (npm: azurite)")
        (self.port,) = free_ports(1)
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                program, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence",
                "--blobHost", "127.0.0.1", "--blobPort", str(self.port),
            ],
            cwd=folder, stdout=self._log, stderr=self._log, env=os.environ | {"AZURITE_ACCOUNTS": f"team:{self.key}"},
        )  # fmt: skip
        _until(lambda: _answers(self._endpoint), self._process, folder / "log")
        address = f"{self._endpoint}/{self.container}?restype=container&{self._signature('cw')}"
        with urllib.request.urlopen(urllib.request.Request(address, method="PUT", data=b"")):
            pass

    @property
    def _endpoint(self):
        return f"http://127.0.0.1:{self.port}/{self.account}"

    def environ(self, user):
        """Return the variables with which the `writer` or the `reader` reaches the server."""
        rights = {"AZURE_STORAGE_ACCOUNT_KEY": self.key}
        if user == "reader":
            rights = {"AZURE_STORAGE_SAS_KEY": self._signature("rl")}
        return {"AZURE_STORAGE_ACCOUNT_NAME": self.account, "AZURE_STORAGE_ENDPOINT": self._endpoint, **rights}

    def _signature(self, rights):
        """Return a shared access signature for everything in the account, as the query of a URL."""
        fields = {"sp": rights, "ss": "b", "srt": "sco", "st": "", "se": "2099-01-01T00:00:00Z", "sip": "", "spr": ""}
        signed = "\n".join((self.account, *fields.values(), "2019-12-12", ""))
        digest = hmac.digest(base64.b64decode(self.key), signed.encode(), "sha256")
        stated = {name: value for name, value in fields.items() if value}
        return urllib.parse.urlencode({**stated, "sv": "2019-12-12", "sig": base64.b64encode(digest).decode()})

    def url(self, name):
        """Return the URL of a remote of its own."""
        return f"az://{self.container}/{name}"

    def stop(self):
        self._process.kill()
        self._process.wait(timeout=30)
        self._log.close()


class Nginx:
    """nginx with DAV: anybody reads; who has the password writes."""

    user, password = "writer", "writer-secret"

    def __init__(self, folder):
        program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
        if program is None or b"http_dav_module" not in _version(program):
            pytest.skip("nginx with DAV is not installed (apt: nginx-extras)")
        (self.port,) = free_ports(1)
        self.root = folder / "root"
        self.root.mkdir()
        folder.chmod(0o755)
        coded = subprocess.run(
            ["openssl", "passwd", "-apr1", self.password], capture_output=True, text=True, check=True
        )
        (folder / "users").write_text(f"{self.user}:{coded.stdout}")
        user = "user root;" if Path.home() == Path("/root") or _is_root() else ""
        (folder / "nginx.conf").write_text(f"""
{user} daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 2;
events {{ worker_connections 512; }}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/bodies; client_max_body_size 64m;
  proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{self.port}; root {self.root};
    location / {{
      dav_methods PUT DELETE; create_full_put_path on; dav_access user:rw group:r all:r;
      limit_except GET HEAD {{ auth_basic "remote"; auth_basic_user_file {folder}/users; }}
    }}
  }}
}}
""")
        self.requests = folder / "access.log"
        self._process = subprocess.Popen(
            [program, "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL
        )
        _until(lambda: _answers(f"http://127.0.0.1:{self.port}/"), self._process, folder / "error.log")

    def url(self, name, *, writes=True, port=None):
        """Return the URL of a remote of its own, with the password if it `writes`."""
        user = f"{self.user}:{self.password}@" if writes else ""
        return f"http://{user}127.0.0.1:{port or self.port}/{name}"

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=30)


class Faulty:
    """A fake fault: a proxy of one TCP port. `mode` says what happens to each connection from now on.

    For example "rate 1000": 1000 bytes in a second and direction.
    """

    def __init__(self, port):
        self.mode = "through"
        self.connections = 0
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client, self.mode), daemon=True).start()

    def _serve(self, client, mode):
        with contextlib.suppress(OSError), client:
            if mode == "silent":
                time.sleep(600)
            if mode.startswith("status "):
                self._answer(client, mode.removeprefix("status "))
                return
            with socket.create_connection(("127.0.0.1", self._target)) as server:
                cut = int(mode.removeprefix("cut ")) if mode.startswith("cut ") else None
                rate = int(mode.removeprefix("rate ")) if mode.startswith("rate ") else None
                back = threading.Thread(target=_copy, args=(server, client, rate, cut), daemon=True)
                back.start()
                _copy(client, server, rate, None)
                back.join()

    @staticmethod
    def _answer(client, status):
        while True:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(65536)
                if not piece:
                    return
                head += piece
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            left = length - len(head.split(b"\r\n\r\n", 1)[1])
            while left > 0:
                left -= len(client.recv(65536)) or left
            client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())


def _copy(source, target, rate, cut):
    with contextlib.suppress(OSError):
        while piece := source.recv(min(65536, rate // 4) if rate else 65536):
            if cut is not None:
                piece, cut = piece[:cut], cut - len(piece)
            target.sendall(piece)
            if cut is not None and cut <= 0:
                break
            if rate:
                time.sleep(len(piece) / rate)
    for each, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR if cut is None else socket.SHUT_RDWR)):
        with contextlib.suppress(OSError):
            each.shutdown(how)


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except HTTPError:
        return True


def _until(true, process, log):
    end = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(Exception):
            if true():
                return
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            pytest.fail(f"a server did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def _version(program):
    return subprocess.run([program, "-V"], capture_output=True, check=False).stderr


def _is_root():
    return os.geteuid() == 0
