"""The environment, the user, the caller's folder: nothing of that counts."""

import os

from mutations.actions import new_folder, write
from mutations.actions_around import build_with, elsewhere, from_folder, named, say, umask, variable
from mutations.mutation import nothing

B, N = "bert", "net"
_BACKWARDS = os.pathsep.join(reversed(os.environ["PATH"].split(os.pathsep)))

TABLE = (
    nothing("another user in another country", B, new_folder("home"), variable(LANG="de_DE.UTF-8",
            LC_ALL="tr_TR.UTF-8", TZ="Pacific/Kiritimati", HOME="{folder}/home", USER="me", LOGNAME="me")),
    nothing("no home and no language", N, variable(HOME=None, LANG=None, LC_ALL="C")),
    nothing("other folders for temporary files, caches and the hub", B, new_folder("temporary"), new_folder("caches"),
            variable(TMPDIR="{folder}/temporary", XDG_CACHE_HOME="{folder}/caches", HF_HOME="{folder}/caches/hub",
            HF_HUB_OFFLINE="1", HF_TOKEN="hf_notarealtokennotarealtoken")),
    nothing("other numbers of threads, and no GPU to be seen", B, variable(OMP_NUM_THREADS="1", MKL_NUM_THREADS="3",
            OPENBLAS_NUM_THREADS="3", NUMEXPR_NUM_THREADS="3", CUDA_VISIBLE_DEVICES="")),
    nothing("the PATH in the opposite order, a proxy, a plain terminal and no CI", B, variable(PATH=_BACKWARDS,
            HTTPS_PROXY="http://proxy.invalid:3128", NO_COLOR="1", TERM="dumb", CI=None, SOMETHING="else")),
    nothing("the least PATH", N, variable(PATH="/usr/bin:/bin")),
    nothing("other options of Python", N, variable(PYTHONHASHSEED="7", PYTHONDONTWRITEBYTECODE="1",
            PYTHONOPTIMIZE="1", PYTHONWARNINGS="default", PYTHONUTF8="1")),
    nothing("a folder more on the import path", N, new_folder("modules"),
            variable(PYTHONPATH="{folder}/modules" + os.pathsep + os.environ.get("PYTHONPATH", ""))),
    nothing("variables of recipe that change no job", B, variable(RECIPE_CACHE="{folder}/cache",
            RECIPE_ALLOW_PATHS="/usr/share")),
    nothing("new files for nobody else", B, umask(0o077)),
    nothing("new files for all", N, umask(0)),
    nothing("called from another folder", B, from_folder("below", "../r.yaml")),
    nothing("called from the folder above", B, from_folder("..", "copy/r.yaml")),
    nothing("called by an absolute path", B, from_folder("below", "{folder}/r.yaml")),
    nothing("called with a detour", B, named("./r.yaml")),
    nothing("options that change no job", B, say("--cache", "cache"),
            build_with("-j", "8", "--keep-going", "--allow-waiting", "--to", "package")),
    nothing("the whole project in another place", B, elsewhere),
    nothing("files of other programs beside it", B, write("Makefile", "all:\n"), write(".vscode/settings.json", "{}")),
)  # fmt: skip
