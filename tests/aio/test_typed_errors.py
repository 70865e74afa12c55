"""Errors of handlers, over every protocol: their class, code, message and extras arrive as they were raised."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pydantic
import pytest

from tests.aio.protocols import PROTOCOLS, RIVER, serving
from weirpool import ApplicationError, Canceled, Invalid, Peer, Rejected, Service, TypedError, typed


class Symbol(msgspec.Struct):
    name: str


class Limit(pydantic.BaseModel):
    max_count: int = pydantic.Field(alias="maxCount")


class Unknown(TypedError, code="UNKNOWN"):
    extras: Symbol


class TooMany(TypedError, code="TOO_MANY"):
    extras: Limit


class Closed(TypedError, code="CLOSED"):
    """Has no extras."""


TYPED = [Unknown, TooMany, Closed]
RAISED: list[ApplicationError] = [
    Unknown("nobody knows \u00fc", Symbol("ACME")),
    Unknown("no extras"),
    TooMany("slower", Limit(maxCount=3)),
    Closed("at night"),
    Closed(),
    Rejected(message="busy"),
    Canceled(message="too late"),
    Invalid(message="no such date"),
    ApplicationError(message="failed"),
    ApplicationError(message="[0x301] looks like a code"),
    ApplicationError(message='{"code": "CLOSED"'),
    ApplicationError(0x301, "mine"),
    ApplicationError(0x301),
    ApplicationError(),
    Rejected("BUSY", "with a code"),
    Canceled("LATE", "with a code"),
    Invalid("WRONG", "with a code"),
    ApplicationError("MINE", "with a code"),
    Invalid(message="with data", data=b'{"x":2}'),
    ApplicationError(0x301, "with data", b'{"x":2}'),
    ApplicationError("MINE", "with data", b'{"x":2}'),
]


def make_service() -> Service:
    service = Service()

    @service.call("e.call", errors=TYPED)
    async def fail(number: int) -> int:
        raise RAISED[number]

    @service.stream("e.stream", errors=TYPED)
    async def fail_later(number: int) -> AsyncIterator[int]:
        yield number
        raise RAISED[number]

    @service.call("e.secret")
    async def fail_secretly(number: int) -> int:
        raise ValueError("a secret")

    return service


async def caught(peer: Peer, kind: str, number: int) -> ApplicationError:
    """Return the error of a call or of a stream."""
    with pytest.raises(ApplicationError) as error:
        if kind == "call":
            await typed(peer).call("e.call", number, errors=TYPED)
        else:
            async with typed(peer).stream("e.stream", number, returns=int, errors=TYPED) as items:
                assert [item async for item in items] == [number]
    return error.value


def expected_of(error: ApplicationError, protocol: str) -> tuple[Any, ...]:
    """Return the class, code, message and extras of an error at the client."""
    cls: type[ApplicationError] = type(error)
    code, message = error.code, error.message
    own_code = isinstance(code, str) and not isinstance(error, TypedError)
    if protocol in RIVER:
        # River has no numbers for these, but words.
        code = (
            {Rejected: "INVALID_REQUEST", Invalid: "INVALID_REQUEST", Canceled: "CANCEL"}.get(cls, code)
            if not own_code
            else code
        )
        if own_code and cls in (Canceled, Invalid):
            # Its errors have only a code.
            cls = ApplicationError
    elif error.data != message.encode() and not isinstance(error, TypedError):
        # One field on the wire.
        code = code if isinstance(code, int) else 0x201
        message = error.data.decode()
    elif own_code:
        message = str(error)
        code = {Rejected: 0x202, Canceled: 0x203, Invalid: 0x204}.get(cls, 0x201)
    return cls, code, message, getattr(error, "extras", None)


@pytest.mark.parametrize("kind", ["call", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_error_arrives_as_it_was_raised(protocol: str, kind: str) -> None:
    async with serving(make_service(), protocol) as peer:
        for number, error in enumerate(RAISED):
            got = await caught(peer, kind, number)
            assert (type(got), got.code, got.message, getattr(got, "extras", None)) == expected_of(error, protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_mismatch_arrives_as_invalid_with_its_problems(protocol: str) -> None:
    async with serving(make_service(), protocol) as peer:
        with pytest.raises(Invalid) as error:
            await typed(peer).call("e.call", "text")
        if protocol not in RIVER:
            problems = json.loads(error.value.data)["errors"]
            assert problems == [{"path": "", "message": "Expected `int`, got `str`"}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_route_without_a_handler_is_rejected(protocol: str) -> None:
    async with serving(make_service(), protocol) as peer:
        with pytest.raises(Rejected, match=r"no \w+ handler is named 'e\.other'"):
            await typed(peer).call("e.other", 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_other_exceptions_stay_secret(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(make_service(), protocol) as peer:
        with pytest.raises(ApplicationError) as error, caplog.at_level(logging.CRITICAL):
            await typed(peer).call("e.secret", 1)
    assert "secret" not in str(error.value)
    assert type(error.value) is ApplicationError
