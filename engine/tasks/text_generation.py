"""Text generation: a decoder-only model continues a text."""

from engine.tasks.task import Generates, Task

TASK = Task(
    name="text-generation",
    usual_models=("llama", "qwen3", "gpt2", "opt"),
    auto_class="AutoModelForCausalLM",
    generates=Generates.CONTINUES,
    parts=("generate", "stream"),
    example=("Once upon a time",),
)
