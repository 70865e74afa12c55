from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.schemas import procedures, read_source
from penstock.errors import LocalError
from tests.cli.conftest import INTEROP


def test_schema_of_a_service_and_of_its_file_are_the_same(tmp_path: Path) -> None:
    everything = read_source(f"{INTEROP}:service")
    # The exported format has neither FIRE nor routes without a dot.
    assert (everything["log"], everything["interop.count"]["type"]) == ({"type": "fire"}, "subscription")
    of_service = {name: each for name, each in everything.items() if name.startswith("interop.")}
    grouped = {"procedures": {name.removeprefix("interop."): each for name, each in of_service.items()}}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"services": {"interop": grouped}}))
    assert read_source(str(path)) == of_service


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"services": []},
        {"services": {"a": {}}},
        {"services": {"a": {"procedures": {"b": {"type": "x"}}}}},
    ],
)
def test_other_json_is_refused(document: object) -> None:
    with pytest.raises(LocalError, match="it"):
        procedures(document, "it")


@pytest.mark.parametrize(("source", "text"), [("missing.json", "no file"), ("nothing:service", "nothing")])
def test_wrong_source_is_an_error(source: str, text: str) -> None:
    with pytest.raises(LocalError, match=text):
        read_source(source)


def test_broken_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("{")
    with pytest.raises(LocalError, match="not valid JSON"):
        read_source(str(path))
