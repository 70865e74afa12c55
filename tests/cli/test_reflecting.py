"""Descriptions for other verbs."""

from __future__ import annotations

import json

import pytest

import weirpool
from tests.reflection.quotes import KINDS, service
from weirpool import LocalError, Metadata, NotDescribed, Settings
from weirpool.cli.connect_options import ConnectOptions
from weirpool.cli.reflecting import connecting, fetch, fetch_description, request_metadata
from weirpool.schema.codegen import generate_python
from weirpool.schema.procedures import read_schema

URL = "rsocket+memory://reflecting"
OPTIONS = ConnectOptions()


async def test_fetches_what_generates_a_client() -> None:
    async with weirpool.serve(service, URL, settings=Settings(reflection=True)):
        assert len((await fetch(URL, OPTIONS)).routes) == len(KINDS)
        schema = await fetch_description(URL, OPTIONS)
    assert "class Quotes:" in generate_python(read_schema(json.dumps(schema).encode()))


async def test_says_that_there_is_no_description() -> None:
    async with weirpool.serve(service, URL):
        with pytest.raises(NotDescribed):
            await fetch_description(URL, OPTIONS)


async def test_options_decide_over_the_default_of_data() -> None:
    async with weirpool.serve(service, URL):
        async with connecting(URL, OPTIONS, "application/json") as peer:
            assert peer.data_mime == "application/json"
        async with connecting(URL, ConnectOptions(data_mime="text/plain"), "application/json") as peer:
            assert peer.data_mime == "text/plain"


async def test_credentials_are_sent_with_the_request() -> None:
    seen: list[object] = []

    async def note(request: weirpool.Request, next: weirpool.Next) -> object:
        seen.append(Metadata.decode(request.payload.metadata).auth)
        return await next(request)

    guarded = weirpool.Service(interceptors=[note])
    async with weirpool.serve(guarded, URL, settings=Settings(reflection=True)):
        await fetch(URL, OPTIONS, "bearer:secret")
    assert seen == [weirpool.Bearer("secret")]


def test_credentials_need_composite_metadata() -> None:
    assert request_metadata(URL, OPTIONS, None) is None
    with pytest.raises(LocalError, match="--auth needs"):
        request_metadata("river+memory://x", OPTIONS, "bearer:secret")
