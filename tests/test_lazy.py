from __future__ import annotations

import subprocess
import sys

import pytest

import weirpool.archive
import weirpool.journal
import weirpool.spark
from weirpool.lazy import lazily


def test_name_is_imported_on_first_use_and_kept() -> None:
    imported = lazily("tests", {"until": "waiting"})
    try:
        value = imported("until")
        assert vars(sys.modules["tests"])["until"] is value is sys.modules["tests.waiting"].until
    finally:
        vars(sys.modules["tests"]).pop("until", None)


@pytest.mark.parametrize("package", [weirpool, weirpool.archive, weirpool.journal, weirpool.spark])
def test_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("package", ["weirpool", "weirpool.archive", "weirpool.journal", "weirpool.spark"])
def test_all_names_are_found_and_none_is_imported_early(package: str) -> None:
    code = (
        f"import sys, {package} as p\n"
        "assert not {'pyarrow', 'pyspark', 'asyncio'} & sys.modules.keys(), 'imported early'\n"
        "for name in p.__all__: getattr(p, name)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_module_is_imported_on_first_use() -> None:
    code = "import sys, weirpool; assert 'weirpool.sync' not in sys.modules; weirpool.sync.connect"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
