"""Small random models under the names that the shipped recipes ask the model hub for."""

import models
import timm_here
from fake_hub import FIRST

SST2 = "philschmid/MiniLM-L6-H384-uncased-sst2"
BERT, ROBERTA, OPT = "google-bert/bert-base-uncased", "deepset/roberta-base-squad2", "facebook/opt-125m"
EFFICIENTNET = "timm/tf_efficientnetv2_s.in21k_ft_in1k"
TEXTS = (SST2, BERT, ROBERTA, OPT)


def put(hub, folder, names):
    """Put a stand-in for each of the named models into a fake hub."""
    for name in names:
        place = folder / name.partition("/")[2]
        _MAKERS[name](place)
        hub.repositories[name] = {FIRST: {path.name: path.read_bytes() for path in place.iterdir()}}


def _classifier(place):
    models.checkpoint(place, "bert", task="text-classification", max_position_embeddings=512)


def _bert(place):
    models.checkpoint(place, "bert", task="fill-mask", max_position_embeddings=512)


def _roberta(place):
    models.checkpoint(place, "roberta", task="question-answering", max_position_embeddings=514)


def _opt(place):
    import torch
    import transformers

    torch.manual_seed(0)
    words = models.vocabulary()
    config = transformers.OPTConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
        word_embed_proj_dim=32, max_position_embeddings=512, pad_token_id=words["[PAD]"],
        bos_token_id=words["[CLS]"], eos_token_id=words["[SEP]"],
    )  # fmt: skip
    model = transformers.OPTForCausalLM(config)
    models.sharpen(model)
    model.save_pretrained(place, safe_serialization=True)
    models.save_tokenizer(place, limit=512)


def _efficientnet(place):
    timm_here.checkpoint(place, "test_efficientnet", size=64, num_classes=10)


_MAKERS = {SST2: _classifier, BERT: _bert, ROBERTA: _roberta, OPT: _opt, EFFICIENTNET: _efficientnet}
