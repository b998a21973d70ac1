"""Edits of tasks, in a copy of the program's source tree: each counts for the jobs whose recipe is for it."""

from mutations.actions import append, edit, write
from mutations.mutation import changes, nothing, split

SOURCE, RECIPE = "source", "task in recipe"
_EDIT = "\n_EDITED = 1\n"
_NEW = '''"""Captioning."""

from engine.tasks.task import Task

TASK = Task(name="captioning")
'''
_LOADS = "export reference validate package"
"""What asks a task how its model is loaded, asked, compared and packaged."""


def _edited(project: str, file: str, jobs: str):
    causes, spreads = split(jobs, "code")
    return changes(
        f"{file} edited, project: {project}", project, append(f"src/engine/{file}.py", _EDIT),
        causes=causes, spreads=spreads,
    )  # fmt: skip


TABLE = (
    _edited(RECIPE, "tasks/text_classification", _LOADS),
    _edited(RECIPE, "kit/triton/answers/classes", "package"),
    nothing("tasks and answers edited that are of no use to the recipe", RECIPE,
            *(append(f"src/engine/{file}.py", _EDIT) for file in ("tasks/question_answering", "tasks/text_generation",
            "tasks/image_classification", "kit/triton/answers/spans"))),
    # Where only the checkpoint says the task, each counts that one can name.
    _edited(SOURCE, "tasks/text_classification", _LOADS),
    _edited(SOURCE, "tasks/question_answering", _LOADS),
    _edited(SOURCE, "kit/triton/answers/spans", "package"),
    _edited(SOURCE, "tasks/heads", "fetch export reference quantize validate bench package"),
    nothing("another docstring of a task", RECIPE, edit("src/engine/tasks/text_classification.py", '"""', '"""Anew: ')),
    *(
        nothing(f"a new task that no recipe names, project: {project}", project,
                write("src/engine/tasks/captioning.py", _NEW))
        for project in (RECIPE, SOURCE)
    ),
)  # fmt: skip
