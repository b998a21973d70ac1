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
    changes("a field of config.json that computes", B, settings("model/config.json", hidden_act="relu"),
            causes=_SOURCE, spreads=_ALL),
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
    changes("the pooling of a sentence model", S, settings("model/1_Pooling/config.json",
            pooling_mode_mean_tokens=False, pooling_mode_cls_token=True),
            causes=_SOURCE, spreads=_READERS),
    changes("the longest text of a sentence model", S, settings("model/sentence_bert_config.json", max_seq_length=4),
            causes=_SOURCE, spreads=_READERS),
    nothing("an empty folder beside the modules of a sentence model", S, copy("model/1_Pooling", "model/other"),
            remove("model/other/config.json")),
    changes("one bit of a network's weight in its own file, size and time kept", N, flip("net/net.data"),
            causes=_SOURCE, spreads=_NET),
    changes("a README beside the weights that states a licence", B,
            write("model/README.md", "---\nlicense: mit\n---\n"), causes=_LICENSE, spreads="package"),
    changes("a LICENSE beside the weights", B, write("model/LICENSE", "text"), causes=_LICENSE,
            spreads="package"),
    nothing("files beside the weights that say nothing of them", B, write("model/README.md", "about"),
            write("model/.git/HEAD", "ref: refs/heads/main\n"), write("model/.gitattributes", "*"),
            write("model/picture.png", b"png"), copy("model/config.json", "model/config.json~"),
            copy("model/config.json", "model/.config.json.swp")),
    nothing("weights of other formats and of a training beside them", B, write("model/pytorch_model.bin", b"no pickle"),
            write("model/tf_model.h5", b"1"), write("model/flax_model.msgpack", b"2"),
            write("model/onnx/model.onnx", b"3"), write("model/openvino_model.bin", b"4"),
            write("model/training_args.bin", b"1"), write("model/optimizer.pt", b"2"),
            write("model/trainer_state.json", "{}"), copy("model/config.json", "model/checkpoint-100/config.json")),
    nothing("another network beside the network", N, copy("net/net.onnx", "net/other.onnx"), write("net/other.data",
            b"1")),
    nothing("all inputs touched", B, touch("model", "samples.jsonl")),
    nothing("all inputs given a time long ago, some of them other permissions", B, aged("model", "samples.jsonl"),
            mode(0o755, "model/model.safetensors"), mode(0o444, "model/config.json")),
    nothing("the model's folder made anew, its files in another order", B, recreate("model")),
    nothing("the network's folder made anew, its files in another order", N, recreate("net")),
    nothing("the model behind a symbolic link, its weights behind another", B, as_link("model/model.safetensors"),
            as_link("model")),
    nothing("the network behind a symbolic link", N, as_link("net")),
    nothing("the model's folder renamed, and the recipe with it", B, move("model", "weights"), recipe("source: model",
            "source: weights")),
    changes("an empty line at the end of the configuration", B, append("model/config.json", "\n"), causes=_SOURCE,
            spreads=_READERS),
)  # fmt: skip
