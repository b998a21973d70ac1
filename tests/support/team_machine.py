"""A machine of a team: a project folder, a store and a user's settings of its own."""

import json
import shutil

import user_caches
from program import Program
from tiny_project import RECIPE, SAMPLES


class Machine(Program):
    """A machine with a copy of a project and without the settings of other users."""

    def __init__(self, folder, files):
        shutil.copytree(files, folder)
        super().__init__(folder)
        self.environment |= {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(folder / "user-cache"),
        }

    @property
    def settings(self):
        """The user's folder of settings and keys."""
        return self.folder / "config" / "recipe"

    def uses(self, url, **variables):
        self.environment |= {"RECIPE_REMOTE": url, **variables}
        return self

    def keygen(self):
        self("cache", "keygen", expect=0)
        return (self.settings / "signing.key.pub").read_text().strip()

    def artifacts(self):
        records = [json.loads(path.read_text()) for path in (self.folder / "cache" / "records").glob("*.json")]
        return {record["job"]: record["artifact"] for record in records}


def project_in(folder, model):
    """Write what is in git: a recipe, samples, and a model."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(model, folder / "model")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "r.yaml").write_text(RECIPE)
    return folder


def fetched_in(folder):
    """Write a project whose model is only fetched, never run."""
    (folder / "model").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
    (folder / "model" / "config.json").write_text(json.dumps(config))
    (folder / "model" / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "r.yaml").write_text(RECIPE)
    return folder
