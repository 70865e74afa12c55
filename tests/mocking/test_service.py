from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from weirpool import ApplicationError, LocalError
from weirpool.aio.peer import Peer
from weirpool.kinds import Kind
from weirpool.mocking.service import MockOptions, mock_service

NUMBER = {"output": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
CODED = NUMBER | {"errors": {"anyOf": [{"properties": {"code": {"const": code}}} for code in ("CANCEL", "NO_MONEY")]}}
PROCEDURES: dict[str, tuple[Kind, dict[str, Any]]] = {
    "s.one": (Kind.CALL, NUMBER),
    "s.coded": (Kind.CALL, CODED),
    "s.many": (Kind.STREAM, NUMBER),
    "s.sum": (Kind.UPLOAD, NUMBER),
    "s.each": (Kind.CHANNEL, NUMBER),
    "s.log": (Kind.FIRE, {}),
}


@asynccontextmanager
async def mocked(protocol: str = "rsocket", **options: Any) -> AsyncIterator[Peer]:
    service = mock_service(PROCEDURES, MockOptions(**{"rate": None, **options}))
    async with weirpool.serve(service, f"{protocol}+memory://mock") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            yield peer


async def test_every_kind_answers_with_its_schema() -> None:
    async with mocked(items=3) as peer:
        found = [(await peer.call("s.one")).data, (await peer.upload("s.sum", b"", [b"1"])).data]
        found += [item.data async for item in peer.stream("s.many")]
        found += [item.data async for item in peer.channel("s.each", b"", [b"1", b"2"])]
        await peer.fire("s.log")
    assert len(found) == 1 + 1 + 3 + 2
    assert all(isinstance(json.loads(data)["n"], int) for data in found)


async def test_encoding_is_that_of_the_connection() -> None:
    async with mocked("river") as peer:
        assert isinstance((await weirpool.typed(peer).call("s.one"))["n"], int)


async def test_same_seed_gives_the_same_answers() -> None:
    found = []
    for seed in (1, 1, 2):
        async with mocked(seed=seed) as peer:
            found.append([(await peer.call("s.one")).data for _ in range(5)])
    assert found[0] == found[1] != found[2]
    assert len(set(found[0])) > 1


async def test_part_of_the_requests_fails() -> None:
    failed = 0
    async with mocked(errors=0.5) as peer:
        for _ in range(100):
            try:
                await peer.call("s.one")
            except ApplicationError as error:
                assert error.code == 0x301
                failed += 1
    assert 25 < failed < 75


async def test_errors_have_the_codes_of_the_schema() -> None:
    async with mocked("river", errors=1) as peer:
        with pytest.raises(ApplicationError) as failed:
            await peer.call("s.coded")
    assert failed.value.code == "NO_MONEY"


async def test_streams_keep_their_rate() -> None:
    async with mocked(rate=100, latency=0.05) as peer:
        async with peer.stream("s.many") as stream, _seconds() as elapsed:
            items = aiter(stream)
            for _ in range(6):
                await anext(items)
    assert elapsed[0] > 0.05 + 0.04


@asynccontextmanager
async def _seconds() -> AsyncIterator[list[float]]:
    import asyncio

    clock = asyncio.get_running_loop().time
    found: list[float] = []
    began = clock()
    yield found
    found.append(clock() - began)


def test_mistakes_of_a_schema_are_found_before_serving() -> None:
    with pytest.raises(LocalError, match="unknown type"):
        mock_service({"a.b": (Kind.CALL, {"output": {"type": "dance"}})}, MockOptions())


# THREATS 110
def test_all_first_values_have_one_budget() -> None:
    schema = {"output": {"type": "array", "minItems": 2_000, "maxItems": 2_000, "items": {"type": "integer"}}}
    few = {f"s.r{number}": (Kind.CALL, schema) for number in range(10)}
    assert mock_service(few, MockOptions()).routes()
    many = {f"s.r{number}": (Kind.CALL, schema) for number in range(100)}
    with pytest.raises(LocalError, match="the first value of each route takes more than"):
        mock_service(many, MockOptions())


@pytest.mark.parametrize(
    "errors", [5, [], {"anyOf": 5}, {"anyOf": [5]}, {"properties": 5}, {"properties": {"code": {"const": "A\x1b"}}}]
)
def test_malformed_errors_have_no_codes(errors: Any) -> None:
    assert mock_service({"s.a": (Kind.CALL, NUMBER | {"errors": errors})}, MockOptions(errors=1.0)).routes()
