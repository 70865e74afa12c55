from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weirpool.spark.local import CONFIGURATION, session

from .drivers import FRUGAL
from .peers import Receiver, receiving


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: starting it takes longer than all of them."""
    made = session(
        "tests",
        master="local[2]",
        spark__driver__memory="1g",
        spark__driver__extraJavaOptions=f"{CONFIGURATION['spark.driver.extraJavaOptions']} {FRUGAL}",
        spark__sql__warehouse__dir=str(tmp_path_factory.mktemp("warehouse")),
        spark__sql__streaming__pollingDelay="10ms",
    )
    yield made
    made.stop()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The folder of a journal that is not there yet."""
    return tmp_path / "journal"


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    """A server of ours that notes what is asked of it."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(server: Receiver) -> Receiver:
    """The same, with nothing noted yet."""
    server.requests.clear()
    server.items.clear()
    server.fired.clear()
    return server
