"""The model's own files: what they hold counts, not where they lie or when they were written."""

from mutations.actions import (
    aged,
    append,
    as_link,
    copy,
    flip,
    mode,
    move,
    recipe,
    recreate,
    remove,
    rewrite,
    settings,
    touch,
    touch_folder,
    write,
)  # fmt: skip
from mutations.mutation import changes, nothing

B, N, S = "bert", "net", "sentences"
_ALL = "export reference shape-infer fuse quantize validate bench package"
_SOURCE = {"fetch": "inputs.source"}
_LICENSE = {"fetch": "inputs.license"}
"""The licence goes into the report of `fetch` and into the package, not into the checkpoint."""
_READERS = "export reference validate package"
"""Those that take the checkpoint: they look again, and make of it what they made before."""
_NET = "reference shape-infer fuse validate bench package"


def _spaced(text: str) -> str:
    return text.replace(": ", ":  ")


TABLE = (
    changes("one bit of a weight, size and time kept", B, flip("model/model.safetensors"), causes=_SOURCE,
            spreads=_ALL),
    changes("one bit in the middle of the weights, size and time kept", B, flip("model/model.safetensors", at=60_000),
            causes=_SOURCE, spreads=_ALL),
    changes("a field of config.json that computes", B, settings("model/config.json", hidden_act="relu"),
            causes=_SOURCE, spreads=_ALL),
    changes("a smaller epsilon in config.json", B, settings("model/config.json", layer_norm_eps=1e-6), causes=_SOURCE,
            spreads=_ALL),
    changes("a field of config.json that only tells", B, settings("model/config.json", _name_or_path="elsewhere"),
            causes=_SOURCE, spreads=_READERS),
    changes("spaces in config.json", B, rewrite("model/config.json", _spaced), causes=_SOURCE, spreads=_READERS),
    changes("the tokenizer's words: two of them swapped", B,
            rewrite("model/tokenizer.json", lambda text: text.replace('"good"', '"g?"').replace('"film"',
            '"good"').replace('"g?"', '"film"')),
            causes=_SOURCE, spreads=_READERS),
    changes("a field of tokenizer_config.json", B, settings("model/tokenizer_config.json", padding_side="left"),
            causes=_SOURCE, spreads=_READERS),
    changes("a new file of the tokenizer", B, write("model/special_tokens_map.json", '{"unk_token": "[UNK]"}'),
            causes=_SOURCE, spreads=_READERS),
    changes("a vocabulary beside the tokenizer", B, write("model/vocab.txt", "[PAD]\n[UNK]\n"), causes=_SOURCE,
            spreads=_READERS),
    changes("a generation_config.json", B, write("model/generation_config.json", "{}"), causes=_SOURCE,
            spreads=_READERS),
    changes("the pooling of a sentence model", S, settings("model/1_Pooling/config.json",
            pooling_mode_mean_tokens=False, pooling_mode_cls_token=True),
            causes=_SOURCE, spreads=_READERS),
    changes("the longest text of a sentence model", S, settings("model/sentence_bert_config.json", max_seq_length=4),
            causes=_SOURCE, spreads=_READERS),
    nothing("an empty folder beside the modules of a sentence model", S, copy("model/1_Pooling", "model/other"),
            remove("model/other/config.json")),
    changes("one bit of a network's weight in its own file, size and time kept", N, flip("net/net.data"),
            causes=_SOURCE, spreads=_NET),
    changes("one bit at the beginning of the weights' file", N, flip("net/net.data", at=3), causes=_SOURCE,
            spreads=_NET),
    nothing("a README beside the weights that states no licence", B, write("model/README.md", "about")),
    changes("a README beside the weights that states a licence", B,
            write("model/README.md", "---\nlicense: mit\n---\n"), causes=_LICENSE, spreads="package"),
    changes("a LICENSE beside the weights", B, write("model/LICENSE", "text"), causes=_LICENSE,
            spreads="package"),
    nothing("a .git folder beside the weights", B, write("model/.git/HEAD", "ref: refs/heads/main\n"),
            write("model/.gitattributes", "*")),
    nothing("an editor's backup of the configuration", B, copy("model/config.json", "model/config.json~"),
            copy("model/config.json", "model/.config.json.swp")),
    nothing("the same weights as a pickle beside them", B, write("model/pytorch_model.bin", b"no pickle")),
    nothing("weights of other frameworks", B, write("model/tf_model.h5", b"1"), write("model/flax_model.msgpack", b"2"),
            write("model/onnx/model.onnx", b"3"), write("model/openvino_model.bin", b"4")),
    nothing("a picture and a licence", B, write("model/picture.png", b"png"), write("model/LICENSE", "free")),
    nothing("training's left-overs", B, write("model/training_args.bin", b"1"), write("model/optimizer.pt", b"2"),
            write("model/trainer_state.json", "{}")),
    nothing("another network beside the network", N, copy("net/net.onnx", "net/other.onnx"), write("net/other.data",
            b"1")),
    nothing("a checkpoint in a folder below", B, copy("model/config.json", "model/checkpoint-100/config.json")),
    nothing("all inputs touched", B, touch("model", "samples.jsonl")),
    nothing("the network's files touched", N, touch("net")),
    nothing("all inputs given a time long ago", B, aged("model", "samples.jsonl")),
    nothing("the weights read-only", B, mode(0o444, "model/model.safetensors", "model/config.json")),
    nothing("the weights executable", B, mode(0o755, "model/model.safetensors")),
    nothing("the model's folder made anew, its files in another order", B, recreate("model")),
    nothing("the network's folder made anew, its files in another order", N, recreate("net")),
    nothing("the model's folder touched", B, touch_folder("model")),
    nothing("the model behind a symbolic link", B, as_link("model")),
    nothing("the weights behind a symbolic link", B, as_link("model/model.safetensors")),
    nothing("the network behind a symbolic link", N, as_link("net")),
    nothing("the model's folder renamed, and the recipe with it", B, move("model", "weights"), recipe("source: model",
            "source: weights")),
    changes("an empty line at the end of the configuration", B, append("model/config.json", "\n"), causes=_SOURCE,
            spreads=_READERS),
)  # fmt: skip
