"""Statistics of repeated requests: their numbers, and the table for people."""

from engine.client import timed_requests
from engine.client.figures import Counters
from engine.client.model_metadata import ModelMetadata

ENTRY = ModelMetadata("whole", (), (), composing_models=("part",))
AFTER = {
    "whole": Counters(requests=2, executions=2, rows=2, total=6_000_000, queue=0),
    "part": Counters(requests=2, executions=1, rows=2, total=4_000_000, queue=1_000_000, compute_infer=2_000_000),
}


def test_what_the_server_does_not_account_for_is_the_networks_and_the_clients():
    statistics = timed_requests.statistics(ENTRY, {}, AFTER, [0.004, 0.006])
    assert list(statistics.models) == ["whole", "part"]
    assert (statistics.client_ms, statistics.network_and_client_ms) == (5.0, 2.0)
    assert timed_requests.statistics(ENTRY, {}, {}, [0.004]).network_and_client_ms == 4.0


def test_the_table_has_a_row_a_model_and_what_the_client_saw_last():
    head, whole, part, network, client = timed_requests.table(
        ENTRY, timed_requests.statistics(ENTRY, {}, AFTER, [0.005])
    )
    assert head == ("ms of a request", "total", "queue", "input", "infer", "output", "requests", "runs")
    assert whole == ("whole", "3.000", "0.000", "0.000", "0.000", "0.000", "2", "2")
    assert part == ("  part", "2.000", "0.500", "0.000", "1.000", "0.000", "2", "1")
    assert network == ("network and client", "2.000")
    assert client == ("as the client saw", "5.000")
