from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, write
from weirpool import JournalMissing
from weirpool.archive import ArchiveReader
from weirpool.journal.opening import open_log


def test_a_log_of_a_folder_is_opened(tmp_path: Path) -> None:
    write(tmp_path, 3, 4)
    reader = open_log(tmp_path, SOURCE)
    assert isinstance(reader, ArchiveReader)
    assert [int(data) for batch in reader.read(0, 7) for data in batch["data"].to_pylist()] == [*range(7)]


def test_a_log_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing, match=f"source={SOURCE}: there is no such log"):
        open_log(tmp_path, SOURCE)


def test_reading_imports_little(tmp_path: Path) -> None:
    write(tmp_path, 2_000)
    code = (
        "import sys\n"
        "from weirpool.journal.opening import open_log\n"
        f"reader = open_log({str(tmp_path)!r}, {SOURCE!r})\n"
        "slow = {'asyncio', 'pyarrow.compute', 'pyarrow.parquet', 'weirpool.journal.writer'}\n"
        "print(sum(batch.num_rows for batch in reader.read(0, 2_000)), slow & {*sys.modules})\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    assert printed.stdout == "2000 set()\n"
