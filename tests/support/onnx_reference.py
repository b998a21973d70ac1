"""ONNX's reference evaluator as a runtime: slow, and what the standard says."""

from typing import ClassVar

from engine.step import Runner, Runtime, StepError


class OnnxReference(Runtime):
    """ONNX's reference evaluator."""

    name: ClassVar[str] = "onnx-reference"
    title: ClassVar[str] = "ONNX's reference evaluator"
    rival_of: ClassVar[str | None] = "exported"  # it can also be measured beside others
    rival_precisions: ClassVar[tuple[str, ...]] = ("fp32",)

    def tools(self, execution):
        return ("numpy", "onnx")

    def rival_tools(self, *, library):
        return ("numpy", "onnx")

    def runner(self, directory, execution, *, name="built", threads=0, new_tokens=None):
        from onnx.reference import ReferenceEvaluator

        if not (directory / "model.onnx").is_file():
            raise StepError("there is no model.onnx to evaluate", [str(directory)])
        session = ReferenceEvaluator(str(directory / "model.onnx"))

        def run(inputs):
            return dict(zip(session.output_names, session.run(None, dict(inputs)), strict=True))

        return Runner(name, run, lambda inputs: lambda: session.run(None, dict(inputs)))

    def rival(self, original, *, name, precision, execution, threads):
        return self.runner(original.exported, execution, name=name)
