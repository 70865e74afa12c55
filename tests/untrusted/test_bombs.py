"""What is made from a small description takes little time and memory (THREATS 110)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .consumers import CONSUMERS, MIB, SECONDS


# THREATS 110
@pytest.mark.slow
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_everything_that_is_made_from_a_description_is_bounded(consumer: str) -> None:
    command = [sys.executable, "-m", "tests.untrusted.consumers", consumer]
    result = subprocess.run(command, capture_output=True, text=True)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.returncode, result.stderr) == (0, "") and len(found) > 50
    assert [each for each in found if each["seconds"] > SECONDS or each["mib"] > MIB] == []
    # Only errors of this package are expected.
    assert [each for each in found if not each["said"].startswith(("used", "refused: "))] == []
