"""An input that hangs, and one that crashes, end the process and are left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WORKER = """
import os, sys
from pathlib import Path
from fuzz import worker
from fuzz.targets import metadata

def hang():
    while True:
        pass

worker.HANG_SECONDS = 0.2
metadata.outcome = lambda build, data: {ending}()
sys.exit(worker.main("metadata", 5.0, "seed", Path(sys.argv[1])))
"""


@pytest.mark.once
@pytest.mark.parametrize(("ending", "code"), [("hang", -signal.SIGPROF), ("os.abort", -signal.SIGABRT)])
def test_input_that_ends_the_process_is_left_behind(tmp_path: Path, ending: str, code: int) -> None:
    script = WORKER.replace("{ending}", ending)
    ended = subprocess.run([sys.executable, "-c", script, tmp_path], cwd=ROOT, capture_output=True)
    assert ended.returncode == code
    assert (tmp_path / "input").exists()
    assert not (tmp_path / "found.txt").exists()
