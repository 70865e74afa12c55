"""Marks the tests of laboratories, which `make labs` runs, and not `make test`.

A change needs an answer within minutes, and a laboratory searches for longer, starts many processes, or waits for
timeouts of the system. A test has the mark `lab` if it is in a folder or file that is listed here, or if it is named
here, with all of its cases. Of long tables, a sample is run: see tests/sampling.py.
"""

from __future__ import annotations

from typing import Final

import pytest

__all__ = ["LABS", "is_lab", "mark_lab"]

LABS: Final = {
    "chaos": "real collectors and links that are stopped and broken",
    "cluster": "machines of a cluster in processes of their own",
    "cli/test_demo.py": "the whole demonstration",
    "disk": "power cuts at every step",
    "docs/test_consoles.py": "the commands of all pages",
    "docs/test_programs.py": "the programs of all pages",
    "docs/test_site.py": "the whole site, in a browser",
    "docs/test_tutorial.py": "the commands of the tutorial",
    "feeds/test_supervisor.py::test_hundreds_of_feeds_in_one_process": "hundreds of feeds",
    "floods": "a process that is flooded, by protocol and transport",
    "fuzz/test_saboteurs.py": "guards that are removed",
    "hostile/test_crowds.py": "many clients at once",
    "hostile/test_floods.py": "floods, by protocol and transport",
    "hostile/test_mutations.py": "mutated input of whole sessions",
    "hostile/test_journals.py": "damage anywhere in a journal",
    "journal/test_damage.py": "damage anywhere in a log",
    "rolling": "servers that are replaced under load, in processes of their own",
    "saboteurs": "known defects, each of which a laboratory must find",
    "schema/test_codegen.py::test_type_checkers_find_nothing": "a run of mypy for each client",
    "schema/test_codegen_served.py::test_type_checkers_check_users_of_a_client": "a run of mypy",
    "sim/test_refusals.py": "more than 100,000 requests that are refused",
    "sim/test_river_cuts.py::test_a_cut_at_every_byte_changes_nothing": "all bytes",
    "sim/test_river_machine.py::test_long_sequences_of_verbs_and_cuts": "long sequences of operations",
    "sim/test_river_sessions.py::test_100_000_calls_over_200_dropped_links": "100,000 calls",
    "sim/test_throttled.py": "links that take seconds for a message",
    "spark/test_datasource_connect.py": "a server of Spark Connect in a process of its own",
    "spark/test_datasource_plans.py::test_one_frame_has_the_same_rows_in_every_plan": "dozens of queries",
    "spark/test_driver_outages.py": "drivers without a journal or a collector",
    "spark/test_reading_lost_executors.py": "executors that are killed",
    "spark/test_sink.py::test_killed_drivers_and_collectors_leave_every_row_once": "processes that are killed",
    "spark/test_sink_secrets.py": "all that a driver writes, in a process of its own",
    "spark/test_source.py::test_a_loss_is_recorded_before_spark_commits": "drivers that are killed",
    "spark/test_source.py::test_after_a_kill_every_row_is_there_once": "drivers that are killed",
    "sync/test_typed_peer.py::test_types_of_user_code_are_checked": "a run of mypy",
    "test_distribution.py": "what is published, installed from files",
    "test_reach.py": "laboratories with coverage",
    "testing/test_publisher_mutants.py": "publishers with a fault, each of which the kit must find",
    "transports/test_every.py": "every transport, with all that it must carry",
    "transports/test_quic.py::test_a_large_channel_travels": "200,000 items",
    "transports/test_quic.py::test_a_large_payload_travels": "megabytes over QUIC",
    "untrusted/test_bombs.py": "data that grows when it is decoded",
    "untrusted/test_pages.py": "hostile servers, in a browser",
}
"""Folders, files and tests below tests/, each with what it searches or waits for."""


def is_lab(path: str, name: str = "") -> bool:
    """Return True if a test, by its file below tests/ and the name of its function, belongs to a laboratory."""
    return not {path, path.partition("/")[0], f"{path}::{name}"}.isdisjoint(LABS)


def mark_lab(item: pytest.Item, path: str) -> None:
    """Mark a test in the file `path` if it belongs to a laboratory."""
    if is_lab(path, getattr(item, "originalname", None) or item.name):
        item.add_marker("lab")
