"""Mistakes in cold storage: what is listed, what is removed, and what is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.archive import file, retire, sealing, verify
from weirpool.archive.catalog import Catalog

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def removed_before_listed() -> Sabotage:
    edit = "if log.catalog.publish(following):"
    return edited(sealing, "seal", (edit, "log.settle(following)\n        " + edit))


def manifest_overwritten() -> Sabotage:
    edits = (
        ("if not self.store.create(name, encode(manifest)):", "self.store.put(name, encode(manifest))\n    if False:"),
        ("!= [name]:", "== []:"),
    )
    return edited(Catalog, "publish", *edits)


def file_of_another_adopted() -> Sabotage:
    return replaced((sealing._Log, "_same", lambda self, origin, rows: True))


def gaps_not_listed() -> Sabotage:
    return replaced((Catalog, "keep_gaps", lambda self, manifest, found: manifest.gaps))


def readers_ignored() -> Sabotage:
    return edited(retire, "retire", ("min(needed)", "max(needed)"))


def columns_not_checked() -> Sabotage:
    return edited(file.SealedFile, "rows", ("if chunk_checksum(", "if False and chunk_checksum("))


def footers_not_compared() -> Sabotage:
    return replaced((file, "_compare", lambda store, name, segment, footer: None))


def sizes_not_compared() -> Sabotage:
    return edited(file, "_checked_footer", ("segment.footer_bytes + 1)", "segment.footer_bytes)"))


def sealed_files_not_verified() -> Sabotage:
    return replaced((verify, "_problem", lambda *arguments: ""))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "removed before it is listed",
        "Arrow segments are removed before a manifest lists the file with their rows",
        "",
        "sealing",
        removed_before_listed,
    ),
    Saboteur(
        "manifest overwritten",
        "a version of the manifest that somebody else has published is overwritten",
        "",
        "sealing",
        manifest_overwritten,
    ),
    Saboteur(
        "gaps not listed",
        "gaps are gone when their rows are sealed, and the folder is lost",
        "PL6",
        "sealing",
        gaps_not_listed,
    ),
    Saboteur(
        "readers ignored by retention",
        "old history is removed although a reader has not committed it",
        "PL3",
        "sealing",
        readers_ignored,
    ),
    Saboteur(
        "file of another process adopted",
        "a file that was stored before, but not listed, is taken without comparing its rows",
        "",
        "sealed files",
        file_of_another_adopted,
    ),
    Saboteur(
        "columns of sealed files not checked",
        "the checksum of a column is not compared when it is read",
        "THREATS 97",
        "sealed files",
        columns_not_checked,
    ),
    Saboteur(
        "footers of sealed files not compared",
        "another program is given a file whose footer is not the one that the manifest lists",
        "",
        "sealed files",
        footers_not_compared,
    ),
    Saboteur(
        "sizes of sealed files not compared",
        "another program is given a file that is longer than the one that was sealed",
        "",
        "sealed files",
        sizes_not_compared,
    ),
    Saboteur(
        "sealed files not verified",
        "verify looks at Arrow segments alone",
        "",
        "sealed files",
        sealed_files_not_verified,
    ),
)
