"""Six feeds, a store and a cluster of Spark. The machine that collects, whose disk nobody else sees, is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.children import ROOT

from tests.objects.stores import CREDENTIALS, new_uri, s3_server
from tests.saboteurs.saboteur import Saboteur
from tests.transports.certificates import Certificates

from .laboratory import Laboratory
from .mistakes import SABOTEURS
from .spark import Cluster, cluster

ABOUT_ROWS = re.compile(r"lost=[1-9]|positions|sealed rows|history that|: audit: ")
PAGE = ROOT / "docs" / "explanation" / "reliability.md"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The endpoint of a store."""
    with pytest.MonkeyPatch.context() as patch, s3_server() as endpoint:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield endpoint


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of everybody."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Cluster]:
    """A running cluster."""
    at = certificates.folder
    shown = {"CA": f"{at}/ca.pem", "CERT": f"{at}/cert.pem", "KEY": f"{at}/key.pem"}
    journal = {f"WEIRPOOL_JOURNAL_{name}": path for name, path in shown.items()}
    with cluster(tmp_path_factory.mktemp("cluster"), {**CREDENTIALS, **journal}) as made:
        yield made


@pytest.fixture
def laboratory(spark_cluster: Cluster, certificates: Certificates, s3: str, tmp_path: Path) -> Laboratory:
    """A laboratory with sound code."""
    return Laboratory(spark_cluster, certificates, tmp_path, new_uri(s3))


def test_no_worker_sees_the_disk_of_a_collector(spark_cluster: Cluster) -> None:
    assert spark_cluster.hidden, "a folder can be hidden neither by a mount nor by its mode; run this as root"
    (spark_cluster.disks / "seen").touch()
    assert spark_cluster.driver.ask("look", folder=str(spark_cluster.disks)) == [[]] * 5


def test_each_row_is_in_the_table_and_the_history_once(laboratory: Laboratory) -> None:
    assert list(laboratory.breaches()) == []


@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda saboteur: saboteur.name.replace(" ", "-"))
def test_the_laboratory_finds_a_known_mistake(laboratory: Laboratory, saboteur: Saboteur) -> None:
    with closing(replace(laboratory, saboteur=saboteur.name).breaches()) as found:
        breach = next(found, "nothing")
    # A cluster that does not work finds nothing.
    assert ABOUT_ROWS.search(breach), f"it is not found that {saboteur.mistake}: {breach}"


def test_the_page_lists_all_mistakes() -> None:
    rows = PAGE.read_text().splitlines()
    expected = [f"| {each.name} | {each.mistake} | – | {each.laboratory} |" for each in SABOTEURS]  # noqa: RUF001
    assert [row for row in expected if row not in rows] == []
