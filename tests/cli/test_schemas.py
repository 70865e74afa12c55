from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP
from weirpool.cli.schemas import procedures, procedures_of
from weirpool.errors import LocalError


def test_schema_of_a_service_and_of_its_file_are_the_same(tmp_path: Path) -> None:
    everything = procedures_of(f"{INTEROP}:service")
    assert (everything["log"]["type"], everything["interop.count"]["type"]) == ("fire", "subscription")
    of_service = {name: each for name, each in everything.items() if name.startswith("interop.")}
    grouped = {"procedures": {name.removeprefix("interop."): each for name, each in of_service.items()}}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"services": {"interop": grouped}}))
    assert procedures_of(str(path)) == of_service


OPEN = {"init": {}, "output": {}, "errors": {}}


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


@pytest.mark.parametrize(("source", "text"), [("missing.json", "No such file"), ("nothing:service", "nothing")])
def test_wrong_source_is_an_error(source: str, text: str) -> None:
    with pytest.raises(LocalError, match=text):
        procedures_of(source)


def test_broken_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("{")
    with pytest.raises(LocalError, match="not valid json"):
        procedures_of(str(path))


def test_schema_with_a_version_is_no_description(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"version": 1, "services": {"a": {"procedures": {"b": {"type": "rpc", **OPEN}}}}}))
    assert list(procedures_of(str(path))) == ["a.b"]
