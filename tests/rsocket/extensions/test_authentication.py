from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import FrameError, LocalError
from weirpool.rsocket.extensions.authentication import Authentication, Bearer, Custom, Simple, decode, encode

TYPES = st.integers(2, 127) | st.text(st.characters(max_codepoint=127), min_size=1, max_size=128)
VALUES = (
    st.builds(Simple, st.text(max_size=40), st.text(max_size=40))
    | st.builds(Bearer, st.text(max_size=40))
    | st.builds(Custom, TYPES, st.binary(max_size=40))
)
SECRET = "s3cret"


@pytest.mark.parametrize(
    ("authentication", "data"),
    [
        (Simple("user", "pass"), "80000475736572" + "70617373"),
        (Simple("user", ""), "80000475736572"),
        (Simple("", "pass"), "80000070617373"),
        (Simple("", ""), "800000"),
        (Simple("zoë", "naïve"), "8000047a6fc3ab" + "6e61c3af7665"),
        (Simple("u" * 65_535, "p"), "80ffff" + "75" * 65_535 + "70"),
        (Bearer("token"), "81746f6b656e"),
        (Bearer(""), "81"),
        # The length of a name is written minus one.
        (Custom("x", b""), "0078"),
        (Custom("custom", b"\0\xff"), "05637573746f6d00ff"),
        (Custom("n" * 128, b"p"), "7f" + "6e" * 128 + "70"),
        (Custom(0x02, b"raw"), "82726177"),
        (Custom(0x7F, b""), "ff"),
        # A name that also has a number is kept.
        (Custom("simple", b""), "0573696d706c65"),
    ],
)
def test_each_type(authentication: Authentication, data: str) -> None:
    assert encode(authentication).hex() == data
    assert decode(bytes.fromhex(data)) == authentication


@given(VALUES)
def test_encoded_values_are_decoded(authentication: Authentication) -> None:
    assert decode(encode(authentication)) == authentication


@given(st.binary(max_size=40))
def test_junk_is_an_error_or_round_trips(junk: bytes) -> None:
    try:
        authentication = decode(junk)
    except FrameError:
        return
    assert encode(authentication) == junk


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "byte 0: the authentication type is missing"),
        ("0561", "byte 0: authentication type of 6 bytes runs past the end"),
        ("80", "byte 1: the authentication ends within the username's length"),
        ("8000", "byte 1: the authentication ends within the username's length"),
        ("80000461", "byte 1: a username of 4 bytes runs past the end"),
        ("80ffff61", "byte 1: a username of 65535 bytes runs past the end"),
        ("80000261ff61", "byte 4: the username is not valid UTF-8"),
        # The bytes of one letter on both sides of the boundary.
        ("800001c3ab", "byte 3: the username is not valid UTF-8"),
        ("80000161ff", "byte 4: the password is not valid UTF-8"),
        ("8161ff", "byte 2: the token is not valid UTF-8"),
    ],
)
def test_malformed_bytes_are_reported_with_their_offset(data: str, message: str) -> None:
    with pytest.raises(FrameError, match=f"^{message}"):
        decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("authentication", "message"),
    [
        (Simple("ü" * 32_768, SECRET), "the username has 65536 bytes"),
        (Simple("\ud800", SECRET), "the username must be"),
        (Simple("user", SECRET + "\ud800"), "the password must be"),
        (Simple("user", SECRET.encode()), "the password must be"),  # type: ignore[arg-type]
        (Bearer(SECRET + "\ud800"), "the token must be"),
        (Custom("", SECRET.encode()), "authentication type '' must be"),
        (Custom("é", SECRET.encode()), "authentication type 'é' must be"),
        (Custom("n" * 129, SECRET.encode()), "authentication type 'n+' must be"),
        (Custom(128, SECRET.encode()), "authentication type 128 must be"),
        (Custom(0, SECRET.encode()), "use Simple for authentication type 0"),
        (Custom(1, SECRET.encode()), "use Bearer for authentication type 1"),
    ],
)
def test_unencodable_credentials_are_refused_and_hidden(authentication: Authentication, message: str) -> None:
    with pytest.raises(LocalError, match=message) as caught:
        encode(authentication)
    assert_hidden(caught.value)


@pytest.mark.parametrize("data", [b"\x81" + SECRET.encode() + b"\xff", b"\x80\0\x01u" + SECRET.encode() + b"\xff"])
def test_undecodable_credentials_are_hidden(data: bytes) -> None:
    with pytest.raises(FrameError) as caught:
        decode(data)
    assert_hidden(caught.value)


@pytest.mark.parametrize(
    ("authentication", "shown"),
    [
        (Simple("user", SECRET), "Simple(username='user')"),
        (Bearer(SECRET), "Bearer()"),
        (Custom("x", SECRET.encode()), "Custom(type='x')"),
    ],
)
def test_secrets_are_not_shown(authentication: Authentication, shown: str) -> None:
    assert repr(authentication) == str(authentication) == f"{authentication}" == shown


def assert_hidden(error: Exception) -> None:
    assert SECRET not in "".join(traceback.format_exception(error))
    # The context of the error must not contain it either, because error reporters show it.
    assert error.__context__ is None and error.__cause__ is None
    assert SECRET not in repr(vars(error))
