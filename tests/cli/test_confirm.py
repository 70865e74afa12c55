"""What verbs do before something is lost: plans, and questions on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool
from tests.journal.logs import SOURCE, write
from weirpool.cli import confirm
from weirpool.journal import Journal
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commit


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits in front of it."""
    monkeypatch.setattr(confirm, "_on_terminal", lambda: True)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of one log in three segments, with a reader."""
    path = tmp_path / "journal"
    write(path, 10, 10, 10, segment_bytes=1)
    commit(log_folder(path, SOURCE), "export", 25)
    return path


def files(path: Path) -> dict[str, bytes]:
    """Return all files in a folder."""
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


VERBS = [("trim", "--to", "20"), ("forget", "export"), ("seek", "export", "--to", "5"), ("seal", "--force")]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
def test_a_dry_run_says_what_would_be_done_and_changes_no_byte(
    weirpool: Weirpool, journal: Path, terminal: None, verb: tuple[str, ...], json: tuple[str, ...]
) -> None:
    before = files(journal)
    result = weirpool("journal", verb[0], str(journal), *verb[1:], "--dry-run", *json)
    assert (result.code, result.err) == (0, "")
    assert files(journal) == before
    if json:
        (found,) = result.objects
        assert found["source"] == SOURCE and found["dry_run"] is True
    else:
        assert result.out.startswith(f"{SOURCE}: ".encode()) and b" would " in result.out


def test_a_trim_of_several_logs_is_planned_for_each(weirpool: Weirpool, tmp_path: Path) -> None:
    for source in ("a", "b"):
        with Journal(tmp_path).writer(source, segment_bytes=1, fsync=False) as writer:
            writer.append(_rows(5), "x")
            writer.append(_rows(5), "x")
    result = weirpool("journal", "trim", str(tmp_path), "--to", "latest", "--dry-run")
    assert [line.split(b" (")[0] for line in result.lines] == [b"a: would delete 5 rows", b"b: would delete 5 rows"]
    assert all(line.endswith(b"positions 0 to 4; the first row would be at 5") for line in result.lines)
    assert [Journal(tmp_path).reader(source).first for source in ("a", "b")] == [0, 0]


def _rows(count: int) -> object:
    import pyarrow as pa

    from weirpool.journal import ITEMS

    return pa.record_batch([pa.array([b"x"] * count, pa.binary()), pa.nulls(count, pa.binary())], schema=ITEMS)


def gone(journal: Path) -> tuple[int, bool]:
    """Return what two verbs delete: the rows before the first one, and whether the reader is there."""
    return Journal(journal).reader(SOURCE).first, "export" in Journal(journal).readers(SOURCE)


@pytest.mark.parametrize("answer", [b"", b"\n", b"n\n", b"no\n", b"maybe\n"])
def test_without_a_yes_nothing_is_changed(weirpool: Weirpool, journal: Path, terminal: None, answer: bytes) -> None:
    for verb, question in (
        (("trim", "--to", "20"), "Delete 20 rows of 1 log? [y/N] "),
        (("forget", "export"), "Remove the reader export? [y/N] "),
    ):
        result = weirpool("journal", verb[0], str(journal), *verb[1:], stdin=answer)
        assert (result.code, result.out) == (1, b"")
        assert question in result.err and "nothing was changed" in result.err
        assert gone(journal) == (0, True)


@pytest.mark.parametrize(("options", "answer"), [((), b"y\n"), ((), b"YES\n"), (("--yes",), b""), (("-y",), b"")])
def test_with_a_yes_it_is_done(
    weirpool: Weirpool, journal: Path, terminal: None, options: tuple[str, ...], answer: bytes
) -> None:
    for verb in (("trim", "--to", "20"), ("forget", "export")):
        result = weirpool("journal", verb[0], str(journal), *verb[1:], *options, stdin=answer)
        assert result.code == 0 and ("[y/N]" in result.err) == (not options)
    assert gone(journal) == (20, False)


def test_without_a_terminal_a_verb_does_what_it_is_told(weirpool: Weirpool, journal: Path) -> None:
    for verb in (("trim", "--to", "20"), ("forget", "export")):
        assert weirpool("journal", verb[0], str(journal), *verb[1:]).err == ""
    assert gone(journal) == (20, False)


def test_nothing_to_delete_needs_no_question(weirpool: Weirpool, journal: Path, terminal: None) -> None:
    result = weirpool("journal", "trim", str(journal), "--to", "5")
    assert (result.code, result.err) == (0, "")
    assert result.out == b"s: nothing to delete; the first row is at 0\n"


def test_a_terminal_is_asked_and_a_pipe_is_not(journal: Path) -> None:
    command = [sys.executable, "-m", "weirpool", "journal", "trim", str(journal), "--to", "20"]
    here, there = pty.openpty()
    process = subprocess.Popen(command, stdin=there, stdout=subprocess.DEVNULL, stderr=there)
    os.close(there)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(here, 1_000)
    assert b"s: would delete 20 rows" in said and gone(journal)[0] == 0
    os.write(here, b"n\n")
    assert process.wait(60) == 1
    os.close(here)
    assert gone(journal)[0] == 0
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout.startswith(b"s: deleted 20 rows") and gone(journal)[0] == 20


def dump(journal: Path, out: Path) -> list[str]:
    return ["journal", "dump", str(journal), "--format", "parquet", "-o", str(out)]


def codegen(journal: Path, out: Path) -> list[str]:
    schema = out.with_name("schema.json")
    schema.write_text('{"services": {}}')
    return ["codegen", str(schema), "-o", str(out)]


def record(journal: Path, out: Path) -> list[str]:
    # There is no server: the file must outlive that, too.
    return ["record", "rsocket+tcp://127.0.0.1:1", "quotes", "-o", str(out)]


def bench(journal: Path, out: Path) -> list[str]:
    return ["bench", "rsocket+tcp://127.0.0.1:1", "quotes", "--html", str(out)]


WRITERS: list[Callable[[Path, Path], list[str]]] = [dump, codegen, record, bench]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_exists_is_not_replaced(
    weirpool: Weirpool, journal: Path, tmp_path: Path, writer: Callable[[Path, Path], list[str]]
) -> None:
    out = tmp_path / "out"
    out.write_text("precious")
    result = weirpool(*writer(journal, out))
    assert (result.code, result.out) == (2, b"")
    assert f"'{out}' exists; choose another name, or replace it with --yes" in result.err
    assert out.read_text() == "precious"


@pytest.mark.parametrize("writer", [dump, codegen])
def test_a_file_is_replaced_if_somebody_agrees(
    weirpool: Weirpool, journal: Path, tmp_path: Path, terminal: None, writer: Callable[[Path, Path], list[str]]
) -> None:
    out = tmp_path / "out"
    out.write_text("precious")
    result = weirpool(*writer(journal, out), stdin=b"n\n")
    assert result.code == 1 and f"{out} exists. Replace it? [y/N]" in result.err
    assert out.read_text() == "precious"
    for options, answer in (((), b"y\n"), (("--yes",), b"")):
        out.write_text("precious")
        assert weirpool(*writer(journal, out), *options, stdin=answer).code == 0
        assert out.read_bytes() != b"precious"


def test_generated_code_is_generated_again_without_a_question(
    weirpool: Weirpool, journal: Path, tmp_path: Path
) -> None:
    for language in ((), ("--ts", "rsocket")):
        out = tmp_path / f"client{len(language)}"
        for _ in range(2):
            assert weirpool(*codegen(journal, out), *language).code == 0


def test_devices_are_written_to(weirpool: Weirpool, journal: Path, tmp_path: Path) -> None:
    command = codegen(journal, tmp_path / "out")
    assert weirpool(*command[:-1], os.devnull).code == 0


def test_a_context_is_removed_after_a_question(weirpool: Weirpool, terminal: None) -> None:
    assert weirpool("context", "add", "dev", "rsocket+tcp://localhost:7878").code == 0
    result = weirpool("context", "rm", "dev", stdin=b"n\n")
    assert result.code == 1 and "Remove the context dev, rsocket+tcp://localhost:7878? [y/N]" in result.err
    assert weirpool("context", "show", "dev").code == 0
    assert weirpool("context", "rm", "dev", "-y").code == 0
    assert weirpool("context", "show", "dev").code == 2
