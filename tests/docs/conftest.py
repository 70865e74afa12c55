from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.docs import given
from tests.docs.pages import ROOT
from tests.spark.conftest import spark

__all__ = ["environment", "spark"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in which `weirpool` and `python` are this checkout's."""
    command = tmp_path / "bin" / "weirpool"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m weirpool "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**given.environment(), "PATH": path, "PYTHONPATH": f"{ROOT / 'src'}", "NO_COLOR": "1", "COLUMNS": "200"}
