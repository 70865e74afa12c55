"""Writes what a wheel contains and requires into it, as a CycloneDX document: ``python -m tools.sbom WHEEL…``.

The document lies at ``*.dist-info/sboms/weirpool.cdx.json`` (PEP 770), and beside the wheel. The wheel is packed again,
so that the same content gives the same bytes: all files have one time, SOURCE_DATE_EPOCH, and the same modes.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from pathlib import Path, PurePosixPath
from time import gmtime
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["document", "embed"]

EARLIEST: Final = 315_532_800
"""1980-01-01, before which ZIP files know no time."""
BINARIES: Final = (".so", ".pyd", ".dylib", ".dll")
CYTHON: Final = re.compile(rb"_cython_(\d+)_(\d+)_(\d+)")
"""Extension modules share code of Cython under this name, with its version."""


def embed(wheel: Path) -> Path:
    """Write the document into a wheel, in place of an earlier one, and beside it. Return the path beside it."""
    files = _read(wheel)
    [metadata] = [name for name in files if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
    info = PurePosixPath(metadata).parent
    place = str(info / "sboms" / "weirpool.cdx.json")
    files = {name: content for name, content in files.items() if name not in (place, str(info / "RECORD"))}
    text = document(files, metadata)
    files = dict(
        sorted((files | {place: text.encode()}).items(), key=lambda each: (each[0].startswith(str(info)), each))
    )
    # RECORD comes last, without a hash of its own.
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    record = "\n".join([*lines, f"{info}/RECORD,,", ""])
    _write(wheel, files | {f"{info}/RECORD": record.encode()})
    beside = wheel.with_name(f"{wheel.stem}.cdx.json")
    beside.write_text(text)
    return beside


def document(files: dict[str, bytes], metadata: str) -> str:
    """Return the document of a wheel with these files, the metadata among them, as JSON."""
    told = BytesParser().parsebytes(files[metadata])
    package = _package(told)
    binaries = {name: content for name, content in sorted(files.items()) if name.endswith(BINARIES)}
    required = [_requirement(Requirement(text)) for text in told.get_all("Requires-Dist") or []]
    parts = [*_merged(required), *_bundled(binaries.values()), *(_file(*each) for each in binaries.items())]
    content = hashlib.sha256(b"".join(name.encode() + hashlib.sha256(files[name]).digest() for name in sorted(files)))
    bom = Bom(
        metadata=BomMetaData(component=package, timestamp=datetime.fromtimestamp(_epoch(), UTC)),
        components=parts,
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, content.hexdigest()),
    )
    bom.register_dependency(package, parts)
    return str(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)) + "\n"


def _package(told: Message) -> Component:
    name, version = canonicalize_name(told["Name"]), told["Version"]
    links = dict(text.split(", ", 1) for text in told.get_all("Project-URL") or [])
    kinds = {"Source": ExternalReferenceType.VCS, "Issues": ExternalReferenceType.ISSUE_TRACKER}
    licence = told["License-Expression"]
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        name=name,
        version=version,
        description=told["Summary"],
        licenses=[LicenseExpression(licence)] if licence else None,
        purl=PackageURL("pypi", None, name, version),
        external_references=[
            ExternalReference(type=kinds[title], url=XsUri(url))
            for title, url in sorted(links.items())
            if title in kinds
        ],
    )


def _requirement(requirement: Requirement) -> Component:
    name, marker = canonicalize_name(requirement.name), str(requirement.marker or "")
    told = {"weirpool:versions": str(requirement.specifier), "weirpool:marker": marker}
    return Component(
        type=ComponentType.LIBRARY,
        bom_ref=name,
        name=name,
        scope=ComponentScope.OPTIONAL if "extra ==" in marker else ComponentScope.REQUIRED,
        purl=PackageURL("pypi", None, name),
        properties=[Property(name=key, value=value) for key, value in told.items() if value],
    )


def _merged(required: Iterable[Component]) -> Iterator[Component]:
    """Yield one component for each package; several extras may require it."""
    found: dict[str, Component] = {}
    for component in required:
        if component.name == "weirpool":
            continue
        first = found.setdefault(component.name, component)
        first.properties = [*first.properties, *component.properties]
        if component.scope is ComponentScope.REQUIRED:
            first.scope = ComponentScope.REQUIRED
    yield from found.values()


def _bundled(binaries: Iterable[bytes]) -> Iterator[Component]:
    """Yield what is compiled into the binaries besides the package's own sources."""
    versions = {".".join(part.decode() for part in match) for content in binaries for match in CYTHON.findall(content)}
    for version in sorted(versions):
        yield Component(
            type=ComponentType.LIBRARY,
            bom_ref=f"cython@{version}",
            name="cython",
            version=version,
            description="Code that Cython generates is part of each extension module.",
            licenses=[LicenseExpression("Apache-2.0")],
            purl=PackageURL("pypi", None, "cython", version),
        )


def _file(name: str, content: bytes) -> Component:
    digest = hashlib.sha256(content).hexdigest()
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)]
    return Component(type=ComponentType.FILE, bom_ref=name, name=name, hashes=hashes)


def _read(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _write(wheel: Path, files: dict[str, bytes]) -> None:
    made = wheel.with_suffix(".part")
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = ZipInfo(name, gmtime(_epoch())[:6])
            entry.compress_type = ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith(BINARIES) else 0o100644) << 16
            archive.writestr(entry, content)
    made.replace(wheel)


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _epoch() -> int:
    return max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)))


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(embed(Path(given)))
