"""The configuration of nginx is the one of docs/serving.md, and a user without root starts it."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import front
import pytest

from engine.server import ports, proxy

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def test_the_page_has_the_configuration_that_is_generated():
    [block] = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block == proxy.nginx()


def test_each_parameter_stands_in_the_text_and_nothing_is_left_to_fill_in():
    named = {
        "http": "1.2.3.4:5",
        "grpc": "1.2.3.4:6",
        "triton_http": "a:7",
        "triton_grpc": "a:8",
        "body": "4m",
        "models": "(a|b)",
    }
    text = proxy.nginx(**named, of_all=901, of_one_client=902, rate=903)
    for value in (*named.values(), "all 901;", "client 902;", "rate=903r", "burst=90 "):
        assert value in text
    assert not re.search(r"@[A-Z_]+@", text)


READ_ONLY = """
set -e
cp "$1" /dev/shm/$$.conf
mount --rbind / /mnt
mount -o remount,bind,ro /mnt
mount -t tmpfs -o mode=1777 tmpfs /mnt/tmp
cp /dev/shm/$$.conf /mnt/tmp/nginx.conf
rm /dev/shm/$$.conf
shift
exec chroot /mnt setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all "$@"
"""


def test_a_user_without_root_starts_it_where_only_tmp_can_be_written(tmp_path):
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is not installed (apt: nginx-light)")
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("this user may not mount file systems in a namespace of its own")
    free = ports.free()
    nobody = "127.0.0.1:9"
    text = proxy.nginx(
        http=f"127.0.0.1:{free.http}", grpc=f"127.0.0.1:{free.grpc}", triton_http=nobody, triton_grpc=nobody
    )
    (tmp_path / "nginx.conf").write_text(text)
    command = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", tmp_path / "nginx.conf"]
    command += [program, "-e", "stderr", "-c", "/tmp/nginx.conf", "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(100):
                status = front.ask(free.http, "GET", "/v2/health/ready")
                if status is not None or process.poll() is not None:
                    break
                time.sleep(0.1)
            owner = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.terminate()
            errors = process.communicate(timeout=30)[1]
    assert status == 502, errors  # it runs; there is no Triton behind it
    assert "\nUid:\t1000\t1000\t" in owner
    assert "emerg" not in errors
