from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import SEEN, Penstock, assert_one_line, serving


def test_metadata_arrives(penstock: Penstock, tmp_path: Path) -> None:
    file = tmp_path / "metadata"
    file.write_bytes(b"from a file")
    with serving(SEEN, "rsocket+tcp://127.0.0.1:0") as (process, urls):
        assert process.stdout is not None
        assert penstock("push", urls[0], "late today", "--repeat", "2").code == 0
        assert [process.stdout.readline() for _ in range(2)] == ["pushed late today\n"] * 2
        assert penstock("push", urls[0], f"@{file}").code == 0
        assert process.stdout.readline() == "pushed from a file\n"


def test_missing_file_is_wrong_use(penstock: Penstock, server: str) -> None:
    result = penstock("push", server, "@/no/such/file")
    assert result.code == 2
    assert_one_line(result)
