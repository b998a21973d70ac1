"""A gRPC server of a process of its own that reads each request to its end and refuses it: it does no other work."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

REFUSAL = "read to its end, and refused"
"""The text of each refusal."""
_SERVER = f"""
import ctypes, signal
from concurrent.futures import ThreadPoolExecutor
import grpc
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with the tests
try:  # with its clients it stands for other machines: it takes no time from the server that is measured
    open("/proc/self/autogroup", "w").write("19")
except OSError:
    pass

class Refuses(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(self.refuse)

    def refuse(self, body, context):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, {REFUSAL!r})

server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", -1)])
server.add_generic_rpc_handlers((Refuses(),))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Run the server with the least priority until the block ends; yield its address."""
    command = ["nice", "-n", "19", sys.executable, "-c", _SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
