"""Packagers of the frameworks, one folder each."""
