from __future__ import annotations

import pytest

from penstock.protocols import PROTOCOLS
from penstock.testing import PUBLISHER_RULES
from tests.cli.conftest import INTEROP, Penstock, assert_one_line, serving

STREAMS = ("--finite", "count=6", "--count", "6", "--endless", "count=1000000", "--empty", "count=0")
QUICK = ("--settle", "0.02")


def test_live_server_keeps_the_rules(penstock: Penstock, server: str) -> None:
    result = penstock("rules", server, *STREAMS, *QUICK, "--streams", "50")
    assert (result.code, result.err) == (0, "")
    lines = result.out.decode().splitlines()
    assert [line.split()[1] for line in lines] == list(PUBLISHER_RULES)
    # Only `--failing` is missing.
    assert [line.split()[1] for line in lines if " kept: " not in line] == ["1.4"]


@pytest.mark.parametrize("protocol", ["reactive-streams", "rsocket"])
def test_chosen_rules_are_printed_as_json(penstock: Penstock, protocol: str) -> None:
    with serving(f"{INTEROP}:service", f"{protocol}+tcp://127.0.0.1:0") as (_, urls):
        result = penstock("rules", urls[0], *STREAMS, *QUICK, "--rule", "1.10", "--rule", "3.17", "--json")
    assert result.code == 0
    assert [(each["rule"], each["outcome"], each["why"]) for each in result.objects] == [
        ("1.10", "kept", ""),
        ("3.17", "kept", ""),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_is_checked(penstock: Penstock, protocol: str) -> None:
    # River's handlers are typed.
    route, number = ("interop.count", '{{"n":{}}}') if protocol == "river" else ("count", "{}")
    streams = (f"{route}={number.format(n)}" for n in (6, 100_000_000, 0))
    options = [each for pair in zip(("--finite", "--endless", "--empty"), streams, strict=True) for each in pair]
    with serving(f"{INTEROP}:service", f"{protocol}+tcp://127.0.0.1:0") as (_, urls):
        result = penstock("rules", urls[0], *options, "--count", "6", *QUICK, "--streams", "50", "--json")
    assert (result.code, result.err) == (0, "")
    outcomes = {each["rule"]: each["outcome"] for each in result.objects}
    assert tuple(outcomes) == PUBLISHER_RULES
    kept = {rule for rule, outcome in outcomes.items() if outcome == "kept"}
    assert kept == ({"1.2", "1.5", "1.8", "1.9", "3.12"} if protocol == "river" else {*PUBLISHER_RULES} - {"1.4"})


def test_broken_rule_is_exit_code_1(penstock: Penstock, server: str) -> None:
    # It completes after 6 items, not after 7.
    result = penstock("rules", server, "--finite", "count=6", "--count", "7", *QUICK, "--rule", "1.5", "--rule", "1.1")
    assert result.code == 1
    assert result.out.decode().startswith("rule 1.5 broken: 6 items arrived instead of 7\nrule 1.1 kept: ")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--rule", "2.1"), "--rule 2.1 is not a rule of publishers; use one of 1.1, "),
        (("--rule", "9.9"), "--rule 9.9 is not a rule of publishers"),
        (("--count", "3"), "--count"),
    ],
)
def test_wrong_use_is_one_line(penstock: Penstock, server: str, arguments: tuple[str, ...], what: str) -> None:
    result = penstock("rules", server, "--finite", "count=6", "--count", "6", *arguments)
    assert result.code == 2
    assert what in result.err
    assert_one_line(result)


def test_missing_server_is_exit_code_3(penstock: Penstock) -> None:
    result = penstock("rules", "rsocket+tcp://127.0.0.1:1", "--finite", "count=6", "--count", "6", "--rule", "1.1")
    assert result.code == 3
    assert_one_line(result)
