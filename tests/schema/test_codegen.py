from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weirpool
from tests.schema.test_export import REFERENCE, Token, demo, untitled
from tests.schema.type_checking import check_types
from weirpool import LocalError, Service, Settings, TypedError
from weirpool.schema.codegen import generate_python
from weirpool.schema.procedures import read_schema
from weirpool.schema.shapes import Loss

SECONDS = 240
LINT = "F,W,B,I,UP,RUF,D102,D2,D4"
THIRD_PARTY = "lint.isort.known-third-party=['weirpool']"
EVIL = '"""\nimport os\nos.abort()\n"""\\'


def source_of(schema: dict[str, Any]) -> str:
    return generate_python(read_schema(json.dumps(schema).encode()))


def hostile() -> dict[str, Any]:
    """Return a hostile schema."""
    fields: dict[str, Any] = {
        "__proto__": {"type": "string"},
        "class": {"type": "integer"},
        "a b": {"enum": ['x"y', "\\", "\n", "\u202e"]},
        "a_b": {"type": ["string", "null"]},
        "": {},
        "evil": {"const": EVIL},
        "object": {"type": "object", "properties": {EVIL: {"const": EVIL}}},
        "Any": {"type": "array", "items": {"type": "object", "properties": {}}},
        "msgspec": {"type": "boolean"},
        "long" * 50: {"type": "object", "properties": {"x": {"$ref": "#"}}},
    }
    value = {"type": "object", "description": EVIL, "required": ["__proto__", "class"], "properties": fields}
    error = {"type": "object", "description": EVIL, "properties": {"code": {"const": EVIL}, "extras": value}}
    kinds = ["rpc", "upload", "subscription", "stream"]
    procedure = {"init": value, "input": value, "output": value, "errors": {"anyOf": [error]}, "description": EVIL}
    procedures = {
        f"{name}{kind}": procedure | {"type": kind} for kind in kinds for name in (EVIL, "__init__", "x" * 200)
    }
    return {"services": {EVIL: {"procedures": procedures}, "a b": {"procedures": {}}, "a-b": {"procedures": {}}}}


@pytest.fixture(params=["reference", "hostile"])
def source(request: pytest.FixtureRequest) -> str:
    """The client of each schema in turn."""
    return source_of(json.loads(REFERENCE.read_bytes()) if request.param == "reference" else hostile())


def loaded(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return generated code as a module whose annotations can be resolved."""
    path = folder / "generated_client.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("generated_client", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "generated_client", module)
    spec.loader.exec_module(module)
    return module


def test_generated_source_runs_and_decodes_every_type(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hostile code would end this process here.
    module = loaded(source, tmp_path, monkeypatch)
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, msgspec.Struct):
            msgspec.json.Decoder(value)
        elif isinstance(value, type) and issubclass(value, TypedError) and value is not TypedError:
            assert value.extras_type() is not None


def test_generated_source_is_formatted_and_typed(source: str, tmp_path: Path) -> None:
    path = tmp_path / "client.py"
    path.write_text(source)
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--isolated", "--line-length", "120", "--no-cache", str(path)]
    for command in (["format", "--check"], ["check", "--select", LINT, "--config", THIRD_PARTY]):
        result = subprocess.run([*ruff, *command, *options], capture_output=True, text=True, timeout=SECONDS)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_type_checkers_find_nothing(source: str, tmp_path: Path) -> None:
    path = tmp_path / "client.py"
    path.write_text(source)
    check_types(path)


def test_the_same_schema_gives_the_same_source() -> None:
    schema = hostile()
    services = dict(reversed(schema["services"].items()))
    assert source_of(schema) == source_of({"services": services})


def test_our_own_schema_gives_the_client_of_the_reference() -> None:
    ours = source_of(untitled(demo().schema(Token)))
    theirs = source_of(json.loads(REFERENCE.read_bytes()))
    assert ours == theirs


@pytest.mark.parametrize("mime", ["application/json", "application/msgpack"])
async def test_generated_client_calls_a_served_service(
    mime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = loaded(source_of(json.loads(REFERENCE.read_bytes())), tmp_path, monkeypatch)
    url = "rsocket+memory://generated"
    async with weirpool.serve(served(client), url):
        async with weirpool.connect(url, settings=Settings(data_mime=mime)) as peer:
            demo = client.Demo(peer)
            assert await demo.add(client.DemoAddInit(a=1, b=2)) == client.DemoAddOutput(sum=3)
            with pytest.raises(client.Negative) as error:
                await demo.add(client.DemoAddInit(a=-1, b=2))
            assert (error.value.message, error.value.extras) == ("a is negative", client.NegativeExtras(a=-1))
            assert await demo.boom() == client.DemoBoomOutput()
            data = client.DemoBytesInit(data=b"\xff", n=1)
            assert await demo.bytes_(data) == client.DemoBytesOutput(data=b"\xff", n=1, u=None)
            async with demo.count(client.DemoCountInit(upto=3, everyMs=0)) as counts:
                assert [count.i async for count in counts] == [0, 1, 2]
            numbers = [client.DemoSumInput(n=1), client.DemoSumInput(n=2)]
            assert (await demo.sum(client.DemoSumInit(start=1), numbers)).total == 4
            words = [client.DemoEchoInput(msg="a"), client.DemoEchoInput(msg="b")]
            async with demo.echo(client.DemoEchoInit(prefix="> "), words) as echoes:
                assert [echo.response async for echo in echoes] == ["> a", "> b"]


def served(client: Any) -> Service:
    """Return a service that responds like that of the reference."""
    service = Service()

    @service.call("demo.add", init=client.DemoAddInit, response=client.DemoAddOutput)
    def add(init: Any) -> Any:
        if init.a < 0:
            raise client.Negative("a is negative", client.NegativeExtras(a=init.a))
        return client.DemoAddOutput(sum=init.a + init.b)

    service.call("demo.boom", init=dict)(lambda init: init)
    service.call("demo.bytes", init=dict[str, Any])(lambda init: init | {"u": None})

    @service.stream("demo.count", init=client.DemoCountInit)
    def count(init: Any) -> Any:
        for number in range(int(init.upto)):
            yield {"i": number}

    @service.upload("demo.sum", init=client.DemoSumInit, request=client.DemoSumInput)
    async def total(init: Any, items: Any) -> Any:
        return {"total": init.start + sum([item.n async for item in items])}

    @service.channel("demo.echo", init=client.DemoEchoInit, request=client.DemoEchoInput)
    async def echo(init: Any, items: Any) -> AsyncIterator[Any]:
        async for item in items:
            yield {"response": init.prefix + item.msg}

    return service


def test_reserved_errors_get_no_class() -> None:
    source = source_of(json.loads(REFERENCE.read_bytes()))
    assert source.count("(TypedError, code=") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not an exported schema"),
        (b"[]", "not an exported schema"),
        (b'{"services":{"a":{"procedures":{"b":{"type":"push"}}}}}', "a.b is of type 'push'"),
        (b'{"services":' + b"[" * 100_000, "nested more than"),
    ],
)
def test_invalid_schema_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        read_schema(data)


def test_service_without_procedures_is_a_class() -> None:
    assert "class Empty:" in source_of({"services": {"empty": {"procedures": {}}}})
    compile(source_of({"services": {}}), "client.py", "exec")


WORDS = st.sampled_from(["a", "b", "kind", "class", "Any", "str", "a b", "__x__", "ShopAskInit", "Shop"]) | st.text(
    max_size=5
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
LEAVES = st.one_of(
    st.just({}),
    st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object", "Uint8Array", "x"]).map(
        lambda kind: {"type": kind}
    ),
    VALUES.map(lambda value: {"const": value}),
    st.lists(VALUES, max_size=4).map(lambda values: {"enum": values}),
    st.sampled_from(["#", "#/properties/a", "#/anyOf/0", "x"]).map(lambda reference: {"$ref": reference}),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(
            lambda properties, required, more: {
                "type": "object", "properties": properties, "required": required, **more,
            },
            st.dictionaries(WORDS, inner, max_size=4),
            st.lists(WORDS, max_size=3),
            st.dictionaries(st.just("additionalProperties"), inner),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda keyword, several: {keyword: several},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=4),
        ),
        st.builds(
            lambda tags, inside: {
                "anyOf": [
                    {"type": "object", "required": ["kind"], "properties": {"kind": {"const": tag}, "x": inside}}
                    for tag in tags
                ]
            },
            st.lists(WORDS, min_size=2, max_size=3),
            inner,
        ),
    )  # fmt: skip


@settings(max_examples=60)
@given(st.recursive(LEAVES, nested, max_leaves=12))
def test_any_schema_makes_types_that_can_be_decoded(schema: Any) -> None:
    procedure = {"type": "stream", "init": schema, "input": schema, "output": schema}
    export = {"services": {"shop": {"procedures": {"ask": procedure}}}}
    module = ModuleType("generated_by_chance")
    sys.modules[module.__name__] = module
    try:
        with suppress(LocalError):
            # References that multiply.
            exec(generate_python(export), vars(module))
        types = [value for name, value in vars(module).items() if name.startswith("Shop") and name != "Shop"]
        assert all(msgspec.json.Decoder(each) for each in types)
    finally:
        del sys.modules[module.__name__]


def test_definition_in_many_schemas_is_declared_once() -> None:
    tree = {"type": "object", "required": ["in"], "properties": {"in": {"$ref": "#/$defs/tree"}, "n": {}}}
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}
    other = {"$ref": "#/$defs/tree", "$defs": {"tree": tree | {"required": []}}}
    outside = {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"in": {"$ref": "#/x"}}}}}
    procedures = {
        "a": {"type": "rpc", "init": schema, "output": schema},
        "b": {"type": "rpc", "init": other, "output": schema},
        "c": {"type": "rpc", "init": outside, "output": outside | {"x": tree}},
    }
    source = source_of({"services": {"shop": {"procedures": procedures}}})
    assert "async def a(self, init: Tree) -> Tree:" in source
    assert "async def b(self, init: ShopTree | None = None) -> Tree:" in source
    # These refer to their surroundings, which differ.
    assert "async def c(self, init: ShopTree_2 | None = None) -> ShopTree_3:" in source


def test_a_property_without_a_name_is_a_field() -> None:
    text = {"type": "object", "properties": {"": {"type": "string"}, "a": {"type": "integer"}}, "required": ["", "a"]}
    error = {"properties": {"code": {"const": "BAD"}, "extras": text}, "required": ["extras"]}
    procedure = {"type": "rpc", "init": text, "output": {"type": "array", "items": text}, "errors": error}
    losses: list[Loss] = []
    source = generate_python({"services": {"shop": {"procedures": {"buy": procedure}}}}, losses)
    assert losses == []
    module: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, "generated.py", "exec"), module)
    made = msgspec.json.decode(b'{"": "x", "a": 1}', type=module["ShopBuyInit"])
    assert msgspec.json.decode(msgspec.json.encode(made)) == {"": "x", "a": 1}
    assert source.count('name=""') == 1 and "extras: ShopBuyInit" in source
    with pytest.raises(msgspec.ValidationError, match="missing required field"):
        msgspec.json.decode(b'{"a": 1}', type=module["ShopBuyInit"])
