"""A bucket that loses objects under a real Ray cluster: the next `recipe build --on` ends with exit code 0.

Every kind of damage, with nodes that are processes: tests/cluster/test_lost_objects.py.
"""

import graphs
import lost_objects
import onnx
import pytest
import user_caches
from lost_objects import DAMAGES
from onnx import helper
from program import Program
from ray_cluster import RayCluster

pytestmark = [pytest.mark.slow, pytest.mark.whole]

RECIPE = """\
name: net
model: {source: model.onnx}
target: {device: cpu, runtime: onnxruntime}
precision: fp32
profiles: [{batch: [1, 2, 4]}]
"""
NODES = ("one", "two")


def project_in(folder):
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "net.yaml").write_text(RECIPE)
    ends = [("x", graphs.FLOAT, ["batch", 64])], [("y", graphs.FLOAT, ["batch", 512])]
    graph = graphs.graph([helper.make_node("MatMul", ["x", "w"], ["y"])], *ends, [graphs.weight("w", 64, 512)])
    onnx.save(graph, folder / "model.onnx")
    return folder


class Team:
    """A cluster with two nodes, a bucket, and laptops."""

    def __init__(self, folder, seaweed):
        self.folder, self.url, self.keys = folder, seaweed.url("lost"), seaweed.environ("writer")
        self.ray = RayCluster()
        for name in NODES:
            self.ray.add(
                name, environment=self.keys | {"RECIPE_REMOTE": self.url, "RECIPE_NODE_STORE": str(folder / name)}
            )

    def laptop(self, name):
        """Return the program in a project of its own, with an empty store."""
        program = Program(project_in(self.folder / name))
        program.environment |= {each: self.ray.environment[each] for each in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        program.environment |= self.keys | {
            "RECIPE_REMOTE": self.url, "RECIPE_TRUST": "none",
            "XDG_CONFIG_HOME": str(program.folder / ".config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(program.folder / ".user"),
        }  # fmt: skip
        return program

    def build(self, laptop, *words):
        """Build on the cluster, which must succeed; return what the build told."""
        done = laptop("build", "net.yaml", *words, "--on", self.ray.address, expect=0)
        print(done.stdout, done.stderr)
        return done.stderr

    def damage(self, how):
        assert lost_objects.change(self.url, self.keys, **DAMAGES[how]) > 0

    def forget(self):
        """Let the nodes forget all results, as if their disks had been replaced."""
        records = [path for name in NODES for path in (self.folder / name / "records").glob("*.json")]
        for path in records:
            path.unlink()
        assert records


@pytest.fixture(scope="module")
def team(tmp_path_factory, seaweed):
    team = Team(tmp_path_factory.mktemp("team"), seaweed)
    yield team
    team.ray.close()


def package(laptop):
    folder = laptop.folder / "build" / "net"
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_bucket_that_lost_objects_heals_with_the_next_build_on_the_cluster(team):
    first = team.laptop("first")
    assert "built    package" in team.build(first)
    team.damage("all is gone")
    assert lost_objects.names(team.url, team.keys) == []
    told = team.build(team.laptop("second"))
    [line] = [line for line in told.splitlines() if "pushed again" in line]
    assert "1 package" in line
    team.damage("all is gone")
    team.build(first)  # its own store has the package
    for number, damage in enumerate(DAMAGES):
        team.build(team.laptop(f"whole-{number}"))
        team.damage(damage)
        laptop = team.laptop(f"damaged-{number}")
        assert "pushed again" in team.build(laptop)
        assert package(laptop) == package(first)


@pytest.mark.parametrize("damage", ["all is gone", "the blobs have other bytes"])
def test_what_no_node_has_either_is_made_again(team, damage):
    before = team.laptop(f"before {damage}")
    team.build(before)
    team.damage(damage)
    team.forget()
    told = team.build(before, "--set", "profiles.0.batch.2=8")
    assert "runs again" in told
    team.damage(damage)
    team.forget()
    after = team.laptop(f"after {damage}")
    assert "built    package" in team.build(after)
