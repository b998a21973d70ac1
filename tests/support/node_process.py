"""Processes that run orders as a node does: each is a fork of one process that has the program imported."""

import base64
import json
import os
import signal
import socket
import sys

from engine.cluster import node


def main():
    """Fork a process for each message: its environment, with the ends of the pipes for its messages and answers."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        raw, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not raw:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(json.loads(raw), *map(os.fdopen, descriptors, "rw"))
        for each in descriptors:
            os.close(each)
        control.send(str(pid).encode())


def serve(environment, messages, answers):
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(":")

    def send(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    for line in messages:
        message = json.loads(line)
        if "question" in message:
            send({"survey": node.answer_survey(message["question"])})
            continue
        ident = message["ident"]

        def tell(piece, ident=ident):
            send({"ident": ident, "log": base64.b64encode(piece).decode()})

        answer = node.run_order(base64.b64decode(message["order"]), tell)
        send({"ident": ident, "answer": base64.b64encode(answer).decode()})
    os._exit(0)


if __name__ == "__main__":
    main()
