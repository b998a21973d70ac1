"""The benchmarks run, and say what is not there instead of inventing it."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import ray_cluster

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def printed(script, *words):
    """Return what a benchmark prints."""
    command = [sys.executable, BENCHMARKS / script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.whole("tests of the benchmarks are about the figures, not the program")
def test_each_phase_of_the_jobs_does_the_work_that_is_due_and_no_more(tmp_path):
    text = printed("jobs.py", "--jobs", "8", "12", "--runs", "1", "--cold-runs", "1", "--only", "make",
                   "recipe, one matrix", "recipe, a file per job")  # fmt: skip
    assert text.count("| recipe, one matrix |") == 3
    assert "per job beyond the loop; the peak memory is" in text


def test_hashing_says_the_speed_of_each_and_what_is_missing():
    text = printed("hashing.py", "--mib", "1", "--runs", "1")
    assert "engine.digest.of_file (xxh3_128)" in text
    assert "blake3" in text


@pytest.mark.whole("tests of the benchmarks are about the figures, not the program")
def test_a_check_is_timed_beside_that_of_another_checkout():
    recipe = Path(sys.executable).with_name("recipe")
    text = printed("check.py", "--runs", "1", "--other", str(recipe))
    assert f"| {recipe} |" in text
    assert "| here |" in text


@pytest.mark.whole
@pytest.mark.slow
def test_jobs_on_a_cluster_are_timed_beside_plain_tasks_of_its_engine():
    ray_cluster.program()
    text = printed("cluster_jobs.py", "--jobs", "20", "--rounds", "1")
    assert [text.count(f"| {name} |") for name in ("recipe build --on", "plain Ray tasks")] == [1, 1]


@pytest.mark.whole
@pytest.mark.slow
def test_no_node_of_a_cluster_is_idle_while_a_job_could_run():
    ray_cluster.program()
    text = printed("cluster_variants.py", "--variants", "40")  # it fails where a key is built twice
    [row] = [line.split(" | ") for line in text.splitlines() if line.startswith("| on the cluster |")]
    _, jobs, _, free, memory = (cell.strip("| ") for cell in row)
    assert int(jobs) == 40 * 4  # fetch, shape-infer, fuse, quantize
    assert float(free.rstrip("%")) < 25
    assert int(memory.removesuffix(" MiB")) < 300


def test_without_olive_there_is_no_number(tmp_path):
    (tmp_path / "olive").touch()  # in the way of its environment
    assert "not installed: venv" in printed("olive.py", "--environments", tmp_path)


def test_the_plain_script_has_the_options_that_the_recipe_leads_to(shipped):
    code = (
        "import sys, engine; sys.path.insert(0, sys.argv[1]); import plain_script; from pathlib import Path\n"
        "[variant] = engine.plan(['recipes/minilm_cpu.yaml'])\n"
        "ours = plain_script.steps(Path('recipes/samples/sentences.jsonl').resolve())\n"
        "assert {job.name: job.step for job in variant.jobs} == ours"
    )
    subprocess.run([sys.executable, "-c", code, BENCHMARKS], cwd=shipped.folder, check=True)


def test_what_a_script_prints_replaces_what_the_page_said(tmp_path):
    shutil.copy(BENCHMARKS / "into_readme.py", tmp_path)
    (tmp_path / "toy.py").write_text("print('| new |')")
    page = "before\n<!-- measured: toy.py -->\n| old |\n<!-- end -->\nafter\n"
    (tmp_path / "README.md").write_text(page)
    subprocess.run([sys.executable, tmp_path / "into_readme.py", "toy.py"], check=True)
    assert (tmp_path / "README.md").read_text() == page.replace("old", "new")


def test_the_end_to_end_table_has_a_row_for_each_way_and_ratios_among_equals(monkeypatch):
    """The numbers are made up here, and appear nowhere else."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    end_to_end = importlib.import_module("end_to_end")

    def row(runtime, way, *, ours=False, ratios=None):
        times = {"mean_ms": 3.0, "p50_ms": 2.0, "p95_ms": 4.0, "p99_ms": 5.0}
        return {"shape": {"batch": 1}, "runtime": runtime, "via": way, "ours": ours, "ratio_to": ratios or {}, **times}

    rows = [
        row("a", "in-process", ours=True, ratios={"b": 7.0}),
        row("b", "in-process"),
        row("b", "triton-grpc"),
    ]
    text = end_to_end.table([{"recipe": "r", "bench": rows}])
    assert "| r | 1 | **a** | in-process | 3.000 | 2.000 | 4.000 | 5.000 |  |" in text
    assert "| r | 1 | b | in-process | 3.000 | 2.000 | 4.000 | 5.000 | 7.00 x |" in text
    assert "| r | 1 | b | triton-grpc | 3.000 | 2.000 | 4.000 | 5.000 |  |" in text


def test_commits_rekey_steps_by_code_and_data_and_files_are_followed_through_renames(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    rekeys = importlib.import_module("rekeys")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "engine").mkdir()
    code = "def work(x):\n    return [x + each for each in (1, 2, 3)]\n"
    for file, text in [
        ("one.py", code),
        ("one.py", f"# a remark\n{code}"),
        ("one.py", code.replace("3", "4")),
        ("words.txt", "some"),
        ("words.txt", "other"),
        ("../README.md", "other"),
        ("two.py", ""),
    ]:
        if file == "two.py":
            (tmp_path / "engine" / "one.py").rename(tmp_path / "engine" / file)
        else:
            (tmp_path / "engine" / file).write_text(text)
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", file], check=True)
    words, two = {"engine/words.txt"}, {"engine/two.py"}
    assert rekeys.rekeying(rekeys.History.of(tmp_path, 100), tmp_path) == [two, set(), words, words, two, set(), two]
    assert len(rekeys.History.of(tmp_path, 3).commits) == 3


@pytest.mark.whole("tests of the benchmarks are about the figures, not the program")
def test_the_commits_that_rekey_a_step_are_counted_for_each_step_of_a_recipe():
    text = printed("rekeys.py", "minilm_cpu.yaml", "--commits", "3", "--runs", "1")
    [row] = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| package |")]
    assert int(row[1]) > int(row[3]) > 100
    assert int(row[2]) <= 3
