from __future__ import annotations

import sys

import cbor2
import msgspec
import pyarrow as pa
import pytest

from weirpool import LocalError
from weirpool.decoding.encoding import FORMATS, Encoding

from .decode import decode, schema
from .messages import DESCRIPTORS, avro, message, record, stream, text

RECORD = record(("id", "long"), ("name", "string"))
ENCODINGS = {
    "json": (Encoding(format="json"), msgspec.json.encode({"id": 7, "name": "n"})),
    "msgpack": (Encoding(format="msgpack"), msgspec.msgpack.encode({"id": 7, "name": "n"})),
    "cbor": (Encoding(format="cbor"), cbor2.dumps({"id": 7, "name": "n"})),
    "avro": (Encoding(format="avro", schema=text(RECORD)), avro(RECORD, id=7, name="n")),
    "protobuf": (
        Encoding(format="protobuf", schema=DESCRIPTORS, message="test.Event"),
        message("Event", id=7, name="n").SerializeToString(),
    ),
    "arrow": (Encoding(format="arrow"), stream(pa.table({"id": [7], "name": ["n"]}))),
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_decodes_the_same_row(name: str) -> None:
    encoding, item = ENCODINGS[name]
    fields = schema(id=pa.int64(), name=pa.string())
    if encoding.has_schema:
        assert encoding.select(["id", "name"]) == fields
        assert encoding.fields().names[:2] == ["id", "name"]
    assert decode(encoding.decoder(fields), item, item) == ([{"id": 7, "name": "n"}] * 2, {})


@pytest.mark.parametrize(
    ("name", "package"), [("cbor", "cbor2"), ("avro", "fastavro"), ("protobuf", "google.protobuf")]
)
def test_a_missing_package_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LocalError, match=r"install weirpool\[decode\]"):
        ENCODINGS[name][0].decoder(schema(id=pa.int64()))
