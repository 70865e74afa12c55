from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.wire import drafts, vectors
from weirpool.cli.frames import check_codec, prefix_bytes
from weirpool.errors import LocalError
from weirpool.protocols import dump_of

CANCEL = "000000012400"
REQUEST_N = "000000022000000000ff"


def test_fields_and_flags_have_the_names_of_the_reference(weirpool: Weirpool) -> None:
    (frame,) = weirpool("decode", "0000000129600000016d64").objects
    assert frame == {
        "type": "PAYLOAD",
        "stream_id": 1,
        "flags": ["metadata", "complete", "next"],
        "metadata": "6d",
        "data": "64",
    }


@pytest.mark.parametrize("vector", vectors.load(), ids=lambda vector: vector.meaning[:40])
def test_vectors(weirpool: Weirpool, vector: vectors.Vector) -> None:
    framing = {0: "none", 3: "u24"}[vector.prefix]
    result = weirpool("decode", "--framing", framing, vector.raw.hex())
    expected = vectors.facts(vector)
    if vector.raw.hex() == vectors.LYING_METADATA:
        assert result.code == 1
        assert_one_line(result)
        return
    for frame, fact in zip(result.objects, vectors.facts(vector), strict=True):
        for name in fact.keys() & frame.keys():
            assert frame[name] == (fact[name].hex() if isinstance(fact[name], bytes) else fact[name])
    encoded = weirpool("encode", "--framing", framing, "-", stdin=result.out)
    # RSocket 1.0, REQUEST_N: the reserved bit is ignored when reading, and written as 0.
    expected = vector.raw.hex() if vector.raw.hex() != vectors.RESERVED_BIT else "00000001200000000001"
    assert b"".join(encoded.lines).decode() == expected


@pytest.mark.parametrize("given", [CANCEL, f"{CANCEL}\n", "00 00 00 01  24 00"])
def test_hex_is_read_with_spaces_and_line_ends(weirpool: Weirpool, given: str) -> None:
    assert [frame["type"] for frame in weirpool("decode", given).objects] == ["CANCEL"]


def test_file_may_contain_hex_or_bytes(weirpool: Weirpool, tmp_path: Path) -> None:
    text, binary = tmp_path / "frames.txt", tmp_path / "frames.bin"
    text.write_text(f"{CANCEL}\n")
    binary.write_bytes(bytes.fromhex(CANCEL))
    expected = weirpool("decode", CANCEL).objects
    assert weirpool("decode", str(text)).objects == expected
    assert weirpool("decode", str(binary)).objects == expected
    assert weirpool("decode", "-", stdin=bytes.fromhex(CANCEL)).objects == expected


def test_each_line_is_a_frame_without_framing(weirpool: Weirpool) -> None:
    result = weirpool("decode", "-", stdin=f"{CANCEL}\n\n{REQUEST_N}\n".encode())
    assert [frame["type"] for frame in result.objects] == ["CANCEL", "REQUEST_N"]


def test_length_is_shown_with_framing(weirpool: Weirpool) -> None:
    result = weirpool("decode", "--framing", "u24", f"000006{CANCEL}\n00000a{REQUEST_N}")
    assert [frame["length"] for frame in result.objects] == [6, 10]
    result = weirpool("decode", "--framing", "u32-inclusive", f"0000000a{CANCEL}")
    assert [frame["length"] for frame in result.objects] == [10]


@pytest.mark.parametrize(
    ("framing", "given", "frames", "where"),
    [
        ("none", "", 0, "byte 0"),
        ("none", "0000", 0, "byte 0"),
        ("none", f"{CANCEL}\n0000", 1, "line 2, byte 0"),
        # REQUEST_N with half its number; PAYLOAD whose metadata is longer than the frame.
        ("none", "0000000220000000", 0, "byte 6"),
        ("none", "000000012960ffffff64", 0, "byte 6"),
        ("u24", f"000006{CANCEL}00000a0000", 1, "byte 9"),
        ("u24", f"000006{CANCEL}0000020000", 1, "byte 9"),
        ("u32-inclusive", f"80000000{CANCEL}", 0, "byte 0"),
    ],
)
def test_invalid_frame_is_reported_with_its_offset(
    weirpool: Weirpool, framing: str, given: str, frames: int, where: str
) -> None:
    result = weirpool("decode", "--framing", framing, "-", stdin=given.encode())
    assert (result.code, len(result.lines)) == (1, frames)
    assert f"not a valid rsocket-1.0 frame: {where}: " in result.err
    assert_one_line(result)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("00000",), "odd number of hex digits"),
        (("neither",), "neither hex digits nor a readable file"),
        (("--framing", "u25", CANCEL), "u32-inclusive"),
        (("--dialect", "rsocket-9", CANCEL), "rsocket-1.0"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, arguments: tuple[str, ...], part: str) -> None:
    result = weirpool("decode", *arguments)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)


def test_messages_of_reactive_streams(weirpool: Weirpool) -> None:
    octets = "010000\n060104\n0701\n61626364\n"
    result = weirpool("decode", "--dialect", "reactive-streams-0", "-", stdin=octets.encode())
    assert result.objects == [
        {"type": "clientHello", "version": 0, "extensions": []},
        {"type": "subscribed", "subscriber": 1, "elementSize": 4},
        {"type": "onNext", "subscriber": 1, "element": "61626364"},
    ]
    encoded = weirpool("encode", "--dialect", "reactive-streams-0", "-", stdin=result.out)
    assert b"".join(encoded.lines).decode() == octets.replace("\n", "")
    result = weirpool("decode", "--dialect", "reactive-streams-0", "05010e")
    assert (result.code, len(result.lines)) == (1, 1)
    assert "not a valid reactive-streams-0 message: byte 3: message type 14" in result.err
    for verb in ("decode", "encode"):
        result = weirpool(verb, "--dialect", "reactive-streams-0", "--framing", "u24", "-", stdin=b"")
        assert result.code == 2 and "omit --framing" in result.err


FRAMINGS = {prefix: name for name, prefix in dump_of("rsocket-1.0").framings.items()}


@pytest.mark.parametrize("vector", drafts.load(), ids=lambda vector: vector.name)
def test_vectors_of_the_drafts(weirpool: Weirpool, vector: drafts.Vector) -> None:
    options = ("--dialect", vector.dialect, "--framing", FRAMINGS[vector.prefix])
    result = weirpool("decode", *options, vector.raw.hex())
    assert (result.code, result.err) == (0, "")
    for frame, fact in zip(result.objects, drafts.facts(vector), strict=True):
        for name in fact.keys() & frame.keys():
            assert frame[name] == (fact[name].hex() if isinstance(fact[name], bytes) else fact[name])
    encoded = weirpool("encode", *options, "-", stdin=result.out)
    assert b"".join(encoded.lines).decode() == vector.raw.hex()


def test_frames_of_reactivesocket_0_0_in_a_file(weirpool: Weirpool, tmp_path: Path) -> None:
    file = tmp_path / "frames.bin"
    found = [vector.raw for vector in drafts.load() if vector.prefix == 4]
    file.write_bytes(b"".join(found))
    result = weirpool("decode", "--dialect", "reactivesocket-0.0", "--framing", "u32-inclusive", str(file))
    assert (result.code, result.err) == (0, "")
    # The length includes itself.
    assert sum(frame["length"] for frame in result.objects) == len(b"".join(found))


def test_rivers_messages_have_their_names(weirpool: Weirpool) -> None:
    message = (
        b'{"id":"m","from":"c","to":"s","seq":1,"ack":2,"streamId":"x","controlFlags":10,'
        b'"payload":{"n":{"$b":"5"}},"serviceName":"a","procedureName":"b"}'
    )
    (shown,) = weirpool("decode", "--dialect", "river-2.0", message.hex()).objects
    assert (shown["controlFlags"], shown["seq"], shown["serviceName"]) == (["OPEN", "CLOSE"], 1, "a")
    framed = len(message).to_bytes(4, "big") + message
    shown = weirpool("decode", "--dialect", "river-2.0", "--framing", "u32", (framed + framed).hex()).objects
    assert [each["length"] for each in shown] == [len(message)] * 2
    result = weirpool("decode", "--dialect", "river-2.0", "--codec", "msgpack", message.hex())
    assert result.code == 1 and "not a valid river-2.0 message" in result.err
    for wrong in (("--codec", "xml"), ("--framing", "u24")):
        assert weirpool("decode", "--dialect", "river-2.0", *wrong, message.hex()).code == 2


def test_framings() -> None:
    dump = dump_of("rsocket-1.0")
    assert [prefix_bytes("it", dump, name) for name in ("none", "u24", "u32-inclusive")] == [0, 3, 4]
    with pytest.raises(LocalError, match=r"u25.*u24"):
        prefix_bytes("it", dump, "u25")
    with pytest.raises(LocalError, match="omit --framing"):
        prefix_bytes("it", dump_of("reactive-streams-0"), "u24")


def test_codecs() -> None:
    check_codec(dump_of("rsocket-1.0"), "xml")
    check_codec(dump_of("river-2.0"), "msgpack")
    with pytest.raises(LocalError, match=r"xml.*json, msgpack"):
        check_codec(dump_of("river-2.0"), "xml")
