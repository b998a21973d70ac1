"""Inputs that change or are damaged while a step runs: who is to blame, and that no result of such a run is kept."""

import os
import subprocess
import time

import pytest
import toy
from small_builds import build, project_in, start, states, variant

from engine.builder.attempt import Attempt
from engine.builder.inputs import RunInputs
from engine.events import Ended, Noticed, Started
from engine.step import Source
from engine.store.store import Store
from engine.system.file_systems import MountEvents
from tests.fire.mounts import own_mounts


@pytest.fixture
def harm(monkeypatch):
    """Do something to the store right before a job of this name starts, once."""

    def lay(name, act):
        prepare = Attempt.prepare.__func__
        left = [act]

        def trapped(cls, order, mounts):
            if order.job.name == name and left:
                left.pop()(order.lookup.store)
            return prepare(cls, order, mounts)

        monkeypatch.setattr(Attempt, "prepare", classmethod(trapped))

    return lay


def stored_text(store):
    [record] = [record for record in store.records() if record.job == "begin"]
    return store.artifact_path(record.artifact) / "text.txt"


def overwrite(store):
    """Damage all names of the file at once: the pool's file is the same."""
    path = stored_text(store)
    path.chmod(0o644)
    path.write_text("spoilt")


def exchange(store):
    """Put another file in the place of the file: the pool's file is whole."""
    path = stored_text(store)
    path.unlink()
    path.write_text("spoilt")


def test_a_file_that_was_damaged_before_the_step_began_is_damage_of_the_store(project, harm):
    harm("shout", overwrite)
    events = build(project, variant(project, toy.Begin(), toy.Shout()))
    [error] = [event.error for event in events if isinstance(event, Ended) and event.state == "failed"]
    assert error.what.startswith("the store was damaged: the input 'text'")
    assert "it is in quarantine/, and 'begin' runs again in the next build" in error.facts
    again = build(project, variant(project, toy.Begin(), toy.Shout()))
    assert states(again) == {"begin": "built", "shout": "built"}


@pytest.mark.parametrize("damage", [exchange, lambda store: stored_text(store).unlink()], ids=["another file", "gone"])
def test_a_file_that_the_pool_has_whole_is_mended_and_the_job_repeated_in_the_same_build(project, harm, damage):
    harm("shout", damage)
    events = build(project, variant(project, toy.Begin(), toy.Shout()))
    assert states(events) == {"begin": "built", "shout": "built"}
    [note] = [event.text for event in events if isinstance(event, Noticed)]
    assert "the store was damaged" in note
    assert "'shout' runs again" in note
    store = Store(project / "cache")
    [record] = [record for record in store.records() if record.job == "shout"]
    assert (store.artifact_path(record.artifact) / "text.txt").read_text() == "HELLO"


_PATIENCE_SECONDS = 30


@pytest.fixture
def project(tmp_path):
    """A project in which `link.txt` leads through another link to a file; `evil` is a folder of the same names."""
    folder = tmp_path / "above" / "project"
    (folder / "real" / "deep").mkdir(parents=True)
    (folder / "real" / "deep" / "a.txt").write_text("right")
    (folder / "evil" / "deep").mkdir(parents=True)
    (folder / "evil" / "deep" / "a.txt").write_text("wrong")
    (folder / "evil" / "a.txt").write_text("wrong")
    (folder / "way").symlink_to("real")
    (folder / "deeper").symlink_to("way/deep")
    (folder / "link.txt").symlink_to("deeper/a.txt")
    return project_in(folder)


def wait_for(condition):
    end = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def build_while(project, *steps, there=lambda: None, back=lambda: None):
    """Build, call `there` when the last job has started, and `back` when its step has read."""
    running, lookup = start(project, variant(project, *steps))
    events = []
    for event in running:
        events.append(event)
        if isinstance(event, Started) and event.job.endswith("-late"):
            folder = os.open(event.log.parent, os.O_RDONLY)  # stays the same if a folder above it is moved
            wait_for(lambda folder=folder: "began" in os.listdir(folder))
            there()
            os.close(os.open("go", os.O_CREAT, dir_fd=folder))
            wait_for(lambda folder=folder: "read" in os.listdir(folder))
            back()
            os.close(folder)
    return events, [record for record in lookup.store.records() if record.job.endswith("-late")]


def moved(place, by):
    """Return what puts `by` in the place of a file or folder by moves, and what moves both back."""
    aside = place.with_name(f"{place.name}.aside")

    def there():
        place.rename(aside)
        by.rename(place)

    def back():
        place.rename(by)
        aside.rename(place)

    return there, back


def retargeted(link, target):
    """Return what makes a link lead to another target, and what makes it lead to its own target again."""

    def lead(target):
        link.unlink()
        link.symlink_to(target)

    before = os.readlink(link)
    return lambda: lead(target), lambda: lead(before)


def other_link(link, target):
    """Return what moves a link away for another, and what moves it back."""
    other = link.with_name(f"{link.name}.other")
    other.symlink_to(target)
    return moved(link, other)


def copied(folder, project="."):
    """Return what moves a copy of a folder into its place, and what moves the folder back; one file differs."""
    other = folder.with_name("other")
    subprocess.run(["cp", "-r", folder, other], check=True)
    (other / project / "real" / "deep" / "a.txt").write_text("wrong")
    return moved(folder, other)


SWAPS = {
    "the link of the source": lambda p: retargeted(p / "link.txt", "evil/a.txt"),
    "the link of the source, moved": lambda p: other_link(p / "link.txt", "evil/a.txt"),
    "a link to a folder": lambda p: retargeted(p / "deeper", "evil"),
    "a link in the target of a link": lambda p: retargeted(p / "way", "evil"),
    "a link in the target of a link, moved": lambda p: other_link(p / "way", "evil"),
    "the folder": lambda p: moved(p / "real" / "deep", p / "evil" / "deep"),
    "a folder above": lambda p: moved(p / "real", p / "evil"),
    "the project": copied,
    "the folder above the project": lambda p: copied(p.parent, p.name),
}


def refuse(events, records):
    failed = next(event for event in events if isinstance(event, Ended) and event.job.endswith("-late"))
    assert failed.state == "failed"
    assert "changed while" in failed.error.what
    assert records == []


@pytest.mark.sample(6)
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("source", ["link.txt", "deeper"])
def test_a_way_that_changes_and_changes_back_fails_the_job(project, swap, source):
    step = toy.ReadLate(source=Source(uri=f"file:{project}/{source}"))
    if source == "deeper":
        swap = "a link to a folder" if "of the source" in swap else swap
        step = toy.ReadLate(source=Source(uri=f"file:{project}/{source}", part="tokenizer"), file="a.txt")
        for folder in ("real/deep", "evil", "evil/deep"):
            (project / folder / "tokenizer.json").write_text("{}")
    there, back = SWAPS[swap](project)
    refuse(*build_while(project, step, there=there, back=back))
    events, [_] = build_while(project, step)
    assert states(events) == {"read-late": "built"}


@pytest.mark.parametrize("is_project", [True, False], ids=["the project", "the store"])
def test_a_store_that_is_moved_and_moved_back_fails_the_job(project, is_project):
    build_while(project, toy.Begin())
    other = project.parent.with_name("other")
    subprocess.run(["cp", "-r", project, other], check=True)
    for path in (other / "cache" / "artifacts").rglob("text.txt"):
        path.unlink()
        path.write_text("wrong")
    place, by = (project, other) if is_project else (project / "cache" / "artifacts", other / "cache" / "artifacts")
    there, back = moved(place, by)
    refuse(*build_while(project, toy.Begin(), toy.ShoutLate(), there=there, back=back))


@pytest.mark.parametrize("how", ["moved", "edited"])
def test_a_stored_file_that_is_replaced_and_is_there_again_fails_the_job(project, tmp_path, how):
    build_while(project, toy.Begin())
    [file] = (project / "cache" / "artifacts").rglob("text.txt")
    other = tmp_path / "other.txt"
    other.write_text("wrong")

    def edit(text):
        file.chmod(0o644)
        file.write_text(text)

    there, back = moved(file, other) if how == "moved" else (lambda: edit("wrong"), lambda: edit("hello"))
    refuse(*build_while(project, toy.Begin(), toy.ShoutLate(), there=there, back=back))


def test_a_hard_link_to_a_stored_file_fails_no_job(project, tmp_path):
    build_while(project, toy.Begin())
    [file] = (project / "cache" / "artifacts").rglob("text.txt")
    link = tmp_path / "link"
    events, [_] = build_while(project, toy.Begin(), toy.ShoutLate(), there=lambda: os.link(file, link))
    assert states(events)["shout-late"] == "built"


@pytest.mark.sample(3)
@pytest.mark.parametrize("over", ["real/deep", "real/deep/a.txt", "real"])
@pytest.mark.parametrize("pause", [0.0, 0.5], ids=["at once", "slowly"])
def test_a_bind_mount_that_comes_and_goes_fails_the_job(project, over, pause):
    by = over.replace("real", "evil")

    def back():
        time.sleep(pause)
        subprocess.run(["umount", project / over], check=True)

    def there():
        subprocess.run(["mount", "--bind", project / by, project / over], check=True)

    with own_mounts():
        step = toy.ReadLate(source=Source(uri=f"file:{project}/link.txt"))
        refuse(*build_while(project, step, there=there, back=back))


def test_what_happens_beside_the_way_fails_nothing(project):
    (project / "mounted").mkdir()

    def there():
        (project / "real" / "new").mkdir()
        (project / "real" / "deep" / "new.txt").write_text("new")
        (project / "real" / "deep" / "new.txt").rename(project / "real" / "deep" / "newer.txt")
        (project / "new").symlink_to("real")
        (project / "evil").rename(project / "elsewhere")
        os.utime(project / "real")
        subprocess.run(["mount", "--bind", project / "real", project / "mounted"], check=True)

    with own_mounts():
        step = toy.ReadLate(source=Source(uri=f"file:{project}/link.txt"))
        events, [_] = build_while(project, step, there=there)
        subprocess.run(["umount", project / "mounted"], check=True)
    assert states(events) == {"read-late": "built"}


def test_a_mount_inside_a_folder_of_an_input_counts(project):
    with own_mounts():
        mounts = MountEvents()
        inputs = RunInputs(Store(project / "cache"), {}, [str(project / "way")], mounts)
        subprocess.run(["mount", "--bind", project / "evil", project / "real" / "deep"], check=True)
        assert inputs.changed_way() is not None
        subprocess.run(["umount", project / "real" / "deep"], check=True)
        mounts.close()
