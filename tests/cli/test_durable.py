from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from weirpool.cli.durable import KEY
from weirpool.journal import Journal

SECRET = base64.b64encode(bytes(32)).decode()


def options(folder: Path, journal: str) -> list[str]:
    return ["-j", str(folder / journal), "--durable", "remote", "--store", str(folder / "store"), "--group", "edge"]


@pytest.mark.slow
def test_a_stream_is_collected_into_a_store(
    weirpool: Weirpool, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    arguments = ["collect", server, "count", "--data", "500", "--json", "-q"]
    result = weirpool(*arguments, *options(tmp_path, "one"))
    assert (result.code, json.loads(result.out)) == (
        0, {"items": 500, "bytes": 1390, "gaps": 0, "position": 500, "complete": True},
    )  # fmt: skip
    # Another machine has the rows, and knows that the stream is complete.
    result = weirpool(*arguments[:-2], *options(tmp_path, "two"))
    assert result.code == 0
    assert "already complete, at 500" in result.out.decode()
    assert Journal(tmp_path / "two").reader("count").end == 500


@pytest.mark.parametrize(
    ("arguments", "key", "part"),
    [
        (["--durable", "far"], SECRET, "use local or remote"),
        (["--store", "s"], SECRET, "need --durable remote"),
        (["--durable", "remote", "--store", "s"], SECRET, "needs --store, --group"),
        (["--durable", "remote", "--store", "s", "--group", "g"], "", KEY),
        (["--durable", "remote", "--store", "s", "--group", "g"], "short", "32 random bytes"),
        (["--durable", "remote", "--store", "mock://b", "--group", "g"], SECRET, "conditional writes"),
        (["--durable", "remote", "--store", "s", "--group", "../g"], SECRET, "group"),
    ],
)
def test_wrong_use_is_exit_code_2(
    weirpool: Weirpool, tmp_path: Path, arguments: list[str], key: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, key)
    result = weirpool("collect", "rsocket+tcp://127.0.0.1:1", "r", "-j", str(tmp_path), *arguments)
    assert result.code != 0
    assert_one_line(result)
    assert part in result.err
