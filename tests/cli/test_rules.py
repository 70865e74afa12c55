from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, Weirpool, assert_one_line, serving
from weirpool.protocols import PROTOCOLS
from weirpool.testing import PUBLISHER_RULES

STREAMS = ("--finite", "count=6", "--count", "6", "--endless", "count=1000000", "--empty", "count=0")
QUICK = ("--settle", "0.02")


def test_live_server_keeps_the_rules(weirpool: Weirpool, server: str) -> None:
    result = weirpool("rules", server, *STREAMS, *QUICK, "--streams", "50")
    assert (result.code, result.err) == (0, "")
    lines = result.out.decode().splitlines()
    assert [line.split()[1] for line in lines] == list(PUBLISHER_RULES)
    # Only `--failing` is missing.
    assert [line.split()[1] for line in lines if " kept: " not in line] == ["1.4"]


@pytest.mark.parametrize("protocol", ["reactive-streams", "rsocket"])
def test_chosen_rules_are_printed_as_json(weirpool: Weirpool, protocol: str) -> None:
    with serving(f"{INTEROP}:service", f"{protocol}+tcp://127.0.0.1:0") as (_, urls):
        result = weirpool("rules", urls[0], *STREAMS, *QUICK, "--rule", "1.10", "--rule", "3.17", "--json")
    assert result.code == 0
    assert [(each["rule"], each["outcome"], each["why"]) for each in result.objects] == [
        ("1.10", "kept", ""),
        ("3.17", "kept", ""),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_is_checked(weirpool: Weirpool, protocol: str) -> None:
    # River's handlers are typed.
    route, number = ("interop.count", '{{"n":{}}}') if protocol == "river" else ("count", "{}")
    streams = (f"{route}={number.format(n)}" for n in (6, 100_000_000, 0))
    options = [each for pair in zip(("--finite", "--endless", "--empty"), streams, strict=True) for each in pair]
    with serving(f"{INTEROP}:service", f"{protocol}+tcp://127.0.0.1:0") as (_, urls):
        result = weirpool("rules", urls[0], *options, "--count", "6", *QUICK, "--streams", "50", "--json")
    assert (result.code, result.err) == (0, "")
    outcomes = {each["rule"]: each["outcome"] for each in result.objects}
    assert tuple(outcomes) == PUBLISHER_RULES
    kept = {rule for rule, outcome in outcomes.items() if outcome == "kept"}
    assert kept == ({"1.2", "1.5", "1.8", "1.9", "3.12"} if protocol == "river" else {*PUBLISHER_RULES} - {"1.4"})


@pytest.mark.parametrize(
    ("protocol", "fault", "rule", "why"),
    [
        ("rsocket", "ends twice", "1.7", "a frame arrived on a stream after its end"),
        ("reactivesocket-0.0", "two threads", "1.3", "the items or their order are different"),
        ("reactive-streams", "no onSubscribe", "1.9", "the connection ended"),
        ("river", "closes instead of failing", "1.4", "the connection ended"),
    ],
)
def test_broken_rule_is_exit_code_1(weirpool: Weirpool, protocol: str, fault: str, rule: str, why: str) -> None:
    with wrong_publisher(protocol, fault) as url:
        streams = [f"--{name}=faulty.{name}" for name in ("finite", "failing", "endless", "empty")]
        result = weirpool("rules", url, *streams, "--count", "6", *QUICK, "--rule", rule)
    assert (result.code, result.err) == (1, "")
    assert result.out.decode().startswith(f"rule {rule} broken: ") and why in result.out.decode()


@contextmanager
def wrong_publisher(protocol: str, fault: str) -> Iterator[str]:
    """Serve with a fault in a process of its own; yield the URL."""
    program = [sys.executable, "-m", "tests.testing.strange", protocol, fault]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--count", "7"), "the finite stream 'count' has 6 items, not 7; mend the options that describe"),
        (
            ("--count", "6", "--failing", "nobody"),
            "the failing stream 'nobody' failed before its first item: [0x202] no",
        ),
        (("--count", "6", "--endless", "count=9"), "the endless stream 'count' ended after 9 items"),
    ],
)
def test_wrong_description_is_no_broken_rule(
    weirpool: Weirpool, server: str, options: tuple[str, ...], what: str
) -> None:
    result = weirpool("rules", server, "--finite", "count=6", *options)
    assert (result.code, result.out) == (2, b"")
    assert what in result.err
    assert_one_line(result)


def test_missing_streams_are_named(weirpool: Weirpool, server: str) -> None:
    result = weirpool("rules", server, "--finite", "count=6", "--count", "6", "--rule", "1.4", "--rule", "1.8")
    assert (result.code, result.lines) == (
        0,
        [
            b"rule 1.4 skipped: it needs a failing stream, and none is named",
            b"rule 1.8 skipped: it needs an endless stream, and none is named",
        ],
    )


def test_server_of_something_else_is_exit_code_3(weirpool: Weirpool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        url, patience = f"rsocket+tcp://{place}", ("--patience", "0.1")
        result = weirpool("rules", url, "--finite", "count=6", "--count", "6", *patience)
    assert result.code == 3
    assert f"tcp://{place} answers no request; does it speak rsocket there?" in result.err
    assert_one_line(result)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--rule", "2.1"), "--rule 2.1 is not a rule of publishers; use one of 1.1, "),
        (("--rule", "9.9"), "--rule 9.9 is not a rule of publishers"),
        (("--count", "3"), "--count"),
    ],
)
def test_wrong_use_is_one_line(weirpool: Weirpool, server: str, arguments: tuple[str, ...], what: str) -> None:
    result = weirpool("rules", server, "--finite", "count=6", "--count", "6", *arguments)
    assert result.code == 2
    assert what in result.err
    assert_one_line(result)


def test_missing_server_is_exit_code_3(weirpool: Weirpool) -> None:
    result = weirpool("rules", "rsocket+tcp://127.0.0.1:1", "--finite", "count=6", "--count", "6", "--rule", "1.1")
    assert result.code == 3
    assert_one_line(result)
