#!/usr/bin/env python3
"""Writes what a release holds as a software bill of materials, SPDX 2.3 in JSON.

    scripts/release/sbom.py WHEEL [--tarball FILE] > FILE.spdx.json

Of the wheel: sdtune itself, each system library that comes along (sdtune/lib/bundled.json), the models, and the Python packages
that it asks for. With --tarball of the tarball that was made from the wheel: LibTorch and NVIDIA's libraries lie in it, and are named
after the packages of this Python that its files are from. Licences that were not concluded are NOASSERTION; the texts themselves are
in the wheel and in the tarball.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import os
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

NAMESPACE = "urn:sdtune:spdx"


def package(identity: str, name: str, version: str, **more: Any) -> dict[str, Any]:
    """A package of SPDX; what is not known is NOASSERTION."""
    return {"SPDXID": f"SPDXRef-{identity}", "name": name, "versionInfo": version or "NOASSERTION",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}


def identity_of(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)


def bundled_packages(archive: zipfile.ZipFile) -> list[dict[str, Any]]:
    """One a Debian package, with the files that are from it."""
    libraries = json.loads(archive.read("sdtune/lib/bundled.json"))["libraries"]
    names = sorted({(library["package"], library["version"]) for library in libraries})
    return [package(f"debian-{identity_of(name)}", name, version,
                    comment="libraries: " + ", ".join(sorted(one["file"] for one in libraries if one["package"] == name)),
                    externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                   "referenceLocator": f"pkg:deb/debian/{name}@{version}"}])
            for name, version in names]


def required_packages(metadata: email.message.Message) -> list[dict[str, Any]]:
    """What pip installs with the wheel."""
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    packages = []
    for line in required:
        name, _, version = line.partition("==")
        name = name.partition(">")[0].strip()
        locator = f"pkg:pypi/{name}" + (f"@{version}" if version else "")
        packages.append(package(f"pypi-{identity_of(name)}", name, version, comment=line, externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
    return packages


def packed_packages(tarball: Path) -> list[dict[str, Any]]:
    """The Python packages of whose files a tarball holds some: LibTorch's and NVIDIA's."""
    with tarfile.open(tarball) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    packages = []
    for distribution in distributions():
        name = distribution.metadata["Name"]
        held = sorted(path.name for path in distribution.files or [] if str(path) in members)
        if name == "sdtune" or not held:
            continue
        packages.append(package(f"pypi-{identity_of(name)}", name, distribution.version, comment="libraries: " + ", ".join(held), externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:pypi/{name}@{distribution.version}"}]))
    return sorted(packages, key=lambda one: one["name"])


def model_packages(archive: zipfile.ZipFile, version: str) -> list[dict[str, Any]]:
    """The models that come along, by the folder of their files."""
    folders = {name.split("/models/")[1].split("/")[0] for name in archive.namelist() if "/models/" in name}
    return [package(f"model-{identity_of(name)}", name, version, licenseDeclared="Apache-2.0",
                    comment="weights trained by this project on images that its own renderer made") for name in sorted(folders)]


def document(wheel: Path, tarball: Path | None) -> dict[str, Any]:
    """Of the wheel, or of the tarball that was made from it."""
    described = tarball or wheel
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(path))
        version = metadata["Version"]
        digest = hashlib.sha256(described.read_bytes()).hexdigest()
        own = package("sdtune", "sdtune", version, licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0",
                      packageFileName=described.name, checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        carried = bundled_packages(archive) + model_packages(archive, version)
        required = [] if tarball else required_packages(metadata)
    if tarball:
        carried += packed_packages(tarball)
    link = [("DESCRIBES", "SPDXRef-DOCUMENT", own)]
    link += [("CONTAINS", own["SPDXID"], one) for one in carried] + [("DEPENDS_ON", own["SPDXID"], one) for one in required]
    created = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": described.name,
            "documentNamespace": f"{NAMESPACE}:{digest}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: sdtune-release"]},
            "packages": [own, *carried, *required],
            "relationships": [{"relationshipType": kind, "spdxElementId": source, "relatedSpdxElement": target["SPDXID"]}
                              for kind, source, target in link]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tarball", type=Path)
    options = parser.parse_args()
    json.dump(document(options.wheel, options.tarball), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
