"""A model with random weights from a seed, beside a tokenizer that it shares: `random_model.py REQUEST`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers

given = json.loads(Path(sys.argv[1]).read_text())
out = Path(given["out"])
torch.manual_seed(given["seed"])
config = getattr(transformers, given["config"])(**given["sizes"])
transformers.AutoModel.from_config(config).eval().save_pretrained(out)
for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
    if (Path(given["tokenizer"]) / name).is_file():
        shutil.copyfile(Path(given["tokenizer"]) / name, out / name)
