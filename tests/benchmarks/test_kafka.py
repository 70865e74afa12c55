"""The comparison with Kafka: its costs are summed up, and delays are read from what Spark's sink wrote."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.kafka import comparison, programs
from benchmarks.kafka.broker import properties
from benchmarks.kafka.cold import Cold, Command, Start, run
from benchmarks.kafka.costs import STEPS, Costs, Measured, Step, timed
from benchmarks.kafka.delays import Delay, Delays, delays


def measured(name: str, source: float, log: float, spark: float, seconds: float = 2.0) -> Measured:
    """Return three rounds of 2 million rows, of which one is an outlier."""
    found = Measured(name, 2_000_000)
    for factor in (1, 1, 50):
        cpu = {"source": source * factor, "log": log * factor, "spark": spark * factor}
        for step in STEPS:
            idle = "spark" if step == "publish" else "source"
            found.steps[step].append(Step(seconds * factor, cpu | {idle: 0.0}))
    return found


def test_costs_are_medians_per_million_rows() -> None:
    costs = Costs([measured("Weirpool", 1.0, 0.5, 2.0), measured("Kafka", 6.0, 4.0, 2.0)], {"Kafka": "3"})
    lines = costs.lines()
    assert lines["publisher or producer"] == [0.5, 3.0]
    assert lines["collector or broker"] == [0.25, 2.0]
    assert lines["broker while Spark reads, batch"] == [0.25, 2.0]
    assert lines["source to Spark, batch"] == lines["source to Spark, streaming"] == [2.0, 8.0]
    assert lines["live, Spark"] == [1.0, 1.0]
    assert "source to Spark, batch                          2.00          8.00    4.00 x" in str(costs)


def test_each_way_of_ours_is_compared_with_the_last_chain() -> None:
    ours = [measured("Weirpool", 1.0, 0.5, 2.0), measured("Weirpool-columns", 0.2, 0.25, 2.0)]
    shown = str(Costs([*ours, measured("Kafka", 6.0, 4.0, 2.0)], {})).splitlines()
    assert shown[2].split() == ["Weirpool", "Weirpool-columns", "Kafka", "ratio"]
    assert shown[3].split()[-7:] == ["0.50", "0.10", "3.00", "6.00", "x", "30.00", "x"]


def test_table_of_each_step_shows_rates_and_processes() -> None:
    costs = Costs([measured("Weirpool", 1.0, 0.5, 2.0, 1.0), measured("Kafka", 6.0, 4.0, 2.0, 4.0)], {})
    publish, batch, _, live = costs.tables()
    assert live.rows[1].rate == 5e5
    assert (publish.rows[0].rate, publish.ratio(publish.rows[1])) == (2e6, 4.0)
    assert (publish.rows[1].client_us, publish.rows[1].server_us) == (3.0, 2.0)
    assert (batch.rows[1].client_us, batch.rows[1].server_us) == (1.0, 2.0)


def test_costs_can_be_saved() -> None:
    saved: Any = json.loads(json.dumps(Costs([measured("a", 1, 1, 1), measured("b", 1, 1, 1)], {}).as_object()))
    assert saved["rows"][1]["steps"]["batch"][2]["cpu"]["spark"] == 50


def test_step_takes_what_its_work_takes() -> None:
    done: list[int] = []
    began = time.process_time()

    def work() -> None:
        # Three ticks of the clock in /proc.
        while time.process_time() < began + 0.03:
            done.append(1)

    step = timed({"source": os.getpid()}, work)
    assert done and step.seconds > 0.02 and step.cpu["source"] > 0


def committed(folder: Path, name: str, events: dict[str, list[int]], earlier: str = "") -> str:
    """Write the entry of a micro-batch, and its files; each event is in microseconds."""
    log = folder / "_spark_metadata"
    log.mkdir(exist_ok=True)
    lines = earlier or "v1"
    for file, times in events.items():
        pq.write_table(pa.table({"event": pa.array(times, pa.int64())}), folder / file)
        lines += "\n" + json.dumps({"path": (folder / file).as_uri(), "size": 1, "action": "add"})
    (log / name).write_text(lines)
    (log / f".{name}.crc").touch()
    return lines


def test_delays_are_from_events_to_their_commits(tmp_path: Path) -> None:
    assert delays(tmp_path) == []
    committed(tmp_path, "0", {"a b.parquet": [1_000_000, 2_000_000]})
    lines = committed(tmp_path, "8", {"c.parquet": [3_000_000]})
    # Every tenth entry repeats the earlier ones.
    committed(tmp_path, "9.compact", {"d.parquet": [4_000_000]}, lines)
    committed(tmp_path, "10", {"e.parquet": []})
    at = [(tmp_path / "_spark_metadata" / name).stat().st_ctime for name in ("0", "0", "8", "9.compact")]
    assert delays(tmp_path) == pytest.approx([at[i] - (i + 1) for i in range(4)])


def test_delays_are_shown_in_milliseconds() -> None:
    table = Delays([Delay("Weirpool", [0.3, 0.1, 0.2])])
    assert str(table).splitlines()[-1].split() == ["Weirpool", "200", "300", "300", "3"]
    assert table.as_object()["rows"] == [{"name": "Weirpool", "seconds": [0.3, 0.1, 0.2]}]


def test_broker_listens_where_it_is_told() -> None:
    lines = properties("127.0.0.1:1", "127.0.0.1:2", Path("log")).splitlines()
    assert "listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2" in lines
    assert "log.dirs=log" in lines


def test_machine_without_java_is_skipped_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "find_java", lambda: None)
    assert list(comparison.measure(1)) == []
    assert capsys.readouterr().err == "skipped kafka: Java 17 or newer is not installed\n"


def test_command_takes_what_its_process_takes(tmp_path: Path) -> None:
    given = tmp_path / "lines"
    given.write_bytes(b"1\n2\n")
    check = "import sys; sys.exit(sys.stdin.read() != '1\\n2\\n')"
    start = run([sys.executable, "-c", check], given)
    assert start.cpu > 0 and start.seconds > 0


def test_command_that_fails_ends_the_comparison(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="failed with 3"):
        run([sys.executable, "-c", "import sys; sys.exit(3)"], os.devnull)


def test_cold_commands_show_medians() -> None:
    command = Command("weirpool collect", [Start(2.0, cpu) for cpu in (1.0, 1.5, 9.0)], [0.25, 0.5, 9.0])
    shown = str(Cold([command]))
    assert shown.splitlines()[-1].split() == ["weirpool", "collect", "1.50", "0.50", "2.00"]
    assert json.loads(json.dumps(Cold([command]).as_object()))["rows"][0]["starts"][2]["cpu"] == 9.0
