from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SHIM = Path(__file__).parent.parent / "src" / "pyspark_weirpool.py"


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_shows_spark_the_format() -> None:
    result = run_python("import pyspark_weirpool as shim; print(shim.DefaultSource.name())")
    assert (result.stdout, result.stderr) == ("weirpool\n", "")


def test_is_where_spark_looks() -> None:
    code = "import pkgutil; print([m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')])"
    assert "pyspark_weirpool" in run_python(code).stdout


@pytest.mark.parametrize("missing", ["pyarrow", "pyspark", "xxhash", "msgspec", "weirpool"])
def test_never_raises(missing: str) -> None:
    hidden = f"import sys; sys.modules[{missing!r}] = None"
    result = run_python(f"{hidden}; import pyspark_weirpool as shim; print(hasattr(shim, 'DefaultSource'))")
    assert result.stdout == "False\n", result.stderr
    assert "the format weirpool is not available" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_is_small() -> None:
    assert len(SHIM.read_text().splitlines()) < 30
