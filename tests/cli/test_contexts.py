from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool
from weirpool import LocalError
from weirpool.cli.contexts import Contexts, Saved, load, offered, save, with_context
from weirpool.cli.parser import command

DEV = "rsocket+tcp://127.0.0.1:7878"


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the user's configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("WEIRPOOL_CONTEXT", raising=False)
    return tmp_path / "weirpool"


def arguments(line: str) -> list[str]:
    given = line.split()
    return with_context(given, command(given))


def test_contexts_are_kept_in_a_file_of_the_user(configuration: Path) -> None:
    assert load() == Contexts()
    save(Contexts("dev", {"dev": Saved(DEV, {"auth": "bearer:secret"})}))
    assert load().find("dev").options == {"auth": "bearer:secret"}
    assert [(path.name, path.stat().st_mode & 0o777) for path in configuration.iterdir()] == [("contexts.json", 0o600)]
    assert offered() == ["@dev"]


def test_file_that_is_not_valid_is_named(configuration: Path) -> None:
    configuration.mkdir()
    for text in ("{", '{"contexts": []}', '{"current": "dev", "contexts": {}, "current": "prod"}'):
        (configuration / "contexts.json").write_text(text)
        with pytest.raises(LocalError, match=r"contexts\.json' are not valid"):
            load()
    assert offered() == []


def test_unknown_context_suggests_another() -> None:
    save(Contexts("", {"prod": Saved(DEV)}))
    with pytest.raises(LocalError, match="there is no context 'prdo'; did you mean 'prod'"):
        load().find("prdo")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("call echo -d hi", "call @dev echo -d hi"),
        ("call --debug echo", "call @dev --debug echo"),
        ("upload sum @numbers.txt", "upload @dev sum @numbers.txt"),
        ("call @other echo", "call @other echo"),
        (f"call --debug {DEV} echo", f"call --debug {DEV} echo"),
        ("call echo --context other", "call @other echo --context other"),
        ("call echo --context=other", "call @other echo --context=other"),
        ("call --help", "call --help"),
        # What needs no server is left alone.
        ("decode 00", "decode 00"),
        ("collect --config feeds.toml", "collect --config feeds.toml"),
        ("collect --context other count", "collect @other --context other count"),
        ("record count -o file", "record @dev count -o file"),
        (
            f"record --listen=rsocket+tcp://:0 --to {DEV} -o file",
            f"record --listen=rsocket+tcp://:0 --to {DEV} -o file",
        ),
        ("record --listen URL --to @dev -o file", "record --listen URL --to @dev -o file"),
    ],
)
def test_context_replaces_a_url_that_is_left_out(line: str, expected: str) -> None:
    save(Contexts("dev", {"dev": Saved(DEV)}))
    assert arguments(line) == expected.split()


def test_environment_names_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    assert arguments("call echo") == ["call", "echo"]
    monkeypatch.setenv("WEIRPOOL_CONTEXT", "prod")
    assert arguments("call echo") == ["call", "@prod", "echo"]


def test_missing_url_says_what_may_stand_for_it(weirpool: Weirpool) -> None:
    hint = "; begin with a URL, or choose a server with `weirpool context use NAME`; see weirpool call --help\n"
    assert weirpool("call", "echo").err.endswith(hint)
    assert weirpool("call", DEV).err == "weirpool: Missing argument 'ROUTE'; see weirpool call --help\n"


def test_context_and_url_together_are_refused() -> None:
    # The credentials of a context are for its own server.
    with pytest.raises(LocalError, match="use it without a URL"):
        arguments(f"call --context dev {DEV} echo")
