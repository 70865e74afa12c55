"""The interop checks on replit-river: ``client.py VERSION TRANSPORT HOST PORT CUT_PORT`` prints one JSON object.

VERSION is the client of the package that runs: ``v1.1`` or ``v2.0``. ``interop/README.md`` describes the checks. Each
check uses its own connection. This runs in the environment of the package, without Weirpool.
"""

import asyncio
import itertools
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

from replit_river.client import Client as OldClient
from replit_river.error_schema import RiverError, RiverException
from replit_river.transport_options import ConnectionRetryOptions, TransportOptions
from replit_river.v2.client import Client as NewClient

CHECK_TIMEOUT = 30.0
ANSWER_TIMEOUT = 10.0
MEGABYTE = 1 << 20
CLIENTS = {"v1.1": OldClient, "v2.0": NewClient}
# Many attempts with short pauses, for the check whose connections are cut.
RETRIES = ConnectionRetryOptions(base_interval_ms=10, max_jitter_ms=10, attempt_budget_capacity=1000, max_retry=1000)
OPTIONS = TransportOptions(heartbeat_ms=1000, heartbeats_until_dead=2, session_disconnect_grace_ms=5000)
CUT = OPTIONS.model_copy(update={"connection_retry_options": RETRIES})
made = itertools.count()

version, _, host, port, cut_port = sys.argv[1:]


class Failure(RiverError):
    """An error with all its fields."""

    extras: object = None


def same(value):
    return value


class Peer:
    """A client of either version."""

    def __init__(self, client):
        self.client = client

    async def call(self, procedure, init, timeout=ANSWER_TIMEOUT):
        return await self.client.send_rpc(
            "interop", procedure, init, same, same, Failure.model_validate, timedelta(seconds=timeout)
        )

    async def upload(self, procedure, init, items):
        return await self.client.send_upload(
            "interop", procedure, init, items, same, same, same, Failure.model_validate
        )

    def stream(self, procedure, init):
        items = self.client.send_subscription("interop", procedure, init, same, same, Failure.model_validate)
        return aclosing(items)

    def channel(self, procedure, init, items):
        answers = self.client.send_stream("interop", procedure, init, items, same, same, same, Failure.model_validate)
        return aclosing(answers)

    async def alive(self):
        expect(await self.call("echo", {"data": "alive"}), {"data": "alive"}, "echo afterwards")


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {str(found)[:80]} instead of {str(wanted)[:80]}")


async def numbers(start, stop, pause=0.0) -> AsyncIterator[dict[str, int]]:
    for number in range(start, stop):
        if pause:
            await asyncio.sleep(pause)
        yield {"n": number}


async def of(items, field="n"):
    async with items as answers:
        return [answer[field] async for answer in answers]


@asynccontextmanager
async def connected(at=port, options=OPTIONS):
    async def place():
        return {"uri": f"ws://{host}:{at}/", "metadata": None}

    client = CLIENTS[version](place, f"river-py-{os.getpid()}-{next(made)}", "SERVER", options)
    await client.ensure_connected()
    try:
        yield Peer(client)
    finally:
        await client.close()


async def refused(answer, code):
    try:
        found = await answer
    except RiverException as error:
        expect(error.code, code, "code")
        return error
    raise AssertionError(f"an answer: {found}")


async def echo(peer):
    data = {"text": "h\u00e9llo \U0001f600", "list": [1, -2.5, None, True], "inner": {"$x": {}}}
    expect((await peer.call("echo", {"data": data}))["data"], data, "data")


async def echo_bytes(peer):
    expect((await peer.call("echo", {"data": b"\x00\xff\x01"}))["data"], b"\x00\xff\x01", "bytes")


async def echo_1mb(peer):
    expect(len((await peer.call("echo", {"data": "x" * MEGABYTE}))["data"]), MEGABYTE, "size")


async def count(peer):
    expect(await of(peer.stream("count", {"n": 1000})), list(range(1000)), "items")
    await peer.alive()


async def count_none(peer):
    expect(await of(peer.stream("count", {"n": 0})), [], "items")


async def count_cancel(peer):
    found = []
    async with peer.stream("count", {"n": 1_000_000}) as items:
        async for item in items:
            found.append(item["n"])
            if len(found) == 40:
                break
    expect(found, list(range(40)), "items")
    await peer.alive()


async def blob(peer):
    texts = await of(peer.stream("blob", {"number": 5, "size": 100_000}), "text")
    expect([len(text) for text in texts], [100_000] * 5, "sizes")


async def sum_(peer):
    expect(await peer.upload("sum", {"n": 1}, numbers(2, 101)), {"n": 5050}, "sum")


async def sum_none(peer):
    expect(await peer.upload("sum", {"n": 7}, numbers(0, 0)), {"n": 7}, "sum")


async def double(peer):
    expect(await of(peer.channel("double", {"n": 0}, numbers(1, 200))), list(range(0, 400, 2)), "items")


async def double_cancel(peer):
    found = 0
    async with peer.channel("double", {"n": 0}, numbers(1, 1000)) as items:
        async for _ in items:
            found += 1
            if found == 10:
                break
    await peer.alive()


async def fail(peer):
    error = await refused(peer.call("fail", {"n": 5}), "BOOM")
    expect(error.underlying_error, Failure(code="BOOM", message="boom", extras={"n": 5}), "error")
    await peer.alive()


async def fail_stream(peer):
    async with peer.stream("fail-stream", {"n": 2}) as items:
        found = [item async for item in items]
    wanted = [{"n": 0}, {"n": 1}, Failure(code="BOOM", message="boom", extras={"n": 2})]
    expect(found, wanted, "items, and the error after them")


async def errors_between(peer):
    async with peer.stream("gaps", {"n": 777}) as items:
        found = [item async for item in items]
    wanted = [{"n": 0}, {"n": 1}, Failure(code="BOOM", message="boom", extras={"n": 777}), {"n": 777}]
    expect(found, wanted, "items")
    await peer.alive()


async def unknown(peer):
    await refused(peer.call("nowhere", {}), "INVALID_REQUEST")
    await peer.alive()


async def invalid(peer):
    await refused(peer.call("slow", {"n": "x"}), "INVALID_REQUEST")
    await peer.alive()


async def slow(peer):
    answer = asyncio.ensure_future(peer.call("slow", {"n": 300}))
    await peer.alive()
    expect(answer.done(), False, "slow is over before a later echo")
    await answer


async def slow_cancel(peer):
    answer = asyncio.ensure_future(peer.call("slow", {"n": 10_000}, CHECK_TIMEOUT))
    await asyncio.sleep(0.05)
    answer.cancel()
    await peer.alive()


async def heartbeat(peer):
    await peer.alive()
    await asyncio.sleep(3.0)
    await peer.alive()


async def resume(peer):
    expect(await of(peer.channel("double", {"n": 0}, numbers(1, 300, 0.005))), list(range(0, 600, 2)), "items")


CHECKS = {
    "echo": echo,
    "echo-bytes": echo_bytes,
    "echo-1MB": echo_1mb,
    "count": count,
    "count-none": count_none,
    "count-cancel": count_cancel,
    "blob": blob,
    "sum": sum_,
    "sum-none": sum_none,
    "double": double,
    "double-cancel": double_cancel,
    "fail": fail,
    "fail-stream": fail_stream,
    "errors-between": errors_between,
    "unknown": unknown,
    "invalid": invalid,
    "slow": slow,
    "slow-cancel": slow_cancel,
    "heartbeat": heartbeat,
    "resume": resume,
}


async def result_of(name):
    where = (cut_port, CUT) if name == "resume" else (port, OPTIONS)
    try:
        async with asyncio.timeout(CHECK_TIMEOUT), connected(*where) as peer:
            await CHECKS[name](peer)
    except TimeoutError:
        return f"not done within {CHECK_TIMEOUT:.0f} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


async def main():
    results = {name: await result_of(name) for name in CHECKS}
    print(json.dumps({"peer": f"river-py-{version}", "role": "client", "checks": results}), flush=True)
    return 0 if set(results.values()) == {"ok"} else 1


if __name__ == "__main__":
    logging.disable()
    sys.exit(asyncio.run(main()))
