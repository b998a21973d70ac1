"""The template for KubeRay: its fields are those of a RayCluster, and its values are those of this program.

Source of the fields: the Go types of RayCluster in KubeRay, and of a pod in Kubernetes.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import ray_cluster
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from engine.cluster import node

ROOT = Path(__file__).parent.parent.parent
SPEC = {
    "authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "headGroupSpec", "headServiceAnnotations",
    "rayVersion", "suspend", "workerGroupSpecs",
}  # fmt: skip
HEAD = {"enableIngress", "headService", "rayStartParams", "serviceType", "template"}
WORKERS = {
    "groupName", "maxReplicas", "minReplicas", "numOfHosts", "rayStartParams", "replicas", "scaleStrategy", "template",
}  # fmt: skip
NEEDED = {"groupName", "maxReplicas", "minReplicas", "rayStartParams", "template"}
CONTAINER = {
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports",
    "readinessProbe", "resources", "securityContext", "volumeMounts", "workingDir",
}  # fmt: skip
POD = {
    "containers", "imagePullSecrets", "initContainers", "nodeSelector", "serviceAccountName", "tolerations", "volumes",
}  # fmt: skip
TOKENS = Version("2.52")
"""The first version of Ray for which KubeRay makes tokens."""


@pytest.fixture(scope="module")
def documents():
    return list(yaml.safe_load_all((ROOT / "docs" / "cluster" / "kuberay.yaml").read_text()))


@pytest.fixture(scope="module")
def cluster(documents):
    return documents[0]


@pytest.fixture(scope="module")
def groups(cluster):
    return cluster["spec"]["workerGroupSpecs"]


def pods(cluster):
    spec = cluster["spec"]
    return [each["template"]["spec"] for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def test_all_fields_are_those_of_a_ray_cluster(cluster, groups):
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert cluster["spec"].keys() <= SPEC
    assert {"rayStartParams", "template"} <= cluster["spec"]["headGroupSpec"].keys() <= HEAD
    for group in groups:
        assert NEEDED <= group.keys() <= WORKERS
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for pod in pods(cluster):
        assert pod.keys() <= POD
        [container] = pod["containers"]
        assert container.keys() <= CONTAINER
        mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
        assert mounts == {volume["name"] for volume in pod.get("volumes", [])}


def test_quantities_and_parameters_are_texts_as_their_types_say(cluster, groups):
    for each in (cluster["spec"]["headGroupSpec"], *groups):
        [container] = each["template"]["spec"]["containers"]
        values = (*each["rayStartParams"].values(), *container["resources"]["limits"].values())
        assert all(isinstance(value, str) for value in values)


@pytest.mark.whole("the fields and texts of the template, in the tests above")
def test_the_parameters_are_options_of_ray_start(cluster, groups):
    ray_cluster.program()
    code = "from ray.scripts.scripts import start; print(*(name for each in start.params for name in each.opts))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    options = set(re.findall(r"--([\w-]+)", shown.stdout))  # `ray start --help` leaves out some
    assert "num-cpus" in options
    for each in (cluster["spec"]["headGroupSpec"], *groups):
        assert each["rayStartParams"].keys() <= options


def test_all_pods_have_one_image_the_remote_and_a_version_of_ray_that_the_extra_allows(cluster, groups):
    assert len({container["image"] for pod in pods(cluster) for container in pod["containers"]}) == 1
    for pod in pods(cluster):
        assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "recipe-remote"}}]
    for group in groups:
        [container] = group["template"]["spec"]["containers"]
        [variable] = container["env"]
        [mount] = container["volumeMounts"]
        assert variable == {"name": node.STORE, "value": mount["mountPath"]}
    version = Version(cluster["spec"]["rayVersion"])
    [line] = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.startswith("cluster = ")]
    ray = Requirement(next(word for word in line.split('"') if word.startswith("ray[client]>")))
    assert version in ray.specifier
    assert version >= TOKENS
    assert cluster["spec"]["authOptions"] == {"mode": "token"}


def test_the_head_runs_no_jobs_and_lets_builders_in(cluster):
    head = cluster["spec"]["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert head["rayStartParams"]["system-config"] == f"'{ray_cluster.documented_settings()}'"  # it stands in a shell
    assert 10001 in {port["containerPort"] for port in head["template"]["spec"]["containers"][0]["ports"]}


def test_only_the_pods_of_the_cluster_reach_its_ports(documents, cluster):
    [_, policy] = documents
    own = {"matchLabels": {"ray.io/cluster": cluster["metadata"]["name"]}}
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    assert policy["spec"] == {
        "podSelector": own, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": own}]}],
    }  # fmt: skip
