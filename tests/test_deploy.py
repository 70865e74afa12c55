"""The examples of deploy/: that they fit the command line, its HTTP server and its time to stop."""

from __future__ import annotations

import shlex
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from weirpool.archive.sealer import STOP_SECONDS as SEALING_SECONDS
from weirpool.cli.parser import long_options
from weirpool.feeds.file import parse
from weirpool.feeds.http import PAGE
from weirpool.feeds.running import TICK_SECONDS
from weirpool.feeds.workers import STOP_SECONDS

DEPLOY = Path(__file__).parent.parent / "deploy"
PATHS = {*PAGE, "/status", "/metrics", "/healthz", "/readyz"}


def options(arguments: list[str]) -> set[str]:
    return {each.removeprefix("--").partition("=")[0] for each in arguments if each.startswith("--")}


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """The objects of the Kubernetes manifest, by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes/collector.yaml").read_text())}


@pytest.fixture(scope="module")
def unit() -> RawConfigParser:
    """The systemd unit. Of keys that occur several times, it has the last one."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "systemd/weirpool-collect.service")
    return parser


def test_example_of_feeds_is_valid() -> None:
    path = DEPLOY / "feeds.toml"
    file = parse(path, path.read_text())
    assert file.problems == {}
    assert set(file.feeds) == {"flights", "quotes"}


def test_unit_uses_options_that_exist(unit: RawConfigParser) -> None:
    for key in ("ExecStart", "ExecStartPre"):
        program, verb, *arguments = shlex.split(unit["Service"][key].removeprefix("-"))
        assert (program, verb) == ("/usr/bin/weirpool", "collect")
        assert options(arguments) <= long_options()["collect"]


def test_unit_starts_although_the_check_finds_a_bad_feed(unit: RawConfigParser) -> None:
    assert unit["Service"]["ExecStartPre"].startswith("-")


def test_unit_waits_longer_than_the_collector(unit: RawConfigParser) -> None:
    service = unit["Service"]
    assert float(service["TimeoutStopSec"]) > STOP_SECONDS + SEALING_SECONDS
    assert float(service["WatchdogSec"]) >= 10 * TICK_SECONDS
    assert service["Type"] == "notify"


def test_manifest_has_valid_feeds(manifest: dict[str, Any]) -> None:
    file = parse(Path("/etc/weirpool/feeds.toml"), manifest["ConfigMap"]["data"]["feeds.toml"])
    assert file.problems == {}
    [auth] = [feed.auth for feed in file.feeds.values()]
    assert auth is not None
    assert Path(auth.bearer.file).name in manifest["Secret"]["stringData"]  # type: ignore[union-attr,arg-type]


def test_manifest_fits_the_collector(manifest: dict[str, Any]) -> None:
    pod = manifest["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["args"][0] == "collect"
    assert options(container["args"]) <= long_options()["collect"]
    assert {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")} <= PATHS
    assert pod["terminationGracePeriodSeconds"] > STOP_SECONDS + SEALING_SECONDS
    assert manifest["StatefulSet"]["spec"]["replicas"] == 1
    # Every volume is declared, and every mounted one exists.
    declared = {volume["name"] for volume in pod["volumes"]}
    claimed = {each["metadata"]["name"] for each in manifest["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == declared | claimed
    selector = manifest["StatefulSet"]["spec"]["selector"]["matchLabels"]
    assert manifest["Service"]["spec"]["selector"] == selector
    assert manifest["StatefulSet"]["spec"]["template"]["metadata"]["labels"] == selector
