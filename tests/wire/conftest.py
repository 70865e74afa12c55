"""Fixtures for tests of frames: the modules of each build, by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build


class Wire:
    """The modules of `weirpool.wire` of one build, and the top files that they use."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.errors: Any = build.module("weirpool.errors")
        self.payload: Any = build.module("weirpool.payload")
        self.buffers: Any = build.module("weirpool.wire.buffers")
        self.codec: Any = build.module("weirpool.wire.rsocket.codec")
        self.columns: Any = build.module("weirpool.wire.columns")
        self.dump: Any = build.module("weirpool.wire.rsocket.dump")
        self.fields: Any = build.module("weirpool.wire.fields")
        self.frames: Any = build.module("weirpool.wire.rsocket.frames")
        self.framing: Any = build.module("weirpool.wire.framing")
        self.layouts: Any = build.module("weirpool.wire.rsocket.layouts")
        self.packing: Any = build.module("weirpool.wire.rsocket.packing")
        self.rows: Any = build.module("weirpool.wire.rows")
        self.v1: Any = self.codec.Codec()
        self.v02: Any = self.codec.Codec(self.layouts.REACTIVESOCKET_V02)
        self.v00: Any = build.module("weirpool.wire.rsocket.v00").ReactiveSocketV00()

    def run(self, items: list[tuple[bytes, bytes | None]]) -> Any:
        """Return a run of items, which are pairs of data and metadata."""
        return self.payload.PayloadRun.of([self.payload.Payload(*item) for item in items])

    def items(self, run: Any) -> list[tuple[bytes, bytes | None]]:
        """Return the items of a run."""
        return [(item.data, item.metadata) for item in run.payloads()]


@pytest.fixture(scope="session")
def wire(build: Build) -> Wire:
    """Return the modules of each build in turn."""
    return Wire(build)


@pytest.fixture(scope="session")
def wires(builds: dict[str, Build]) -> dict[str, Wire]:
    """Return the modules of all available builds by name."""
    return {name: Wire(build) for name, build in builds.items()}
