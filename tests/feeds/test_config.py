from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.errors import LocalError
from weirpool.feeds.config import Auth, FeedConfig, GroupConfig, Storage, Tls
from weirpool.feeds.values import Reference, Seconds


def config(**options: object) -> FeedConfig:
    return FeedConfig(**{"url": "rsocket+tcp://host.example:7878", "route": "r", "journal": "data"} | options)


@pytest.mark.parametrize(
    ("template", "source"),
    [
        ("{name}", "flights"),
        ("{host}-{route}", "host.example-air-traffic"),
        ("fixed", "fixed"),
    ],
)
def test_source_is_a_template(template: str, source: str) -> None:
    assert config(source=template, route="air/traffic").source_of("flights") == source


@pytest.mark.parametrize("template", ["{nme}", "{}", "a/b", "", "{route}"])
def test_invalid_source_is_an_error(template: str) -> None:
    with pytest.raises((LocalError, ValueError), match=r"use|name"):
        config(source=template, route="//").source_of("flights")


def test_paths_start_from_the_folder_of_the_file() -> None:
    placed = config(tls=Tls(cafile="ca.pem", cert="/abs/cert.pem")).at(Path("/etc/weirpool"))
    assert placed.journal == "/etc/weirpool/data"
    assert placed.tls == Tls(cafile="/etc/weirpool/ca.pem", cert="/abs/cert.pem")
    assert config(journal="file:///data").at(Path("/etc")).journal == "file:///data"


def test_equal_configurations_are_the_same_feed() -> None:
    assert config(settings={"credit": 5}) == config(settings={"credit": 5})
    assert config(settings={"credit": 5}) != config(settings={"credit": 6})


@pytest.mark.parametrize(
    "fields",
    [{}, {"bearer": "a", "env": "B"}, {"user": "u"}, {"password": "p"}, {"user": "u", "password": "p", "file": "f"}],
)
def test_credentials_have_one_form(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="password"):
        Auth(**fields)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("s3://key:geheim@bucket/p", "contains credentials"),
        ("s3://bucket/p?secret_key=geheim", "unknown option 'secret_key'"),
        ("s3:///p", "names no bucket"),
    ],
)
def test_invalid_store_is_refused_before_anything_is_sealed(store: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^store: .*{message}") as refused:
        Storage(store=store)
    assert "geheim" not in str(refused.value)


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(ValueError, match="needs the store"):
        Storage(durable="remote")
    with pytest.raises(ValueError, match="add cert"):
        Tls(key="key.pem")
    with pytest.raises(ValueError, match="at least 1"):
        config(credit=0)


def test_groups_are_checked() -> None:
    key = Reference(env="KEY")
    assert GroupConfig("edge", key).patience == 10
    with pytest.raises(LocalError, match="group"):
        GroupConfig("../edge", key)
    with pytest.raises(ValueError, match="at least 1 s"):
        GroupConfig("edge", key, Seconds(0.5))
