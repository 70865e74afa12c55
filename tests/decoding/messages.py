"""Protobuf messages and Avro records to decode, and their schemas."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2, wrappers_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

EVENT = """
name: "event.proto" package: "test" syntax: "proto3"
dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/wrappers.proto"
enum_type { name: "Color" value { name: "RED" number: 0 } value { name: "BLUE" number: 1 } }
message_type {
  name: "Point"
  field { name: "x" number: 1 type: TYPE_SINT32 label: LABEL_OPTIONAL }
  field { name: "color" number: 2 type: TYPE_ENUM type_name: ".test.Color" label: LABEL_OPTIONAL }
}
message_type {
  name: "Event"
  field { name: "id" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "raw" number: 3 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "color" number: 4 type: TYPE_ENUM type_name: ".test.Color" label: LABEL_OPTIONAL }
  field { name: "time" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  field { name: "count" number: 6 type: TYPE_MESSAGE type_name: ".google.protobuf.Int32Value" label: LABEL_OPTIONAL }
  field { name: "point" number: 7 type: TYPE_MESSAGE type_name: ".test.Point" label: LABEL_OPTIONAL }
  field { name: "points" number: 8 type: TYPE_MESSAGE type_name: ".test.Point" label: LABEL_REPEATED }
  field { name: "times" number: 9 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_REPEATED }
  field { name: "by_name" number: 10 type: TYPE_MESSAGE type_name: ".test.Event.ByNameEntry" label: LABEL_REPEATED }
  field { name: "class" number: 11 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  oneof_decl { name: "_name" }
  nested_type {
    name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".test.Point" label: LABEL_OPTIONAL }
  }
}
message_type {
  name: "Tree"
  field { name: "leaf" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "branch" number: 2 type: TYPE_MESSAGE type_name: ".test.Tree" label: LABEL_REPEATED }
}
"""
_FILE = Parse(EVENT, descriptor_pb2.FileDescriptorProto())
_NEEDED = [timestamp_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR]


def _copy(descriptor: Any) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(file)
    return file


DESCRIPTORS: bytes = descriptor_pb2.FileDescriptorSet(file=[*map(_copy, _NEEDED), _FILE]).SerializeToString()
"""What protoc writes for these messages."""
INCOMPLETE: bytes = descriptor_pb2.FileDescriptorSet(file=[_FILE]).SerializeToString()
"""What it writes without --include_imports."""


def message(name: str, /, **fields: Any) -> Message:
    """Return a message of a type that is described above."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS).file:
        pool.Add(file)
    made: Message = GetMessageClass(pool.FindMessageTypeByName(f"test.{name}"))(**fields)
    return made


def record(*fields: tuple[str, Any], name: str = "Event") -> dict[str, Any]:
    """Return the Avro schema of a record."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def avro(schema: Any, /, **fields: Any) -> bytes:
    """Return an item."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), fields)
    return file.getvalue()


def text(schema: Any) -> bytes:
    """Return an Avro schema as JSON."""
    return json.dumps(schema).encode()


def stream(table: pa.Table, **options: Any) -> bytes:
    """Return an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
