from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from weirpool import LocalError
from weirpool.aio.strategies import Failures, LeastLoaded, PeakEwma, RoundRobin, Strategy, strategy_named


@dataclass
class Node:
    """A candidate whose load a test sets."""

    outstanding: int = 0
    lease: int | None = None
    latency: PeakEwma = field(default_factory=lambda: PeakEwma(10.0))
    failures: Failures = field(default_factory=lambda: Failures(10.0))

    @classmethod
    def that_takes(cls, seconds: float, outstanding: int = 0) -> Node:
        node = cls(outstanding)
        node.latency.observe(seconds, 0.0)
        return node


# The average.


def test_latency_is_zero_at_first() -> None:
    assert PeakEwma(10.0).seconds(1e9) == 0.0


def test_slower_response_counts_at_once() -> None:
    latency = PeakEwma(10.0)
    latency.observe(0.001, 0.0)
    latency.observe(2.0, 0.1)
    assert latency.seconds(0.1) == 2.0


def test_average_halves_within_the_half_life() -> None:
    latency = PeakEwma(10.0)
    latency.observe(4.0, 0.0)
    latency.observe(3.0, 10.0)
    assert latency.seconds(10.0) == pytest.approx(3.5)
    for second in range(11, 200):
        latency.observe(1.0, float(second))
    assert latency.seconds(199.0) == pytest.approx(1.0, abs=1e-4)


def test_average_decays_without_requests() -> None:
    latency = PeakEwma(10.0)
    latency.observe(2.0, 0.0)
    assert latency.seconds(20.0) == pytest.approx(0.5)
    assert latency.seconds(1e9) == 0.0


def test_canceled_response_raises_the_latency() -> None:
    latency = PeakEwma(10.0)
    latency.observe(1.0, 0.0)
    latency.exceed(0.1, 0.0)
    assert latency.seconds(0.0) == 1.0
    latency.exceed(0.1, 10.0)
    assert latency.seconds(10.0) == 0.5
    latency.exceed(5.0, 10.0)
    assert latency.seconds(10.0) == 5.0


def test_a_clock_that_goes_back_does_no_harm() -> None:
    latency = PeakEwma(10.0)
    latency.observe(1.0, 100.0)
    assert latency.seconds(0.0) == 1.0
    failures = Failures(10.0)
    failures.failed(100.0, 100.0)
    assert failures.factor(0.0) == 2.0


# Failures.


def test_each_failure_doubles_the_factor() -> None:
    failures = Failures(10.0)
    assert failures.factor(0.0) == 1.0
    for _ in range(10):
        failures.failed(0.0, 0.0)
    assert failures.factor(0.0) == 1024.0
    failures.succeeded(0.0)
    assert failures.factor(0.0) == 32.0


def test_factor_of_failures_decays_without_requests() -> None:
    failures = Failures(10.0)
    for _ in range(1_000):
        failures.failed(0.0, 0.0)
    assert failures.factor(0.0) == 2.0**32
    assert failures.factor(10.0) == 2.0**16
    assert failures.factor(500.0) == pytest.approx(1.0)


def test_success_counts_from_its_own_time() -> None:
    failures = Failures(10.0)
    for _ in range(8):
        failures.failed(0.0, 0.0)
    failures.succeeded(10.0)
    assert failures.factor(10.0) == 2.0**2
    assert failures.factor(20.0) == 2.0


def test_requests_that_fail_together_are_one_failure() -> None:
    failures = Failures(10.0)
    for _ in range(200):
        failures.failed(1.0, 2.0)
    assert failures.factor(2.0) == 2.0
    failures.failed(2.0, 2.0)
    assert failures.factor(2.0) == 4.0


def test_successes_clear_earlier_failures() -> None:
    failures = Failures(1e9)
    for _ in range(32):
        failures.failed(0.0, 0.0)
    for _ in range(20):
        failures.succeeded(0.0)
    assert failures.factor(0.0) == 1.0


@pytest.mark.parametrize("measured", [True, False])
def test_node_that_fails_fast_is_not_preferred(measured: bool) -> None:
    good, bad = Node.that_takes(0.1), Node.that_takes(0.001) if measured else Node()
    for _ in range(10):
        bad.failures.failed(0.0, 0.0)
    strategy = LeastLoaded()
    assert {strategy.pick([good, bad], 0.0) for _ in range(10)} == {0}


# The strategies.


def test_round_robin_takes_each_in_turn() -> None:
    strategy, nodes = RoundRobin(), [Node(), Node(), Node()]
    assert [strategy.pick(nodes, 0.0) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_round_robin_takes_nodes_that_come_and_go() -> None:
    strategy, nodes = RoundRobin(), [Node(), Node(), Node()]
    for _ in range(3):
        strategy.pick(nodes, 0.0)
    assert strategy.pick(nodes[:1], 0.0) == 0
    assert [strategy.pick(nodes[:2], 0.0) for _ in range(3)] == [1, 0, 1]


def test_round_robin_passes_over_a_node_that_fails() -> None:
    strategy, nodes = RoundRobin(), [Node(), Node(), Node()]
    for _ in range(2):
        nodes[0].failures.failed(0.0, 0.0)
    picked = Counter(strategy.pick(nodes, 0.0) for _ in range(900))
    assert picked == {0: 100, 1: 400, 2: 400}


def test_round_robin_uses_all_nodes_if_all_fail() -> None:
    strategy, nodes = RoundRobin(), [Node(), Node()]
    for _ in range(100):
        for node in nodes:
            node.failures.failed(0.0, 0.0)
    assert Counter(strategy.pick(nodes, 0.0) for _ in range(10)) == {0: 5, 1: 5}


@pytest.mark.parametrize("strategy", [RoundRobin(), LeastLoaded()], ids=["round-robin", "least-loaded"])
def test_node_with_more_requests_left_gets_more(strategy: Strategy) -> None:
    nodes = [Node.that_takes(0.1), Node.that_takes(0.1)]
    nodes[0].lease, nodes[1].lease = 3, 1_000
    picked: Counter[int] = Counter()
    for _ in range(1_003):
        index = strategy.pick(nodes, 0.0)
        picked[index] += 1
        nodes[index].lease = (nodes[index].lease or 0) - 1
    assert picked == {0: 3, 1: 1_000}


@pytest.mark.parametrize("strategy", [RoundRobin(), LeastLoaded()], ids=["round-robin", "least-loaded"])
def test_requests_are_shared_as_leases_are(strategy: Strategy) -> None:
    nodes = [Node.that_takes(0.1), Node.that_takes(0.1)]
    nodes[0].lease, nodes[1].lease = 100, 300
    for _ in range(40):
        index = strategy.pick(nodes, 0.0)
        nodes[index].outstanding += 1
    assert 8 <= nodes[0].outstanding <= 12


@pytest.mark.parametrize("strategy", [RoundRobin(), LeastLoaded()], ids=["round-robin", "least-loaded"])
def test_node_without_a_lease_is_taken_last(strategy: Strategy) -> None:
    nodes = [Node.that_takes(0.1), Node.that_takes(0.1)]
    nodes[0].lease, nodes[1].lease = 0, 1
    assert {strategy.pick(nodes, 0.0) for _ in range(10)} == {1}
    nodes[1].lease = 0
    assert {strategy.pick(nodes, 0.0) for _ in range(10)} == {0, 1}


def test_least_loaded_takes_the_faster_node() -> None:
    strategy, nodes = LeastLoaded(), [Node.that_takes(0.1), Node.that_takes(0.01), Node.that_takes(0.2)]
    assert [strategy.pick(nodes, 0.0) for _ in range(6)] == [1] * 6


def test_least_loaded_weighs_latency_by_what_is_under_way() -> None:
    strategy, nodes = LeastLoaded(), [Node.that_takes(0.1), Node.that_takes(0.03)]
    picked = []
    for _ in range(8):
        picked.append(strategy.pick(nodes, 0.0))
        nodes[picked[-1]].outstanding += 1
    # 0.03 times 1, 2, 3 is less than 0.1; then they share as 3 to 1.
    assert picked[:4] == [1, 1, 1, 0]
    assert Counter(picked) == {1: 6, 0: 2}


def test_least_loaded_lets_equals_take_turns() -> None:
    strategy, nodes = LeastLoaded(), [Node.that_takes(0.1), Node.that_takes(0.1)]
    assert [strategy.pick(nodes, 0.0) for _ in range(4)] == [0, 1, 0, 1]


def test_unmeasured_node_gets_one_request() -> None:
    strategy, nodes = LeastLoaded(), [Node.that_takes(0.1, outstanding=5), Node()]
    assert strategy.pick(nodes, 0.0) == 1
    nodes[1].outstanding = 1
    assert [strategy.pick(nodes, 0.0) for _ in range(3)] == [0, 0, 0]


def test_node_whose_first_request_failed_gets_another_chance() -> None:
    strategy, bad, good = LeastLoaded(), Node(), Node.that_takes(0.1)
    bad.failures.failed(0.0, 0.0)
    good.outstanding = 1
    now = 0.0
    while strategy.pick([bad, good], now) != 0:
        now += 1.0
        good.latency.observe(0.1, now)
    assert now < 20.0


def test_a_slow_node_gets_another_chance() -> None:
    strategy, slow, fast = LeastLoaded(), Node.that_takes(1.0), Node.that_takes(0.1)
    now = 0.0
    while strategy.pick([slow, fast], now) != 0:
        now += 1.0
        fast.latency.observe(0.1, now)
    assert 30.0 < now < 40.0  # more than three half-lives are a tenth


@pytest.mark.parametrize("leases", [(10, 10), (10, None)])
def test_nodes_with_equal_weights_take_turns(leases: tuple[int | None, int | None]) -> None:
    nodes = [Node(lease=lease) for lease in leases]
    strategy = RoundRobin()
    assert [strategy.pick(nodes, 0.0) for _ in range(6)] == [0, 1, 0, 1, 0, 1]
    # Without requests in progress, both have the same load.
    strategy = LeastLoaded()
    assert [strategy.pick(nodes, 0.0) for _ in range(6)] == [0, 1, 0, 1, 0, 1]


def test_node_that_failed_once_gets_half_of_its_turns() -> None:
    good, bad = Node(), Node()
    bad.failures.failed(0.0, 0.0)
    strategy = RoundRobin()
    picks = [strategy.pick([good, bad], 0.0) for _ in range(30)]
    assert picks.count(1) == 10


def test_healthy_node_is_measured_before_one_that_has_failed() -> None:
    good, bad = Node(), Node()
    bad.failures.failed(0.0, 0.0)
    strategy = LeastLoaded()
    assert {strategy.pick([good, bad], 0.0) for _ in range(10)} == {0}
    fast, slow = Node.that_takes(0.01), Node.that_takes(1.0)
    assert {strategy.pick([fast, slow, good], 0.0) for _ in range(10)} == {2}
    assert {strategy.pick([fast, slow, bad], 0.0) for _ in range(10)} == {0}


def test_strategies_have_names() -> None:
    assert isinstance(strategy_named("round-robin"), RoundRobin)
    assert isinstance(strategy_named("least-loaded"), LeastLoaded)
    with pytest.raises(LocalError, match="'fastest'; use one of round-robin, least-loaded"):
        strategy_named("fastest")
