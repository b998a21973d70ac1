"""A cluster engine whose nodes are processes of this machine: the product's node code, without Ray."""

import base64
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from engine.cluster.nodes import ClusterNode, Piece
from engine.cluster.ray_engine import ClaimTable
from engine.system import processes

SUPPORT = Path(__file__).parent
MEMORY = 1 << 34
"""The bytes of memory that a node says it has."""


@cache
def _nodes():
    """Return a connection with the process of which nodes are forks: the import of the program takes a second."""
    ours, theirs = socket.socketpair()
    environment = os.environ | {"PYTHONPATH": f"{SUPPORT}:{SUPPORT.parent.parent}"}
    command = [sys.executable, SUPPORT / "node_process.py", str(theirs.fileno())]
    subprocess.Popen(command, env=environment, pass_fds=(theirs.fileno(),))
    theirs.close()
    return ours


class Slot:
    """A process that runs one job at a time."""

    def __init__(self, name, environment):
        self.name, self.ident = name, None
        orders, own = os.pipe()
        read, answers = os.pipe()
        socket.send_fds(_nodes(), [json.dumps(environment).encode()], [orders, answers])
        os.close(orders)
        os.close(answers)
        self.pid = int(_nodes().recv(64))
        self.orders, self.pipe = os.fdopen(own, "wb"), os.fdopen(read, "rb", buffering=0)
        self.rest = b""

    def send(self, message):
        self.orders.write(json.dumps(message).encode() + b"\n")
        self.orders.flush()

    def messages(self):
        data = self.pipe.read(1 << 16)
        if not data:
            raise EOFError
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self):
        processes.end(self.pid)
        self.orders.close()
        self.pipe.close()


class ProcessCluster:
    """Nodes for one engine after another, until `end`."""

    def __init__(self, folder):
        """Make the remote of these nodes in the folder, beside the folder of their stores."""
        (folder / "remote").mkdir()
        self.folder, self.remote = folder / "nodes", f"file://{folder / 'remote'}"
        self.slots, self.threads, self.surveyors, self.environments = [], {}, {}, {}
        self.builders = set()
        self.claims = ClaimTable(self.builders.__contains__)

    def add(self, name, *, cpus=1, **variables):
        self.slots = [slot for slot in self.slots if slot.name != name]  # those of a node that a test has killed
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RECIPE_")}
        environment |= {
            "RECIPE_REMOTE": self.remote, "RECIPE_TRUST": "none", "RECIPE_NODE_STORE": str(self.folder / name),
            "RECIPE_TRUST_CACHE": "1", "PYTHONPATH": f"{SUPPORT}:{SUPPORT.parent.parent}", **variables,
        }  # fmt: skip
        self.threads[name], self.environments[name] = cpus, environment
        self.surveyors[name] = Slot(name, environment)
        self.slots += [Slot(name, environment) for _ in range(cpus)]

    def renew(self, slot):
        """End a process with its job, and start another in its place."""
        slot.kill()
        self.slots.remove(slot)
        self.slots.append(Slot(slot.name, self.environments[slot.name]))

    def kill(self, name):
        del self.threads[name]
        for slot in [self.surveyors.pop(name), *(slot for slot in self.slots if slot.name == name)]:
            slot.kill()

    def change(self, name, **variables):
        """Start a node's processes again with other variables, and tell nobody."""
        cpus = self.threads[name]
        self.kill(name)
        self.add(name, cpus=cpus, **variables)

    def end(self):
        for name in [*self.threads]:
            self.kill(name)

    def engine(self, builder="test"):
        return ProcessEngine(self, builder)


class ProcessEngine:
    """The engine of one build."""

    def __init__(self, cluster, builder):
        self.shown = "the processes of a test"
        self.cluster, self.builder = cluster, builder
        cluster.builders.add(builder)
        self.waiting = []
        self.own = set()

    def nodes(self):
        return [ClusterNode(name, name, cpus, MEMORY) for name, cpus in self.cluster.threads.items()]

    def ask(self, nodes, question):
        answers = {}
        for node in nodes:
            slot = self.cluster.surveyors[node.id]
            slot.send({"question": question})
            while not (messages := slot.messages()):
                pass
            answers[node.id] = messages[0]["survey"]
        return answers

    def submit(self, ident, nodes, lane, order):
        self.own.add(ident)
        self.waiting.append((ident, [node.id for node in nodes], base64.b64encode(order).decode()))

    def _place(self):
        """Send each order that waits to a free process of its nodes, or say that none of the nodes is left."""
        waiting, self.waiting = self.waiting, []
        for ident, names, order in waiting:
            free = [
                slot for slot in self.cluster.slots if slot.name in names and not slot.ident and not slot.pipe.closed
            ]
            if free:
                free[0].ident = ident
                free[0].send({"ident": ident, "order": order})
                yield Piece(ident, free[0].name)
            elif self.cluster.threads.keys().isdisjoint(names):
                yield Piece(ident, lost="its nodes are gone", node_is_gone=True)
            else:
                self.waiting.append((ident, names, order))

    def poll(self, timeout):
        pieces = [*self._place()]
        running = [slot for slot in self.cluster.slots if slot.ident in self.own]
        if not running:
            time.sleep(timeout)
        with selectors.DefaultSelector() as selector:
            for slot in running:
                if slot.pipe.closed:
                    pieces.append(Piece(slot.ident, lost="its process was killed", node_is_gone=True))
                    slot.ident = None
                else:
                    selector.register(slot.pipe, selectors.EVENT_READ, slot)
            for event, _ in selector.select(0 if pieces or not running else timeout):
                pieces += self._pieces(event.data)
        return pieces

    def _pieces(self, slot):
        try:
            messages = slot.messages()
        except EOFError:
            ident, slot.ident = slot.ident, None
            return [Piece(ident, lost="its process has ended", node_is_gone=True)]
        pieces = []
        for message in messages:
            log, answer = (base64.b64decode(message.get(name, "")) for name in ("log", "answer"))
            pieces.append(Piece(message["ident"], slot.name, log, answer or None))
            if answer:
                slot.ident = None
        return pieces

    def forget(self, ident):
        self.waiting = [each for each in self.waiting if each[0] != ident]
        for slot in [slot for slot in self.cluster.slots if slot.ident == ident and not slot.pipe.closed]:
            self.cluster.renew(slot)

    def claim(self, key):
        return self.cluster.claims.claim(key, self.builder)

    def release(self, key):
        self.cluster.claims.release(key, self.builder)

    def close(self):
        self.cluster.builders.discard(self.builder)
        for slot in [slot for slot in self.cluster.slots if slot.ident in self.own and not slot.pipe.closed]:
            self.cluster.renew(slot)
