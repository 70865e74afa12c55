from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import LocalError
from weirpool.spark.decode_options import DecodeOptions, Mode

from .journals import options


def decode(**more: str) -> DecodeOptions:
    parsed = options(Path("journal"), **more).decode
    assert parsed is not None
    return parsed


def test_items_are_not_decoded_by_default() -> None:
    assert options(Path("journal")).decode is None


def test_options_are_parsed() -> None:
    assert decode(decode="JSON", decodeSchema="a INT") == DecodeOptions(format="json", schema="a INT")
    given = decode(decode="cbor", mode="failFast", eventTime="at", timestampUnit="ms", decodeInto="event")
    assert given == DecodeOptions(format="cbor", mode=Mode.FAILFAST, event_time="at", unit="ms", into="event")
    given = decode(decode="avro", decodeSchema="{}", decodeWriterSchema="[]", decodeSchemaId="7").encoding()
    assert (given.writer_schema, given.schema_id) == (b"[]", 7)


def test_forms_of_items_are_options() -> None:
    plain = decode(decode="json").encoding()
    assert (plain.named_numbers, plain.arrays) == (True, False)
    given = decode(decode="json", allowNonNumericNumbers="false", structsAsArrays="True").encoding()
    assert (given.named_numbers, given.arrays) == (False, True)
    assert decode(decode="msgpack", structsAsArrays="true").encoding().arrays
    assert decode(decode="arrow", structsAsArrays="false").encoding() == decode(decode="arrow").encoding()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"decode": "xml"}, "json or msgpack or cbor or avro or protobuf or arrow"),
        ({"decode": "json", "mode": "strict"}, "PERMISSIVE or FAILFAST or DROPMALFORMED"),
        ({"decode": "json", "timestampUnit": "m"}, "s or ms or us or ns"),
        ({"decodeSchema": "a INT"}, '"decodeSchema" has no effect without the option "decode"'),
        ({"mode": "FAILFAST"}, '"mode" has no effect'),
        ({"decode": "json", "decodeMessage": "a.B"}, '"decodeMessage" is for protobuf, not for json'),
        ({"decode": "json", "decodeWriterSchema": "{}"}, '"decodeWriterSchema" is for avro, not for json'),
        ({"decode": "protobuf", "decodeSchemaId": "7"}, '"decodeSchemaId" is for avro, not for protobuf'),
        ({"decode": "avro", "decodeSchemaId": "0"}, "at least 1"),
        ({"decode": "cbor", "allowNonNumericNumbers": "true"}, '"allowNonNumericNumbers" is for json, not for cbor'),
        ({"decode": "json", "allowNonNumericNumbers": "yes"}, "true or false"),
        (
            {"decode": "avro", "structsAsArrays": "true"},
            '"structsAsArrays" is for json, msgpack, cbor, not for avro',
        ),
        ({"decode": "protobuf", "decodeSchema": "x"}, '"decodeSchemaFile" and "decodeMessage" are missing'),
        ({"decode": "json", "decodeShcema": "a INT"}, 'did you mean "decodeSchema"'),
        ({"decode": "json", "rows": "gaps"}, 'with rows set to "gaps"'),
    ],
    ids=str,
)
def test_mistakes_are_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(LocalError, match=problem):
        options(Path("journal"), **given)


def test_a_schema_comes_from_one_place(tmp_path: Path) -> None:
    file = tmp_path / "schema"
    file.write_bytes(b"a INT")
    assert decode(decode="json", decodeSchemaFile=str(file)).given_schema() == b"a INT"
    for wrong in ({}, {"decodeSchema": "a INT", "decodeSchemaFile": str(file)}):
        with pytest.raises(LocalError, match='either "decodeSchema" or "decodeSchemaFile"'):
            decode(decode="json", **wrong).given_schema()
    with pytest.raises(LocalError, match=r'"decodeSchemaFile": .*No such file'):
        decode(decode="json", decodeSchemaFile=str(tmp_path / "none")).given_schema()
