"""The environment, the user, the caller's folder: nothing of that counts."""

import os

from mutations.actions import write
from mutations.actions_around import build_with, elsewhere, from_folder, moved, named, new_folder, say, umask, variable
from mutations.mutation import nothing

B, N = "bert", "net"
_BACKWARDS = os.pathsep.join(reversed(os.environ["PATH"].split(os.pathsep)))

TABLE = (
    nothing("another language", B, variable(LANG="de_DE.UTF-8")),
    nothing("no language", B, variable(LANG=None, LC_ALL="C")),
    nothing("a language whose small letters differ", B, variable(LC_ALL="tr_TR.UTF-8")),
    nothing("another time zone", B, variable(TZ="Pacific/Kiritimati")),
    nothing("another home", B, new_folder("home"), variable(HOME="{folder}/home")),
    nothing("no home", N, variable(HOME=None)),
    nothing("another user", B, variable(USER="somebody", LOGNAME="somebody")),
    nothing("another hash seed", B, variable(PYTHONHASHSEED="7")),
    nothing("a folder for temporary files", B, new_folder("temporary"), variable(TMPDIR="{folder}/temporary")),
    nothing("a folder for caches", B, new_folder("caches"), variable(XDG_CACHE_HOME="{folder}/caches")),
    nothing("a token for the hub", B, variable(HF_TOKEN="hf_notarealtokennotarealtoken")),
    nothing("the hub's files elsewhere", B, new_folder("hub"), variable(HF_HOME="{folder}/hub")),
    nothing("no way to the hub", B, variable(HF_HUB_OFFLINE="1")),
    nothing("one thread for OpenMP", B, variable(OMP_NUM_THREADS="1")),
    nothing("threads for other libraries", B, variable(MKL_NUM_THREADS="3", OPENBLAS_NUM_THREADS="3",
            NUMEXPR_NUM_THREADS="3")),
    nothing("no GPU to be seen", B, variable(CUDA_VISIBLE_DEVICES="")),
    nothing("the PATH in the opposite order", B, variable(PATH=_BACKWARDS)),
    nothing("the least PATH", N, variable(PATH="/usr/bin:/bin")),
    nothing("a proxy", B, variable(HTTPS_PROXY="http://proxy.invalid:3128")),
    nothing("no colours", B, variable(NO_COLOR="1", TERM="dumb")),
    nothing("no CI", B, variable(CI=None)),
    nothing("Python that keeps no bytecode", B, variable(PYTHONDONTWRITEBYTECODE="1")),
    nothing("Python without assertions", N, variable(PYTHONOPTIMIZE="1")),
    nothing("Python with warnings", N, variable(PYTHONWARNINGS="default")),
    nothing("Python that reads UTF-8 by itself", N, variable(PYTHONUTF8="1")),
    nothing("a folder more on the import path", N, new_folder("modules"),
            variable(PYTHONPATH="{folder}/modules" + os.pathsep + os.environ.get("PYTHONPATH", ""))),
    nothing("a variable of recipe that says the same", B, variable(RECIPE_CACHE="{folder}/cache")),
    nothing("paths allowed that nobody needs", B, variable(RECIPE_ALLOW_PATHS="/usr/share")),
    nothing("a variable that nobody reads", B, variable(SOMETHING="else")),
    nothing("new files for nobody else", B, umask(0o077)),
    nothing("new files for all", N, umask(0)),
    nothing("called from another folder", B, from_folder("below", "../r.yaml")),
    nothing("called from the folder above", B, from_folder("..", "copy/r.yaml")),
    nothing("called by an absolute path", B, from_folder("below", "{folder}/r.yaml")),
    nothing("called with a detour", B, named("./r.yaml")),
    nothing("called by an absolute path from its own folder", B, from_folder(".", "{folder}/r.yaml")),
    nothing("the store named on the command line", B, say("--cache", "cache")),
    nothing("one job at a time", B, build_with("-j", "1")),
    nothing("eight jobs at a time", B, build_with("-j", "8")),
    nothing("going on after failures", B, build_with("--keep-going")),
    nothing("content with waiting", B, build_with("--allow-waiting")),
    nothing("up to the last step", B, build_with("--to", "package")),
    nothing("the whole project in another place", B, elsewhere),
    nothing("the whole project of a network in another place", N, elsewhere),
    nothing("the project's folder renamed", B, moved),
    nothing("files of other programs beside it", B, write("Makefile", "all:\n"), write(".vscode/settings.json", "{}")),
)  # fmt: skip
