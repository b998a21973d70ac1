"""A process that runs orders as a node does: messages come by standard input, answers go to a pipe."""

import base64
import json
import os
import sys

from engine.cluster import node


def main():
    answers = os.fdopen(int(sys.argv[1]), "w")

    def send(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if "question" in message:
            send({"survey": node.answer_survey(message["question"])})
            continue
        ident = message["ident"]

        def tell(piece, ident=ident):
            send({"ident": ident, "log": base64.b64encode(piece).decode()})

        answer = node.run_order(base64.b64decode(message["order"]), tell)
        send({"ident": ident, "answer": base64.b64encode(answer).decode()})


if __name__ == "__main__":
    main()
