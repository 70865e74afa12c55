from __future__ import annotations

from tests.schema.shop import service
from weirpool.schema.typescript import generate_typescript


def test_services_are_described_for_both_generations() -> None:
    new, old = (generate_typescript(service.schema(), flavour) for flavour in ("river", "river-1.1"))
    assert "    requestInit: Odd,\n    requestData: Type.Union([Circle, Square])," in new
    assert "    init: Odd,\n    input: Type.Union([Circle, Square])," in old
    assert "responseError: Type.Union([Gone, Plain])" in new and "errors: Type.Union([Gone, Plain])" in old


def test_recursive_objects_are_named_within_themselves() -> None:
    source = generate_typescript(service.schema(), "river")
    assert "Type.Array(Type.Unsafe<Tree>(Type.Unknown()), { default: [] })" in source
    assert source.count("export const Tree =") == source.count("export interface Tree ") == 1
