"""The command line `neuropod`."""
