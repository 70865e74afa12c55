"""What runs on the forge: pinned actions, targets that exist, and each Python that is promised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_one_has_one_version(path: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if "uses:" in line]
    assert lines and [line for line in lines if not PINNED.fullmatch(line)] == []
    everywhere = {each for one in WORKFLOWS for each in PINNED.findall(one.read_text())}
    assert len({each.partition("@")[0] for each in everywhere}) == len(everywhere)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_may_only_read_and_runs_targets_that_exist(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    run = [target for step in steps(workflow) for target in re.findall(r"\bmake ([a-z]+)", step.get("run", ""))]
    assert [target for target in run if target not in targets] == []


def test_a_change_is_checked_on_each_python_that_is_promised() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    # YAML reads `on` as true.
    assert {"pull_request", "push"} <= set(workflow[True])
    said = re.search(r"whole test suite runs on Linux with CPython 3\.(\d+) to 3\.(\d+)", " ".join(
        (ROOT / "docs" / "how-to" / "install.md").read_text().split()
    ))  # fmt: skip
    assert said is not None
    promised = [f"3.{minor}" for minor in range(int(said[1]), int(said[2]) + 1)]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    run = {step.get("run") for step in steps(workflow)}
    assert {"make lint", "make test", "make docs"} <= run


def test_a_subject_that_is_too_long_is_refused_by_the_hook() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    [subject] = [hook["entry"] for hook in hooks if hook["id"] == "subject"]
    assert re.search(subject, f"{'x' * 73}\n")
    assert not re.search(subject, f"{'x' * 72}\n\n{'y' * 80}\n")
