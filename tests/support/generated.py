"""Generated text: what `generate()` of transformers says, and how clients ask a Triton server for it."""

import json
import queue
import urllib.request

import generators
import numpy as np
import torch
import transformers
import triton_server
from tritonclient import grpc


class Oracle:
    """A model as transformers has it, with its own tokenizer and `generate()`."""

    def __init__(self, folder, family, positions):
        """`positions` is how many tokens it can look at, None for any number."""
        self.behind = family in generators.BEHIND_AN_ENCODER
        kind = "AutoModelForSeq2SeqLM" if self.behind else "AutoModelForCausalLM"
        self.model = getattr(transformers, kind).from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.positions = positions
        self.known = {}

    def __call__(self, text, new=12):
        """Return the tokens and the text that follow, or answer, a text."""
        if (text, new) not in self.known:
            ids = self.prompt(text, new)
            mask = torch.ones(1, len(ids), dtype=torch.long)
            with torch.no_grad():
                tokens = self.model.generate(
                    torch.tensor([ids]), attention_mask=mask, max_new_tokens=new, num_beams=1, do_sample=False
                )[0].tolist()
            tokens = tokens[1 if self.behind else len(ids) :]
            self.known[text, new] = tokens, self.text(ids, tokens)
        return self.known[text, new]

    def first_token(self, text, *, temperature, top_k, top_p, repetition_penalty):
        """Return the probability of each first token, by transformers' own processors, in the order of `generate()`."""
        ids = torch.tensor([self.prompt(text, 4)])
        with torch.no_grad():
            output = self.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, do_sample=True, num_beams=1,
                temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=repetition_penalty,
                return_dict_in_generate=True, output_scores=True,
            )  # fmt: skip
        return output.scores[0][0].double().softmax(0).numpy()

    def text(self, ids, tokens):
        """What was made behind a prompt, as text; what continues one is read together with it."""
        before = [] if self.behind else ids
        whole, start = (self.tokenizer.decode(each, skip_special_tokens=True) for each in ([*before, *tokens], before))
        return whole[len(start) :]

    def prompt(self, text, new):
        """A text that is continued keeps its end, behind its first token; one that an encoder reads its beginning."""
        ids = self.tokenizer(text)["input_ids"]
        if self.behind and self.positions:
            return ids if len(ids) <= self.positions else [*ids[: self.positions - 1], ids[-1]]
        if self.behind:
            return ids
        room = self.positions - new
        first = ids[:1] if ids[:1] == [self.model.generation_config.bos_token_id] else []
        return (ids if len(ids) <= room else [*first, *ids[len(ids) - room + len(first) :]]) or [
            self.model.generation_config.bos_token_id
        ]


def inputs(texts, most=None, stops=None):
    """The tensors of a request, one row a text."""
    arrays = {"TEXT": triton_server.texts(*texts)}
    if most is not None:
        arrays["MAX_NEW_TOKENS"] = np.array([[most]] * len(texts), dtype=np.int64)
    if stops is not None:
        arrays["STOP"] = np.array([[stop.encode() for stop in stops]] * len(texts), dtype=object)
    return triton_server.inputs(**arrays)


def rows(answer):
    """The tokens, text and reason of each row of an answer."""
    ids, texts, reasons = (answer.as_numpy(name) for name in ("token_ids", "text", "finish_reason"))
    return [
        ([int(each) for each in row if each >= 0], text.decode(), reason.decode())
        for row, text, reason in zip(ids, texts.reshape(-1), reasons.reshape(-1), strict=True)
    ]


def ask(client, model, texts, *, parameters=None, **more):
    return rows(client.infer(model, inputs(texts, **more), client_timeout=60, parameters=parameters))


def pieces(server, model, text, **more):
    """Every answer of a stream, until the last."""
    got = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: got.put(error or result))
        client.async_stream_infer(model, inputs([text], **more), enable_empty_final_response=True)
        rows_so_far = []
        while True:
            each = got.get(timeout=60)
            if isinstance(each, Exception):
                raise each
            if each.as_numpy("text") is not None:
                rows_so_far += rows(each)
            if each.get_response().parameters["triton_final_response"].bool_param:
                return rows_so_far


def joined(pieces):
    return [token for ids, _, _ in pieces for token in ids], "".join(text for _, text, _ in pieces), pieces[-1][2]


def post(server, path, body):
    """POST JSON, as any HTTP client can."""
    request = urllib.request.Request(f"http://{server.http}/v2/models/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()
