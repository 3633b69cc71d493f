"""Lists of parts (SPDX 2.3), read and judged by the SPDX project's own library."""

from spdx_tools.spdx.model.package import PackagePurpose
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def parts(path):
    """{name: (version, how it is found, its checksum)} of a valid document. Not the sources that Debian builds packages from, which have names of packages, too."""
    document = parse_file(str(path))
    assert document.creation_info.spdx_version == "SPDX-2.3"
    assert [message.validation_message for message in validate_full_spdx_document(document)] == []
    return {package.name: (package.version, next((reference.locator for reference in package.external_references), None),
                           next((checksum.value for checksum in package.checksums), None)) for package in document.packages
            if package.primary_package_purpose != PackagePurpose.SOURCE}  # fmt: skip
