from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import weirpool
from tests.testing.faulty import COUNT, SETTLE, faulty
from tests.testing.serving import FAMILY, assert_kept
from weirpool import ApplicationError, LocalError, Payload, Service, Settings
from weirpool.protocols import PROTOCOLS
from weirpool.testing import PUBLISHER_RULES, RULES, Published, check_publisher
from weirpool.testing.ends import PATIENCE


def service() -> Service:
    service = Service()

    @service.stream("tests.plain")
    def plain(request: Payload) -> Iterator[bytes]:
        for number in range(int(request.data)):
            yield b"%d" % number

    @service.stream("tests.task")
    async def task(request: Payload) -> AsyncIterator[bytes]:
        for number in range(int(request.data)):
            yield b"%d" % number

    @service.stream("tests.plain_failing")
    def plain_failing(request: Payload) -> Iterator[bytes]:
        yield b"0"
        raise ApplicationError(message="failed as it should")

    @service.stream("tests.task_failing")
    async def task_failing(request: Payload) -> AsyncIterator[bytes]:
        yield b"0"
        raise ApplicationError(message="failed as it should")

    return service


@asynccontextmanager
async def sound(protocol: str, handler: str, transport: str = "memory://rules") -> AsyncIterator[Published]:
    settings = Settings(max_streams=50)
    async with weirpool.serve(service(), f"{protocol}+{transport}", settings=settings) as server:
        yield Published(
            url=server.urls[0],
            finite=(handler, b"6"),
            count=COUNT,
            failing=(f"{handler}_failing", b""),
            endless=(handler, b"1000000000"),
            empty=(handler, b"0"),
            streams=50,
            settle=SETTLE,
        )


@pytest.mark.parametrize("rule", PUBLISHER_RULES)
@pytest.mark.parametrize("handler", ["tests.plain", "tests.task"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_our_publishers_keep_every_rule(protocol: str, handler: str, rule: str) -> None:
    async with sound(protocol, handler) as published:
        [result] = await check_publisher(published, [rule])
        assert_kept(result, protocol)


@pytest.mark.parametrize("transport", ["tcp://127.0.0.1:0", "ws://127.0.0.1:0"])
async def test_they_do_so_over_a_network(transport: str) -> None:
    async with sound("rsocket", "tests.task", transport) as published:
        results = await check_publisher(published)
        assert [str(each) for each in results if each.outcome != "kept"] == []
        assert tuple(each.rule.number for each in results) == PUBLISHER_RULES


@pytest.mark.parametrize("protocol", FAMILY)
async def test_a_server_without_faults_keeps_every_rule(protocol: str) -> None:
    async with faulty(protocol) as published:
        results = await check_publisher(replace(published, patience=PATIENCE))
        assert [str(each) for each in results if each.outcome != "kept"] == []


async def test_unsupported_rules_are_skipped() -> None:
    async with sound("rsocket", "tests.plain") as published:
        less = replace(published, failing=None, endless=None)
        results = {each.rule.number: each for each in await check_publisher(less)}
        assert {number for number, each in results.items() if each.outcome != "kept"} == {"1.4", "1.8", "3.12", "3.16"}
        assert results["1.4"].outcome == "skipped"


async def test_unknown_rules_and_other_sides_rules_raise() -> None:
    async with sound("rsocket", "tests.plain") as published:
        with pytest.raises(LocalError, match="no such rule"):
            await check_publisher(published, ["9.9"])
        with pytest.raises(LocalError, match="the other side"):
            await check_publisher(published, ["2.1"])
        with pytest.raises(LocalError, match="call stacks"):
            await check_publisher(published, ["3.3"])


def test_every_rule_of_a_publisher_has_its_check() -> None:
    assert set(PUBLISHER_RULES) == {number for number, rule in RULES.items() if rule.side == "publisher"}
