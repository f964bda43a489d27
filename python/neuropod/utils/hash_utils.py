"""Hashes by the names that existing code imports."""

from neuropod.packaging.manifest import sha256_of_file as sha256sum

__all__ = ["sha256sum"]
