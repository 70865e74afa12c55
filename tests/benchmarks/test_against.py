"""Two trees run in turns, and what they took is put next to each other."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from benchmarks import __main__ as command
from benchmarks import against
from benchmarks.against import CASES, Comparison, choose, merged, run_round, table
from benchmarks.processes import Variant
from benchmarks.ratios import Verdict
from benchmarks.rounds import Runner


class Fake:
    """A worker for which each operation takes the same time; it notes its runs."""

    def __init__(self, name: str, seconds: float, runs: list[str]) -> None:
        self.name = name
        self.seconds = seconds
        self.runs = runs
        self.cpu = 0.0

    def ask(self, *scenario: Any) -> dict[str, float]:
        if not scenario:
            return {"cpu": self.cpu, "seconds": 0.0}
        self.runs.append(f"{self.name} {scenario[1]}")
        self.cpu += scenario[1] * self.seconds / 2
        return {"cpu": self.cpu, "seconds": scenario[1] * self.seconds}


class Served(Fake):
    """A server: it uses CPU while nobody asks it to run."""

    def ask(self, *scenario: Any) -> dict[str, float]:
        self.cpu += self.seconds * 1024
        return super().ask(*scenario)


def runner(name: str, seconds: float, runs: list[str]) -> Runner:
    client: Any = Fake(name, seconds, runs)
    server: Any = Served(name, seconds, runs)
    return Runner(Variant(name, "fake"), client, server, "calls", (), 1024, 1024)


def compare(name: str, factor: float, rounds: int = 7) -> tuple[Comparison, list[str]]:
    """Return a case that takes `factor` as long after a change, and its runs."""
    one, runs = Comparison(name, "plain"), []
    for turn in range(rounds):
        run_round(one, runner("B", 0.001, runs), runner("A", 0.001 * factor, runs), turn, 0.5)
    return one, runs


def test_round_runs_both_trees_in_turns_with_one_count() -> None:
    one, runs = compare("calls-64", 1.0, rounds=2)
    assert one.count % 1024 == 0
    # At first both look for their count; then each process runs once for nothing.
    chosen = [run.split()[0] for run in runs]
    assert "".join(chosen[-12:]) == "BABAAB" + "BAABBA"
    assert {run.split()[1] for run in runs[-12:]} == {str(one.count)}
    assert chosen.count("A") == chosen.count("B")


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.SAME), (1.1, Verdict.SLOWER), (0.8, Verdict.FASTER)])
def test_what_was_run_is_judged(factor: float, verdict: Verdict) -> None:
    one, _ = compare("calls-64", factor)
    assert {name: ratio.median for name, ratio in one.ratios().items()} == pytest.approx(
        {"time": factor, "client": factor, "server": factor}
    )
    assert one.before["time"] == pytest.approx([0.001] * 7)
    assert one.before["client"] == pytest.approx([0.0005] * 7)
    assert one.verdict is verdict


def test_one_slower_measure_is_enough() -> None:
    one, _ = compare("columns", 1.0)
    one.after["server"] = [2 * seconds for seconds in one.before["server"]]
    assert one.verdict is Verdict.SLOWER


def test_second_measurement_takes_the_place_of_the_first() -> None:
    (slow, _), (fine, _), (again, _) = compare("calls-1", 1.1), compare("items", 1.0), compare("calls-1", 1.0)
    found = merged([slow, fine], [again])
    assert [one.verdict for one in found] == [Verdict.SAME, Verdict.SAME]
    assert found[0].first is slow
    assert "measured again" in table(found)
    assert json.loads(json.dumps(found[0].as_object()))["first"]["verdict"] == "slower"


def test_all_cases_are_chosen_on_both_builds_unless_told_otherwise() -> None:
    assert [(one.build, one.name) for one in choose([], "both")] == [
        (build, name) for build in ("compiled", "plain") for name in CASES
    ]
    assert [(one.build, one.name) for one in choose(["items", "calls-1"], "plain")] == [
        ("plain", "calls-1"),
        ("plain", "items"),
    ]


@pytest.mark.parametrize("name", CASES)
def test_case_names_a_method_of_its_client(name: str) -> None:
    case = CASES[name]
    module = import_module(f"benchmarks.peers.{case.peer}")
    client = module.Client if hasattr(module, "Client") else import_module(module.connected.__module__).Client
    assert callable(getattr(client, case.method))
    assert module.serving and module.connected


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 1)])
def test_command_fails_when_something_is_slower(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [compare("items", factor)[0]]
    monkeypatch.setattr(command, "against", lambda *_: (found, {"before": "a", "after": "b"}))
    monkeypatch.setattr(command, "save", lambda *_, **__: "results")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--against", "HEAD~1", "items", "--build", "plain"])
    assert command.main() == code
    assert ("slower: items (plain)" in capsys.readouterr().out) == bool(code)


def test_command_refuses_a_case_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--against", "HEAD", "decode"])
    with pytest.raises(SystemExit):
        command.main()
    assert "unknown scenario: decode" in capsys.readouterr().err


def test_what_was_slower_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = iter([1.2, 1.0])
    measured: list[list[str]] = []

    def measure(wanted: list[Comparison], *_: Any) -> None:
        factor = next(factors)
        measured.append([one.name for one in wanted])
        for one in wanted:
            done, _ = compare(one.name, factor if one.name == "items" else 1.0)
            one.before, one.after = done.before, done.after

    tree = against.trees.Tree("tree", against.ROOT)
    monkeypatch.setattr(against, "measure", measure)
    monkeypatch.setattr(against.trees, "revision", lambda *_: tree)
    monkeypatch.setattr(against.trees, "working", lambda *_: tree)
    monkeypatch.setattr(against.trees, "check", lambda *_: None)
    found, _ = against.against("HEAD", choose(["calls-1", "items"], "plain"), 0.1, 7)
    assert measured == [["calls-1", "items"], ["items"]]
    assert [one.verdict for one in found] == [Verdict.SAME, Verdict.SAME]
