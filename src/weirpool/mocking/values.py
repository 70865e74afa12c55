"""Plausible values that match a JSON Schema, the same for the same seed."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from ..errors import LocalError
from ..schema.budget import Budget
from ..schema.wellformed import WellFormed, weight
from .patterns import Unmatched, text_of

__all__ = ["Values"]

MAX_DEPTH: Final = 6
"""Nesting below which optional parts are left out, so that recursive schemas come to an end."""
DEEPEST: Final = 60
"""Nesting at which a schema is refused: it requires itself."""
MAX_NODES: Final = 10_000
"""Values of one response."""
MAX_LENGTH: Final = 10_000
"""The longest string or array that a minimum may ask for."""
MAX_CHARACTERS: Final = 1_000_000
"""Characters of one response."""
COPIED: Final = 16
"""Keywords, fields or choices that take as long to look at as one value takes to make."""
STEPS_OF_VALUE: Final = 4
"""Steps in making a text of a pattern that take as long as one value takes."""
ATTEMPTS: Final = 20
"""Texts of a pattern, of which one must have the right length."""
WORDS: Final = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jade", "kelp", "lagoon",
    "meadow", "nectar", "orchid", "pebble", "quartz", "ripple", "sage", "timber", "umber", "valley", "willow", "zephyr",
)  # fmt: skip
EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that all JSON readers have."""


class Values:
    """Makes values of JSON Schemas.

    Enumerations, constants, limits, formats, patterns, combinations, and references within the schema are respected.
    A string whose pattern has look-around is a word.

    Args:
        schema: The schema, to which references refer.
        reader: Gives it its form; the same one for schemas that share parts.
        budget: Is charged for all values, besides the limits of each.

    Raises:
        LocalError: The schema is too large.

    """

    def __init__(self, schema: Any, reader: WellFormed | None = None, budget: Budget | None = None) -> None:
        self._root = (reader or WellFormed()).schema(schema)
        self._shared = budget
        self._begin("")

    def make(self, seed: str) -> Any:
        """Return a value, which is the same for the same seed.

        Raises:
            LocalError: The schema requires itself without an end, refers to something outside itself, or asks for a
                value that is too large.

        """
        self._begin(seed)
        return self._value(self._root, 0, "")

    def _begin(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._nodes = Budget(MAX_NODES, "a value of the schema")
        self._characters = Budget(MAX_CHARACTERS, "the texts in a value of the schema")

    def _spend(self, steps: int = 1) -> None:
        self._nodes.spend(steps)
        if self._shared is not None:
            self._shared.spend(steps)

    def _spend_steps(self, steps: int) -> None:
        self._spend(steps // STEPS_OF_VALUE)

    def _written(self, value: Any) -> Any:
        """Return a value, which must not be too long."""
        size = len(value) if isinstance(value, bytes) else weight(value, self._characters.left)
        self._characters.spend(size)
        return value

    def _value(self, schema: Any, depth: int, name: str) -> Any:
        self._spend()
        if depth > DEEPEST:
            raise LocalError("a schema requires itself without an end")
        if schema is True or schema == {}:
            return self._word()
        if not isinstance(schema, dict):
            raise LocalError(f"a JSON Schema is an object or true, not {schema!r}")
        schema = self._resolved(schema)
        if "const" in schema:
            return self._written(schema["const"])
        if schema.get("enum"):
            return self._written(self._random.choice(schema["enum"]))
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                return self._alternative(schema, word, depth, name)
        return self._typed(schema, depth, name)

    def _alternative(self, schema: dict[str, Any], word: str, depth: int, name: str) -> Any:
        choices = schema[word]
        self._spend((len(choices) + len(schema)) // COPIED)
        if depth >= MAX_DEPTH:
            # The simplest one: null, if there is one.
            chosen = min(choices, key=_weight)
        else:
            chosen = self._random.choice(choices)
        rest = {key: value for key, value in schema.items() if key != word}
        merged = {**rest, **self._resolved(chosen)} if isinstance(chosen, dict) else chosen
        return self._value(merged, depth + 1, name)

    def _typed(self, schema: dict[str, Any], depth: int, name: str) -> Any:
        kind = schema.get("type") or _guessed(schema)
        if isinstance(kind, list):
            kind = "null" if depth >= MAX_DEPTH and "null" in kind else self._random.choice(kind)
        makers: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: self._random.random() < 0.5,
            "integer": lambda: self._integer(schema),
            "number": lambda: self._number(schema),
            "string": lambda: self._written(self._string(schema, name)),
            "array": lambda: self._array(schema, depth, name),
            "object": lambda: self._object(schema, depth),
            "Uint8Array": lambda: self._written(self._random.randbytes(_at_least(schema, "minByteLength", 8))),
            "Date": lambda: self._time().isoformat(),
        }
        if kind not in makers:
            raise LocalError(f"the schema has an unknown type {kind!r}")
        return makers[kind]()

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with its references and `allOf` replaced by what they contain."""
        for _ in range(DEEPEST):
            self._spend(len(schema) // COPIED)
            if "$ref" in schema:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(schema["$ref"]), **rest}
            elif "allOf" in schema:
                fields = sum(len(each.get("properties", ())) for each in schema["allOf"] if isinstance(each, dict))
                self._spend((len(schema["allOf"]) ** 2 + fields * len(schema["allOf"])) // COPIED)
                schema = _merged(schema)
            else:
                return schema
        raise LocalError("references of the schema go round in circles")

    def _target(self, reference: Any) -> dict[str, Any]:
        found = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise LocalError(f"the schema refers to {reference!r}, outside itself")
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise LocalError(f"the schema refers to {reference!r}, which it does not have")
        return found

    def _integer(self, schema: dict[str, Any]) -> int:
        low, high = _range(schema, 1)
        step = schema.get("multipleOf")
        try:
            first, last = math.ceil(low / (step or 1)), math.floor(high / (step or 1))
            made = int(self._random.randint(first, max(first, last)) * (step or 1))
        except OverflowError:
            made = 2 * MAX_INTEGER
        if abs(made) > MAX_INTEGER:
            raise LocalError(f"the schema asks for an integer beyond {MAX_INTEGER:,}, which JSON readers do not have")
        return made

    def _number(self, schema: dict[str, Any]) -> float:
        if schema.get("multipleOf"):
            return float(self._integer(schema))
        low, high = _range(schema, 0)
        value = round(self._random.uniform(low, high), 2)
        # Rounding may have left the range, and its ends may be excluded.
        inside = schema.get("exclusiveMinimum", -math.inf) < value < schema.get("exclusiveMaximum", math.inf)
        return value if low <= value <= high and inside else (low + high) / 2

    def _string(self, schema: dict[str, Any], name: str) -> str:
        made = self._formatted(schema.get("format", ""))
        if made:
            return made
        least = _at_least(schema, "minLength", 0)
        most = schema.get("maxLength", max(least, MAX_LENGTH))
        if "pattern" in schema:
            with suppress(Unmatched):
                # A pattern says nothing of the limits.
                pattern = schema["pattern"]
                texts = (text_of(pattern, self._random, self._spend_steps) for _ in range(ATTEMPTS))
                first = next(texts)
                return next((text for text in chain([first], texts) if least <= len(text) <= most), first)
        text = f"{name} {self._word()}" if name and len(name) < 20 else self._word()
        while len(text) < least:
            text += f" {self._word()}"
        return text[:most] if len(text) > most else text

    def _formatted(self, form: str) -> str:
        word, time = self._word(), self._time()
        forms: dict[str, Callable[[], str]] = {
            "date-time": lambda: time.isoformat().replace("+00:00", "Z"),
            "date": lambda: time.date().isoformat(),
            "time": lambda: time.time().isoformat() + "Z",
            "duration": lambda: f"PT{self._random.randint(1, 3600)}S",
            "email": lambda: f"{word}@example.com",
            "hostname": lambda: f"{word}.example.com",
            "uri": lambda: f"https://example.com/{word}",
            "uuid": lambda: str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            "ipv4": lambda: f"192.0.2.{self._random.randint(1, 254)}",
            "ipv6": lambda: f"2001:db8::{self._random.randint(1, 0xFFFF):x}",
            "byte": lambda: "AAECAwQF",
        }
        return forms[form]() if form in forms else ""

    def _array(self, schema: dict[str, Any], depth: int, name: str) -> list[Any]:
        places = schema.get("items")
        if isinstance(places, list):
            # Before draft 2020-12, a list has a schema for each place.
            schema = {**schema, "prefixItems": places, "items": schema.get("additionalItems", False)}
        first = [self._value(each, depth + 1, name) for each in schema.get("prefixItems", [])]
        least = _at_least(schema, "minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        count = least if depth >= MAX_DEPTH else self._random.randint(max(least, min(1, most)), max(most, least))
        items = schema.get("items", {} if least else False)
        if items is False:
            return first
        return first + [self._value(items, depth + 1, name) for _ in range(count - len(first))]

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", ()))
        self._spend((len(properties) + len(required)) // COPIED)
        made: dict[str, Any] = {}
        for key, each in properties.items():
            if key in required or (depth < MAX_DEPTH and each is not False and self._random.random() < 0.8):
                made[key] = self._value(each, depth + 1, key)
        for key in required:
            if key not in made:
                made[key] = self._value(schema.get("additionalProperties", True), depth + 1, key)
        more = schema.get("additionalProperties")
        if not properties and isinstance(more, dict) and depth < MAX_DEPTH:
            made |= {self._word(): self._value(more, depth + 1, "") for _ in range(2)}
        return made

    def _word(self) -> str:
        return self._random.choice(WORDS)

    def _time(self) -> datetime:
        return EPOCH + timedelta(seconds=self._random.randint(0, 3 * 365 * 86_400))


def _weight(schema: Any) -> int:
    """Return how much a schema may contain: nothing, one value, or several."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "null" or (isinstance(schema, dict) and "const" in schema):
        return 0
    return 1 if kind in ("boolean", "integer", "number", "string") else 2


def _guessed(schema: dict[str, Any]) -> str:
    """Return the type of a schema that does not state it."""
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if "minimum" in schema or "maximum" in schema else "string"


def _merged(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its `allOf` merged into it."""
    made = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        if not isinstance(part, dict):
            continue
        joined = {
            "properties": {**made.get("properties", {}), **part.get("properties", {})},
            "required": [*made.get("required", []), *part.get("required", [])],
        }
        made = {**made, **part, **{key: value for key, value in joined.items() if value}}
    return made


def _range(schema: dict[str, Any], distance: int) -> tuple[float, float]:
    """Return the smallest and largest number; `distance` is that of the next one to an excluded limit."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf) + distance)
    high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf) - distance)
    if low == -math.inf:
        low = min(0, high - 1000) if high < math.inf else 0
    if high == math.inf:
        high = low + 1000
    return max(low, -MAX_INTEGER), min(high, MAX_INTEGER) if low <= MAX_INTEGER else low


def _at_least(schema: dict[str, Any], key: str, default: int) -> int:
    least = schema.get(key, default)
    if not isinstance(least, int) or not 0 <= least <= MAX_LENGTH:
        raise LocalError(f"the schema has {key} {least!r}; values are made up to {MAX_LENGTH}")
    return least
