from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weirpool
from tests.missing import need
from weirpool import Bearer, Custom, LocalError, Settings, Simple
from weirpool.access.target import Target
from weirpool.cli.connect_options import ConnectOptions
from weirpool.feeds.config import Auth, FeedConfig, Setup
from weirpool.feeds.serve import Serve
from weirpool.journal.secret import Secret
from weirpool.texts import counted, cut, quoted, shell_line, shell_word, shortened, shown, shown_json, shown_line

DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u061c\u200e\u200f"


def steers(character: str) -> bool:
    """Return True if a character moves the cursor, breaks a line, changes the direction, or cannot be encoded."""
    if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs"):
        return character not in "\t\n"
    return unicodedata.bidirectional(character) in DIRECTIONS or character in MARKS


# THREATS 18
def test_unsafe_characters_are_escaped() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        assert (shown(character) != character) == steers(character), hex(ord(character))


def test_escapes_name_the_character() -> None:
    assert shown("a\x1b[2J\x9b\x7f\r\0b") == "a\\x1b[2J\\x9b\\x7f\\x0d\\x00b"
    assert shown("\u2028\u202e\ud800") == "\\u2028\\u202e\\ud800"


@given(st.text(), st.integers(0, 40))
def test_text_is_cut_between_characters(text: str, size: int) -> None:
    data = text.encode()
    kept = cut(data, size)
    assert data.startswith(kept) and len(kept) <= size
    # No other character would fit.
    assert kept.decode() == text[: len(kept.decode())]
    assert len(data) <= size or len(kept + text[len(kept.decode())].encode()) > size


@pytest.mark.parametrize("size", range(9))
def test_other_data_is_cut_at_the_size(size: int) -> None:
    assert cut(b"\x80" * 8, size) == b"\x80" * size


@pytest.mark.parametrize("text", ["one\ttwo\nthr\u00e9e", "\u3000\u00a0", "\U0001f468\u200d\U0001f469", "\u0633\u200c"])
def test_text_of_any_language_is_unchanged(text: str) -> None:
    assert shown(text) == text


@given(st.text())
def test_shown_text_is_shown_unchanged(text: str) -> None:
    assert shown(shown(text)) == shown(text)
    assert shown_line(shown_line(text)) == shown_line(text)


@given(st.text())
def test_shown_line_has_no_line_breaks(text: str) -> None:
    for line in (shown_line(text), shortened(text), quoted(text.encode(errors="surrogatepass"))):
        assert not any(steers(character) or character in "\t\n" for character in line)
        assert len(line.splitlines()) <= 1
        line.encode()


def test_line_feeds_and_tabs_of_a_line_are_escaped() -> None:
    assert shown_line("a\tb\nc\x1b") == "a\\tb\\nc\\x1b"


@given(st.text())
def test_shown_json_has_the_same_value(text: str) -> None:
    line = shown_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert not any(steers(character) for character in line)


def test_long_texts_are_shortened() -> None:
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 60 + "…"
    assert quoted(b"a\xff\n" + b"x" * 100) == '"a\\xff\\n' + "x" * 54 + '…"(103)'


def test_one_thing_is_not_two() -> None:
    assert [counted(number, "feed") for number in (0, 1, 2, 1_000)] == ["0 feeds", "1 feed", "2 feeds", "1,000 feeds"]


@pytest.mark.parametrize(
    "text", ["quotes.live", "rsocket+tcp://localhost:7878", "@dev", "--set", "a=b", "application/json"]
)
def test_plain_words_of_a_command_have_no_quotes(text: str) -> None:
    assert shell_word(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "''"), ("a b", "'a b'"), ("it's", """'it'"'"'s'"""), ("a\\b'", """'a'\\\\'b'"'\""""), ("=ls", "'=ls'"),
        ("\x03'\\!\u0085\u202e", "$'\\x03\\x27\\x5c\\x21\\xc2\\x85\\xe2\\x80\\xae'"),
        ("\t\xe9", "$'\\x09\xe9'"), ("\udcff", "$'\\xff'"),
    ],
)  # fmt: skip
def test_other_words_of_a_command_are_quoted(text: str, expected: str) -> None:
    assert shell_word(text) == expected


@given(st.text())
def test_words_of_a_command_are_printable(text: str) -> None:
    try:
        assert shell_word(text).isprintable()
    except LocalError:
        assert "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800"])
def test_what_no_argument_can_have_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match=r"NUL character|surrogate"):
        shell_line(["a", text])


def test_a_shell_reads_the_words_of_a_command() -> None:
    need("bash")
    characters = [chr(code) for code in range(1, 0x250)] + list("\u2028\u202e\u2066\ufeff\U0001f600\udc80\udcff")
    words = [*characters, *(f"{character}0f" for character in characters), "".join(characters)]
    command = ["bash", "--norc", "-c", f"printf '%s\\0' {shell_line(words)}"]
    found = subprocess.run(command, capture_output=True, check=True).stdout.split(b"\0")[:-1]
    assert [word.decode(errors="surrogateescape") for word in found] == words


SECRETS = {"auth", "bearer", "credentials", "headers", "password", "private", "secret", "setup", "setup_auth", "token"}
NOT_SECRET = {"weirpool.serving.host.Listening": "token is a function that reads it"}


def shown_fields(kind: type) -> set[str]:
    """Return the fields that the generated `__repr__` of a class shows."""
    if dataclasses.is_dataclass(kind):
        generated = "__create_fn__" in kind.__repr__.__qualname__ or hasattr(kind.__repr__, "__wrapped__")
        return {field.name for field in dataclasses.fields(kind) if field.repr} if generated else set()
    if issubclass(kind, msgspec.Struct):
        return set(kind.__struct_fields__) if kind.__repr__ is msgspec.Struct.__repr__ else set()
    return set()


def test_no_class_shows_a_field_with_secrets() -> None:
    # Errors, logs of asyncio and debuggers show objects as they are.
    looked_at, shows = 0, {}
    for found in pkgutil.walk_packages(weirpool.__path__, "weirpool."):
        source = Path(*weirpool.__path__).parent.joinpath(*found.name.split(".")).with_suffix(".py")
        # Extensions without a Python source have no fields, and cannot be imported in the plain build.
        if found.name.endswith("__main__") or not (found.ispkg or source.exists()):
            continue
        for name, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            if kind.__module__ == found.name:
                looked_at += 1
                shows[f"{found.name}.{name}"] = sorted(shown_fields(kind) & SECRETS)
    assert looked_at > 500
    assert {name for name, fields in shows.items() if fields} == set(NOT_SECRET)


MARKER = "Zq7-MARKER"
PLANTED = [
    Simple("user", MARKER),
    Bearer(MARKER),
    Custom("own", MARKER.encode()),
    Settings(headers=(("authorization", MARKER),)),
    Target(url="rsocket+tcp://127.0.0.1:1", setup=MARKER, token=MARKER),
    ConnectOptions(setup=MARKER, setup_metadata=MARKER, setup_auth=MARKER, header=[f"a: {MARKER}"]),
    Auth(bearer=MARKER),
    Auth(user="user", password=MARKER),
    FeedConfig(
        url="rsocket+ws://127.0.0.1:1", route="r", journal="j", data=MARKER, metadata=MARKER, auth=Auth(bearer=MARKER),
        setup=Setup(data=MARKER), headers={"authorization": MARKER},
    ),
    Setup(data=MARKER, metadata=MARKER),
    Serve(url="rsocket+tcp://127.0.0.1:1", token=MARKER, operator_token=MARKER),
    Secret(owner="o", session=1, token=MARKER.encode(), private=MARKER.encode(), state=MARKER.encode()),
]  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: type(planted).__name__)
def test_objects_do_not_show_their_secrets(planted: object) -> None:
    assert MARKER not in f"{planted!r} {planted} {[planted]}"
