"""Plans to read items of one Avro schema as values of another: Avro's rules for schema resolution.

Schemas are expanded here: definitions stand where names were, and no type contains itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

from ..errors import LocalError
from .avro_values import Kind, Plan
from .times import MAX_TIME, MIN_TIME

__all__ = ["record_plan"]

_SCALARS: Final = {
    "null": Kind.NULL,
    "boolean": Kind.BOOLEAN,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "bytes": Kind.BYTES,
    "string": Kind.STRING,
}
_LIMITS: Final = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}
_SIZES: Final = {"boolean": 1, "float": 4, "double": 8}
# Microseconds in a unit.
_FACTORS: Final = {"millis": 1_000, "micros": 1}
_DAY: Final = 86_400_000_000
_PROMOTED: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
    "error": {"record"},
    "record": {"error"},
}
"""Types that a reader may have instead of the writer's."""
_MAX_DECIMAL_BYTES: Final = 32


def record_plan(writer: Any, reader: Any, names: Sequence[str]) -> Plan:
    """Return the plan to read a writer's records as lists of these fields of a reader's.

    `LocalError` is raised if a field can have no value that the writer writes.
    """
    slots = {name: slot for slot, name in enumerate(names)}
    wanted = {field["name"]: field for field in reader["fields"] if field["name"] in slots}
    inner, found = [], []
    for field in writer["fields"]:
        into = wanted.pop(field["name"], None)
        plan = _skipping(field["type"]) if into is None else _plan(field["type"], into["type"])
        if plan.kind == Kind.MISMATCH:
            raise LocalError(f"field {field['name']!r}: the type of the writer's schema does not fit the reader's")
        inner.append(plan)
        found.append(-1 if into is None else slots[field["name"]])
    blank: list[Any] = [None] * len(names)
    for name, field in wanted.items():
        if "default" not in field:
            raise LocalError(f"field {name!r} is not in the writer's schema, and has no default in the reader's")
        blank[slots[name]] = _default(field["type"], field["default"])
    return Plan(Kind.RECORD, tuple(inner), slots=tuple(found), blank=tuple(blank))


def _plan(writer: Any, reader: Any) -> Plan:
    if isinstance(writer, list):
        return Plan(Kind.UNION, tuple(_plan(branch, reader) for branch in writer))
    if isinstance(reader, list):
        reader = next((branch for branch in reader if _fits(writer, branch)), None)
    if reader is None or not _fits(writer, reader):
        return Plan(Kind.MISMATCH)
    kind = _kind(writer)
    if kind in ("record", "error"):
        return record_plan(writer, reader, [field["name"] for field in reader["fields"]])
    if kind == "array":
        return Plan(Kind.ARRAY, (_plan(writer["items"], reader["items"]),))
    if kind == "map":
        return Plan(Kind.MAP, (_plan(writer["values"], reader["values"]),))
    # Of the two logical types, the writer's says what its numbers mean.
    annotated = writer if isinstance(writer, dict) and "logicalType" in writer else reader
    if kind in _LIMITS:
        return _integers(kind, annotated, _kind(reader))
    return _scalars(writer, kind, annotated)


def _integers(kind: str, annotated: Any, target: str) -> Plan:
    low, high = _LIMITS[kind]
    if target in ("float", "double"):
        return Plan(Kind.INTEGER, low=low, high=high, convert=float)
    logical = _logical(annotated)
    if logical == "date":
        return Plan(Kind.INTEGER, low=MIN_TIME // _DAY, high=MAX_TIME // _DAY)
    factor = _FACTORS.get(logical.rpartition("-")[2]) if "timestamp" in logical else None
    if factor is None:
        return Plan(Kind.INTEGER, low=low, high=high)
    return Plan(Kind.INTEGER, low=-(-MIN_TIME // factor), high=MAX_TIME // factor, factor=factor)


def _scalars(writer: Any, kind: str, annotated: Any) -> Plan:
    convert = partial(_decimal, annotated.get("scale", 0)) if _logical(annotated) == "decimal" else None
    if kind == "fixed":
        return Plan(Kind.FIXED, high=writer["size"], convert=convert)
    if kind == "enum":
        return Plan(Kind.ENUM, symbols=tuple(writer["symbols"]))
    return Plan(_SCALARS[kind], convert=convert)


def _skipping(schema: Any) -> Plan:
    """Return the plan to read over a value: where it ends is checked, and nothing else."""
    if isinstance(schema, list):
        return Plan(Kind.UNION, tuple(map(_skipping, schema)))
    kind = _kind(schema)
    if kind in ("record", "error"):
        return _skipping_record([_skipping(field["type"]) for field in schema["fields"]])
    if kind == "array":
        return Plan(Kind.ARRAY, (_skipping(schema["items"]),))
    if kind == "map":
        # Avro 1.11, Binary Encoding: the blocks of a map are those of an array of its pairs.
        return Plan(Kind.ARRAY, (_skipping_record([Plan(Kind.BYTES), _skipping(schema["values"])]),))
    if kind in _SIZES:
        return Plan(Kind.FIXED, high=_SIZES[kind])
    if kind == "fixed":
        return Plan(Kind.FIXED, high=schema["size"])
    if kind in ("bytes", "string"):
        return Plan(Kind.BYTES)
    low, high = _LIMITS["long"]
    return Plan(Kind.NULL) if kind == "null" else Plan(Kind.INTEGER, low=low, high=high)


def _skipping_record(fields: list[Plan]) -> Plan:
    return Plan(Kind.RECORD, tuple(fields), slots=(-1,) * len(fields))


def _fits(writer: Any, reader: Any) -> bool:
    kind, target = _kind(writer), _kind(reader)
    if kind == "fixed" == target:
        return bool(writer["size"] == reader["size"])
    return kind == target or target in _PROMOTED.get(kind, ())


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _logical(schema: Any) -> str:
    return str(schema.get("logicalType", "")) if isinstance(schema, dict) else ""


def _decimal(scale: int, number: bytes) -> Decimal:
    if len(number) > _MAX_DECIMAL_BYTES:
        raise ValueError("a decimal is too large")
    return Decimal(int.from_bytes(number, "big", signed=True)).scaleb(-scale)


def _default(schema: Any, value: Any) -> Any:
    """Return the value that a default in a schema stands for: it is one of a union's first type."""
    if value is None:
        return None
    if isinstance(schema, list):
        return _default(schema[0], value)
    kind = _kind(schema)
    if kind in ("record", "error"):
        values = {field["name"]: field.get("default") for field in schema["fields"]} | value
        return [_default(field["type"], values[field["name"]]) for field in schema["fields"]]
    if kind == "array":
        return [_default(schema["items"], each) for each in value]
    if kind == "map":
        return {key: _default(schema["values"], each) for key, each in value.items()}
    if kind in ("bytes", "fixed"):
        value = value.encode("latin-1")
        return _decimal(schema.get("scale", 0), value) if _logical(schema) == "decimal" else value
    factor = _FACTORS.get(_logical(schema).rpartition("-")[2]) if "timestamp" in _logical(schema) else None
    return value if factor is None else value * factor
