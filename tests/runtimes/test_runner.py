from engine.runtimes import runner
from engine.runtimes.runner import Tally


def test_a_tally_is_a_mapping_of_multiplications_and_counts_operators():
    counts = Tally()
    counts.add("Conv", "int8", 10)
    counts.add("Conv", "fp32", 5)
    counts.add("MatMul", "int8", 1)
    counts.add("MatMul", "int8", 1, seen=True)
    assert counts == {"int8": 12, "fp32": 5}
    assert runner.operators(counts) == {"Conv": {"int8": 1, "fp32": 1}, "MatMul": {"int8": 1}}
    assert runner.operators({"int8": 12}) == {}, "a plain mapping has no operators"
