"""What all packagers share.

A packager of one framework is a function that writes its own data files into a draft; the decorator
`packager` does everything else, the same way for every framework:

    from neuropod.packaging import PackageDraft, packager

    @packager(platform="matrix")
    def create_matrix_neuropod(draft: PackageDraft, *, matrix: np.ndarray) -> None:
        np.savetxt(draft.data_folder / "matrix.txt", matrix)

The entry-point group `neuropod.packagers` makes it importable from `neuropod.packagers`.
"""

from neuropod.packaging.config import FORMAT_VERSION
from neuropod.packaging.draft import PackageDraft
from neuropod.packaging.packager import packager

__all__ = ["FORMAT_VERSION", "PackageDraft", "packager"]
