"""The rules of Kubernetes' Pod Security profile "restricted", which has those of "baseline", for Linux.

Source: kubernetes.io, "Pod Security Standards", and k8s.io/pod-security-admission, folder policy, at 1.30; the rule
of hosts in probes is of 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ADDED = {"NET_BIND_SERVICE"}
SECCOMP = {"RuntimeDefault", "Localhost"}
APPARMOR = {"RuntimeDefault", "Localhost"}
SELINUX = {"", "container_t", "container_init_t", "container_kvm_t"}
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
}  # fmt: skip
APPARMOR_KEY = "container.apparmor.security.beta.kubernetes.io/"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def violations(spec: dict[str, Any], annotations: dict[str, str] | None = None) -> list[str]:
    """Return what of a pod a namespace of the profile "restricted" refuses, each as RULE: WHERE."""
    return [*_of_pod(spec, annotations or {}), *(each for c in _containers(spec) for each in _of_container(c, spec))]


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for key in ("containers", "initContainers", "ephemeralContainers") for each in spec.get(key) or []]


def _of_pod(spec: dict[str, Any], annotations: dict[str, str]) -> Iterator[str]:
    yield from (f"host namespaces: {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key))
    for volume in spec.get("volumes") or []:
        yield from (f"volume types: {kind}" for kind in volume.keys() - {"name"} - VOLUMES)
    for key, value in annotations.items():
        if key.startswith(APPARMOR_KEY) and value != "runtime/default" and not value.startswith("localhost/"):
            yield f"AppArmor: {key}"
    context = spec.get("securityContext") or {}
    yield from (f"sysctls: {each['name']}" for each in context.get("sysctls") or [] if each["name"] not in SYSCTLS)
    yield from _of_both(context, "pod")


def _of_both(context: dict[str, Any], where: str) -> Iterator[str]:
    """The rules of fields that a pod and a container can have."""
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"host process: {where}"
    if (kind := (context.get("appArmorProfile") or {}).get("type")) is not None and kind not in APPARMOR:
        yield f"AppArmor: {where}"
    linux = context.get("seLinuxOptions") or {}
    if linux.get("type", "") not in SELINUX or linux.get("user") or linux.get("role"):
        yield f"SELinux: {where}"
    if (kind := (context.get("seccompProfile") or {}).get("type")) is not None and kind not in SECCOMP:
        yield f"seccomp: {where}"
    if context.get("runAsNonRoot") is False:
        yield f"not as root: {where}"
    if context.get("runAsUser") == 0:
        yield f"user 0: {where}"


def _of_container(container: dict[str, Any], spec: dict[str, Any]) -> Iterator[str]:
    where, pod = container["name"], spec.get("securityContext") or {}
    context = container.get("securityContext") or {}
    yield from _of_both(context, where)
    if not (context.get("seccompProfile") or pod.get("seccompProfile")):
        yield f"seccomp: {where}"
    if context.get("runAsNonRoot") is None and not pod.get("runAsNonRoot"):
        yield f"not as root: {where}"
    if context.get("privileged"):
        yield f"privileged: {where}"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"privilege escalation: {where}"
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []) or set(capabilities.get("add") or []) - ADDED:
        yield f"capabilities: {where}"
    if context.get("procMount") not in (None, "Default"):
        yield f"mount of /proc: {where}"
    yield from (f"host ports: {where}" for port in container.get("ports") or [] if port.get("hostPort"))
    lifecycle = container.get("lifecycle") or {}
    for handler in [container.get(key) for key in PROBES] + [lifecycle.get(key) for key in ("postStart", "preStop")]:
        for kind in ("httpGet", "tcpSocket"):
            if ((handler or {}).get(kind) or {}).get("host"):
                yield f"hosts of probes: {where}"
