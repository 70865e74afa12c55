"""Reads a file of feeds. Each error names the file, the feed and the key, and what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import LocalError
from ..journal.layout import check_name
from ..protocols import EXAMPLE_URL
from .config import Auth, FeedConfig, GroupConfig, Setup, Storage, Tls
from .request import check
from .retry import Retry
from .serve import Serve
from .values import convert

__all__ = ["FeedsFile", "load", "parse"]

TABLES: Final = {"auth": Auth, "retry": Retry, "setup": Setup, "storage": Storage, "tls": Tls}
"""Tables within a feed that have fixed keys."""
MERGED: Final = ("retry", "storage", "tls", "settings", "headers")
"""Tables whose defaults are merged key by key. Credentials are replaced as a whole."""
EXAMPLE: Final = f'[feed.NAME] with url = "{EXAMPLE_URL}", route = "..." and journal = "..."'
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")


@dataclass(frozen=True)
class FeedsFile:
    """The content of a file of feeds.

    Attributes:
        path: The file.
        text: Its text.
        feeds: The valid and enabled feeds, by name.
        disabled: The names of feeds with ``enabled = false``.
        problems: What is wrong with each other feed, by name.
        group: The collectors that stand in for each other; None if this one is alone.
        serve: How the journals are served; None: they are not.

    """

    path: Path
    text: str
    feeds: Mapping[str, FeedConfig]
    disabled: frozenset[str]
    problems: Mapping[str, str]
    group: GroupConfig | None = None
    serve: Serve | None = None


def load(path: Path) -> FeedsFile:
    """Read a file of feeds; see `parse`. `LocalError` if it cannot be read."""
    try:
        return parse(path, path.read_bytes().decode())
    except OSError as error:
        raise LocalError(f"cannot read the feeds in {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LocalError(f"{path}: not valid TOML: {error}") from None


def parse(path: Path, text: str) -> FeedsFile:
    """Return the content of a file of feeds. Feeds with errors are among the `problems`.

    Args:
        path: The file: paths in it start from its folder.
        text: Its text.

    Raises:
        LocalError: It is not valid TOML, it has unknown tables or no feeds, or its defaults are not valid.

    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise LocalError(f"{path}: not valid TOML: {error}") from None
    defaults, tables = table.pop("defaults", {}), table.pop("feed", {})
    serve = _table(path, "serve", table.pop("serve", None), Serve)
    group = _table(path, "group", table.pop("group", None), GroupConfig)
    for key in table:
        hint = _hint(key, ("defaults", "feed", "group", "serve"))
        raise LocalError(f"{path}: {key!r} is not known{hint}; a feed is {EXAMPLE}")
    if not isinstance(defaults, dict) or not isinstance(tables, dict) or not tables:
        raise LocalError(f"{path}: there are no feeds; add {EXAMPLE}")
    try:
        _converted({"url": "", "route": "", "journal": ""} | defaults)
    except (LocalError, ValueError) as error:
        raise LocalError(f"{path}: defaults: {error}") from None
    feeds: dict[str, FeedConfig] = {}
    problems: dict[str, str] = {}
    for name, own in tables.items():
        try:
            feeds[name] = _feed(name, _merged(defaults, own), path.parent)
        except (LocalError, ValueError) as error:
            problems[name] = f"{path}: feed {name!r}: {error}"
    disabled = frozenset(name for name, config in feeds.items() if not config.enabled)
    enabled = {name: config for name, config in feeds.items() if name not in disabled}
    for name, problem in [*_shared_logs(path, enabled), *_misplaced(path, enabled, group)]:
        enabled.pop(name, None)
        problems[name] = problem
    return FeedsFile(path, text, enabled, disabled, problems, group, serve and serve.at(path.parent))


def _table(path: Path, name: str, table: object, kind: Any) -> Any:
    """Return a table of the whole file; None if there is none, and `LocalError` if it is not valid."""
    if table is None:
        return None
    try:
        if isinstance(table, dict):
            _check_keys(table, kind, "")
        return convert(table, kind)
    except (LocalError, msgspec.ValidationError) as error:
        raise LocalError(f"{path}: {name}: {_told(str(error))}") from None


def _misplaced(path: Path, feeds: Mapping[str, FeedConfig], group: GroupConfig | None) -> Iterator[tuple[str, str]]:
    """Yield the feeds that are not stored where their group is, with the reason."""
    place: tuple[str, str | None] | None = None
    for name, config in feeds.items():
        remote = config.storage is not None and config.storage.durable == "remote"
        where = f"{path}: feed {name!r}: storage.durable"
        if remote and group is None:
            yield name, f'{where}: "remote" needs the table [group], with name and key'
        elif group is not None and not remote:
            yield name, f'{where}: must be "remote" in a file with [group]; collect local feeds with another file'
        elif remote and config.storage is not None:
            place = place or (config.journal, config.storage.store)
            if place != (config.journal, config.storage.store):
                yield name, f"{path}: feed {name!r}: all feeds of a group have the same journal and storage.store"


def _merged(defaults: dict[str, Any], own: object) -> dict[str, Any]:
    """Return the table of a feed with the defaults of what it does not set."""
    if not isinstance(own, dict):
        raise LocalError(f"it must be a table: {EXAMPLE}")
    merged = defaults | own
    for key in MERGED:
        if isinstance(defaults.get(key), dict) and isinstance(own.get(key), dict):
            merged[key] = defaults[key] | own[key]
    return merged


def _feed(name: str, table: dict[str, Any], folder: Path) -> FeedConfig:
    """Return a feed's configuration; `LocalError` or `ValueError` if it is not valid."""
    check_name(name, "feed")
    config = _converted(table)
    config.source_of(name)
    placed = config.at(folder)
    check(placed)
    return placed


def _converted(table: dict[str, Any]) -> FeedConfig:
    _check_keys(table, FeedConfig, "")
    for key, kind in TABLES.items():
        if isinstance(table.get(key), dict):
            _check_keys(table[key], kind, f"{key}.")
    try:
        config: FeedConfig = convert(table, FeedConfig)
    except msgspec.ValidationError as error:
        raise LocalError(_told(str(error))) from None
    return config


def _check_keys(table: dict[str, Any], kind: Any, prefix: str) -> None:
    known = kind.__struct_fields__
    for key in table:
        if key not in known:
            hint = _hint(key, known) or f"; keys are {', '.join(known)}"
            raise LocalError(f"{prefix}{key} is not known{hint}")


def _hint(key: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _told(text: str) -> str:
    """Return the text of a conversion error, with the key first."""
    what, at, place = text.partition(" - at `$.")
    if found := _MISSING.fullmatch(what):
        return f"{found[1]} is missing"
    return f"{place.removesuffix('`')}: {what}" if at else what


def _shared_logs(path: Path, feeds: Mapping[str, FeedConfig]) -> Iterator[tuple[str, str]]:
    """Yield the feeds whose log belongs to an earlier feed, with the reason."""
    owners: dict[tuple[str, str], str] = {}
    for name, config in feeds.items():
        source = config.source_of(name)
        owner = owners.setdefault((config.journal, source), name)
        if owner != name:
            yield (
                name,
                f"{path}: feed {name!r}: source: the log {source!r} in {config.journal} belongs to feed {owner!r}; "
                "choose another source or journal",
            )
