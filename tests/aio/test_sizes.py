from __future__ import annotations

from tests.builds import Build


def test_an_item_takes_more_memory_than_its_content(build: Build) -> None:
    size_of = build.module("weirpool.aio.sizes").size_of
    payloads = build.module("weirpool.payload")
    least = build.module("weirpool.account").ITEM_BYTES
    assert size_of(payloads.Payload(b"data")) == least + 4
    assert size_of(payloads.Payload(b"data", b"metadata")) == least + 12
    assert size_of(payloads.MetadataPush(b"metadata")) == least + 8


def test_items_of_a_run_share_a_buffer(build: Build) -> None:
    size_of = build.module("weirpool.aio.sizes").size_of
    payloads = build.module("weirpool.payload")
    run = payloads.PayloadRun.of([payloads.Payload(b"data")] * 100)
    assert run.size < size_of(run) < 100 * size_of(payloads.Payload(b"data"))
