"""Makes the wheels that people install: the core's, and one per plug-in and framework version.

core.py builds the core's by scikit-build-core, as `pip install .` does. plugin.py packs a plug-in that
`neuropod backends install` built, with a manifest that holds for every environment. repair.py has
auditwheel find out which systems a wheel runs on, and names the wheel so. docs/releasing.md says how
the versions and requirements go together.
"""
