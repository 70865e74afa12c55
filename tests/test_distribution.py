"""What is published: the source distribution, a wheel of it, its SBOM, and what users do with them first."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from email.parser import BytesParser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from cyclonedx.model.bom import Bom
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.sbom import embed

from tests.installations import REQUIRED, ROOT
from tests.test_docs import blocks

SECONDS = 240
EPOCH = "1700000000"
LEFT_OUT = shutil.ignore_patterns(
    ".venv", ".git", "build", "data", "results", "*.egg-info", "__pycache__", "*.so", ".*_cache", ".hypothesis",
    "node_modules", "target", ".coverage*",
)  # fmt: skip
WORKFLOW = ROOT / ".github" / "workflows" / "wheels.yml"

pytestmark = pytest.mark.slow


def environment(**more: str) -> dict[str, str]:
    """Return the environment without what selects a build or finds our sources."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("WEIRPOOL_", "PYTHONPATH"))} | more


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=SECONDS, check=False
    )


def build(folder: Path) -> dict[str, Path]:
    """Build what is published of a copy of the sources, with a plain wheel; return the files by their suffixes."""
    shutil.copytree(ROOT, folder / "sources", ignore=LEFT_OUT)
    for path in (folder / "sources" / "src").rglob("*.c"):
        path.unlink()
    variables = {"WEIRPOOL_NO_EXTENSIONS": "1", "SOURCE_DATE_EPOCH": EPOCH}
    made = run(sys.executable, "-m", "tools.dist", folder / "dist", cwd=folder / "sources", **variables)
    assert made.returncode == 0, made.stderr
    return {"".join(Path(name).suffixes[-2:]).removeprefix(".0"): Path(name) for name in made.stdout.split()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def source(built: dict[str, Path]) -> Path:
    return built[".tar.gz"]


@pytest.fixture(scope="module")
def wheel(built: dict[str, Path]) -> Path:
    return next(path for path in built.values() if path.suffix == ".whl")


@pytest.fixture(scope="module")
def unpacked(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    [unpacked] = folder.iterdir()
    return unpacked


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    assert made.returncode == 0, made.stderr
    pip = [sys.executable, "-m", "pip", "--python", folder / "venv" / "bin" / "python"]
    installed = run(*pip, "install", "--no-deps", "--no-index", "--no-cache-dir", "--quiet", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return folder / "venv"


def closure(names: list[str]) -> Iterator[str]:
    """Yield packages and what they require, without extras."""
    seen: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name not in seen:
            seen.add(name)
            yield name
            requirements = map(Requirement, distribution(name).requires or [])
            names += [each.name for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]


@pytest.fixture(scope="module")
def commands(venv: Path) -> Path:
    """The folder of commands of an environment that has the wheel and what it requires, without the network."""
    [site] = venv.glob("lib/python*/site-packages")
    for name in closure(list(REQUIRED)):
        for file in distribution(name).files or ():
            first = file.parts[0]
            if not first.startswith("..") and not (site / first).exists():
                (site / first).symlink_to(Path(str(distribution(name).locate_file(first))))
    return venv / "bin"


# --- the source distribution ---


def test_source_distribution_has_all_that_is_needed_to_test_it(source: Path) -> None:
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("benchmarks", "chaos", "deploy", "docs", "examples", "fuzz", "interop", "src", "tests", "tools", "walk")
    wanted = set()
    for folder, _, names in ((Path(place), *rest) for part in folders for place, *rest in os.walk(ROOT / part)):
        left_out = LEFT_OUT(str(folder), [*folder.relative_to(ROOT).parts, *names])
        if not left_out & set(folder.relative_to(ROOT).parts):
            wanted |= {(folder / name).relative_to(ROOT).as_posix() for name in set(names) - left_out}
    wanted = {name for name in wanted if not (name.startswith("src/") and name.endswith(".c"))}
    wanted = {name for name in wanted if not re.match(r"interop/rust/Cargo\.lock|examples/lakehouse/warehouse/", name)}
    assert sorted(wanted - packed) == []
    assert {"Makefile", "requirements.lock", "mkdocs.yml", "CHANGELOG.md", "SECURITY.md", ".ci/run"} <= packed
    assert [name for name in packed if name.endswith((".so", ".pyc"))] == []


def test_source_distribution_tests_itself(unpacked: Path) -> None:
    tests = ["tests/test_urls.py", "tests/wire/test_framing.py", "tests/playground", "tests/cli/test_output.py"]
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
    result = run(sys.executable, "-m", "pytest", *options, *tests, cwd=unpacked, PYTHONPATH=str(unpacked / "src"))
    assert result.returncode == 0, result.stdout
    assert re.search(r"\d\d+ passed", result.stdout)


def test_other_folder_and_other_times_give_the_same_bytes(
    built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = os.umask(0o077)
    try:
        again = build(tmp_path_factory.mktemp("another-folder-with-a-long-name"))
    finally:
        os.umask(before)
    assert {path.name for path in built.values()} == {path.name for path in again.values()}
    for suffix, path in built.items():
        assert path.read_bytes() == again[suffix].read_bytes(), path.name


# --- the wheel ---


def test_metadata_has_links_and_versions(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        told = BytesParser().parsebytes(archive.read(name))
    links = dict(text.split(", ") for text in told.get_all("Project-URL") or [])
    assert {"Homepage", "Documentation", "Changelog", "Source", "Issues", "Security"} <= set(links)
    assert all(link.startswith("https://") for link in links.values())
    classifiers = told.get_all("Classifier") or []
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)} <= set(classifiers)
    assert told.get_payload(decode=True) == (ROOT / "README.md").read_bytes()


def test_every_link_of_the_readme_is_absolute_and_leads_somewhere() -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)|<img[^>]* src=\"([^\"]+)\"", text, re.MULTILINE)
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    found = ["".join(each) for each in links]
    named = set(re.findall(r"\]\[([^\]]+)\]", text))
    assert named == set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    assert len(found) > 5
    assert [link for link in found if not link.startswith("https://")] == []
    for link in found:
        if link.startswith(f"{home}/blob/main/") or link.startswith(f"{home}/tree/main/"):
            place, _, anchor = link.split("/main/", 1)[1].partition("#")
            assert (ROOT / place).exists(), link
            titles = re.findall(r"^#+ (.+)$", (ROOT / place).read_text(), re.MULTILINE) if anchor else []
            assert not anchor or anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in titles}


def test_record_has_the_hash_of_every_file(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        lines = archive.read(names[-1]).decode().splitlines()
        for line in lines[:-1]:
            name, digest, size = line.rsplit(",", 2)
            content = archive.read(name)
            assert len(content) == int(size)
            expected = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={expected}"
    assert names[-1].endswith(".dist-info/RECORD")
    assert [line.rsplit(",", 2)[0] for line in lines] == names


def test_wheel_contains_its_sbom(built: dict[str, Path], wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if "/sboms/" in name]
        text = archive.read(name).decode()
    assert name == "weirpool-0.1.0.dist-info/sboms/weirpool.cdx.json"
    beside = wheel.with_name(f"{wheel.stem}.cdx.json")
    assert beside.read_text() == text
    bom = Bom.from_json(data=json.loads(text))  # type: ignore[attr-defined]
    parts = {part.name: part for part in bom.components}
    assert (bom.metadata.component.name, bom.metadata.component.version) == ("weirpool", "0.1.0")
    assert str(bom.metadata.timestamp) == "2023-11-14 22:13:20+00:00"
    assert set(REQUIRED) <= {name for name, part in parts.items() if part.scope.value == "required"}
    assert parts["pyspark"].scope.value == "optional"
    assert "uvloop" in parts and "weirpool" not in parts


def test_sbom_lists_compiled_modules_and_what_is_in_them(tmp_path: Path) -> None:
    path = tmp_path / "weirpool-1.0-cp311-cp311-linux_x86_64.whl"
    metadata = "Metadata-Version: 2.4\nName: weirpool\nVersion: 1.0\nRequires-Dist: rich>=13\n\n"
    files = {
        "weirpool/one.py": b"",
        "weirpool/one.cpython-311-x86_64-linux-gnu.so": b"\x7fELF _cython_3_3_1 ",
        "weirpool-1.0.dist-info/METADATA": metadata.encode(),
        "weirpool-1.0.dist-info/RECORD": b"",
    }
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    embed(path)
    first = path.read_bytes()
    parts = {part["name"]: part for part in json.loads(embed(path).read_text())["components"]}
    assert path.read_bytes() == first
    assert set(parts) == {"cython", "weirpool/one.cpython-311-x86_64-linux-gnu.so", "rich"}
    assert parts["cython"]["version"] == "3.3.1"
    digest = hashlib.sha256(files["weirpool/one.cpython-311-x86_64-linux-gnu.so"]).hexdigest()
    assert parts["weirpool/one.cpython-311-x86_64-linux-gnu.so"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


# --- what users do first ---


def test_without_its_requirements_the_command_is_one_line(wheel: Path, tmp_path: Path) -> None:
    # As after `pip install --no-deps`.
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    result = run(sys.executable, "-S", "-m", "weirpool", "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"weirpool: the package \w+ is missing; run: pip install weirpool\n", result.stderr)


def test_installed_wheel_passes_the_smoke_test(commands: Path, tmp_path: Path) -> None:
    result = run(commands / "python", ROOT / "tests" / "smoke.py", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_doctor_finds_no_problem_after_a_plain_installation(commands: Path, tmp_path: Path) -> None:
    result = run(commands / "weirpool", "doctor", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "spark: not installed (optional); pip install 'weirpool[spark]'\n" in result.stdout


def test_first_commands_of_the_readme_work(commands: Path, tmp_path: Path) -> None:
    [first, *_] = blocks(ROOT / "README.md", "console")
    lines = [line.removeprefix("$ ").partition("#")[0].strip() for line in first.splitlines() if line.startswith("$ ")]
    assert lines[2:4] == ["WEIRPOOL_NO_EXTENSIONS=1 pip install .", "weirpool playground"]
    with subprocess.Popen(
        [commands / "weirpool", "playground", "rsocket+tcp://127.0.0.1:0"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            url = server.stdout.readline().removeprefix("listening on ").strip()
            for line in lines[4:]:
                assert line.split()[2] == "rsocket+tcp://127.0.0.1:7878" or "|" in line
                shown = line.replace("rsocket+tcp://127.0.0.1:7878", url)
                # A stream of prices never ends.
                shown += " --take 3" if "ticker" in line and "--take" not in line else ""
                path = f"{commands}:{os.environ['PATH']}"
                result = run("sh", "-c", shown, cwd=tmp_path, PATH=path)
                assert (result.returncode, result.stderr) == (0, ""), line
                assert result.stdout
        finally:
            server.kill()


# --- the workflow ---


def test_workflow_and_configuration_use_the_smoke_test() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert shlex.split(tool["test-command"]) == ["python", "{project}/tests/smoke.py", "--compiled"]
    assert {f"cp3{minor}-*" for minor in (11, 12, 13, 14)} | {"cp314t-*"} == set(tool["build"].split())
    for options in (tool, *(each for each in tool.values() if isinstance(each, dict) and "environment" in each)):
        assert options["environment"]["WEIRPOOL_REQUIRE_EXTENSIONS"] == "1"
    text = WORKFLOW.read_text()
    for part in (
        "tests/smoke.py",
        "cibuildwheel",
        "tools.dist",
        "tools.sbom",
        "attest-build-provenance",
        "id-token: write",
    ):
        assert part in text
    assert "secrets." not in text
