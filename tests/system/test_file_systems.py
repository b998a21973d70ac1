"""File systems: which are believed, by the table of mounts."""

import os

import pytest

from engine.system import file_systems
from engine.system.file_systems import kind_of, mount_folder, mounted, tells_changes

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 8:1 /data /mnt/my\\040disk rw,relatime shared:2 master:1 - xfs /dev/sda1 rw,attr2
31 22 0:50 / /mnt/nfs rw,relatime - nfs4 server:/export rw,vers=4.2
32 22 0:51 / /mnt/share rw,relatime - cifs //server/share rw
33 22 8:17 / /mnt/stick rw,relatime - vfat /dev/sdb1 rw,fmask=0022
34 22 8:33 / /mnt/card rw,relatime - exfat /dev/sdc1 rw
35 22 0:52 / /mnt/ssh rw,relatime - fuse.sshfs host: rw
36 22 0:53 / /mnt/c rw,relatime - 9p drvfs rw,aname=drvfs
37 22 0:54 / /mnt/host rw,relatime - virtiofs share rw
38 22 0:55 / /mnt/container rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c
39 22 0:56 / /tmp rw,nosuid - tmpfs tmpfs rw
40 22 0:57 / /mnt/ram rw - ramfs ramfs rw
41 22 7:0 / /mnt/image ro - squashfs /dev/loop0 ro
42 22 7:1 / /mnt/erofs ro - erofs /dev/loop1 ro
43 22 7:2 / /mnt/cd ro - iso9660 /dev/loop2 ro
44 22 0:58 / /mnt/both rw - tmpfs tmpfs rw
45 44 8:49 / /mnt/both rw - ext4 /dev/sdd1 rw
46 22 0:59 / /mnt/butter rw - btrfs /dev/sde1 rw,subvol=/
"""
KINDS = {
    "/": "ext4",
    "/mnt/my disk": "xfs",
    "/mnt/both": "ext4",
    "/mnt/butter": "btrfs",
    "/mnt/nfs": "nfs4",
    "/mnt/share": "cifs",
    "/mnt/stick": "vfat",
    "/mnt/card": "exfat",
    "/mnt/ssh": "fuse.sshfs",
    "/mnt/c": "9p",
    "/mnt/host": "virtiofs",
    "/mnt/container": "overlay",
    "/tmp": "tmpfs",
    "/mnt/ram": "ramfs",
    "/mnt/image": "squashfs",
    "/mnt/erofs": "erofs",
    "/mnt/cd": "iso9660",
}
BELIEVED = {"/", "/mnt/my disk", "/mnt/both", "/mnt/butter"}


@pytest.fixture
def table(monkeypatch):
    """The table of mounts above, in place of this machine's."""
    monkeypatch.setattr(file_systems, "_mounts", lambda: file_systems._table_of(TABLE))
    monkeypatch.setattr(file_systems, "_by_device", {})
    monkeypatch.setattr(file_systems.os.path, "realpath", os.path.abspath)


@pytest.mark.parametrize(("place", "kind"), KINDS.items())
def test_only_a_file_system_that_tells_of_every_change_is_believed(place, kind, table):
    file = os.path.join(place, "some/file")
    assert kind_of(file) == kind
    assert tells_changes(file) == (place in BELIEVED)


def test_a_table_of_mounts_that_cannot_be_read_is_not_believed(monkeypatch):
    monkeypatch.setattr(file_systems, "_mounts", dict)
    monkeypatch.setattr(file_systems, "_by_device", {})
    assert kind_of("/some/file") == "unknown"
    assert not tells_changes("/some/file")


def test_a_link_is_believed_as_the_file_that_it_leads_to(tmp_path, monkeypatch):
    ram = tmp_path.resolve() / "ram"
    ram.mkdir()
    (ram / "file").touch()
    (tmp_path / "link").symlink_to("ram/file")
    mounts = {"/": ("ext4", 1, "/"), str(ram): ("tmpfs", 2, str(ram))}
    monkeypatch.setattr(file_systems, "_mounts", lambda: mounts)
    monkeypatch.setattr(file_systems, "_by_device", {})
    assert kind_of(tmp_path / "link") == "tmpfs"


def test_this_machines_own_table_names_the_device_of_a_file(tmp_path):
    if tells_changes(tmp_path) and mount_folder(tmp_path):
        number = os.stat(mount_folder(tmp_path)).st_ino
        assert mounted(os.stat(tmp_path).st_dev).endswith(f"/{number}")
    assert mounted(0) is None
