import sys

import pytest
from tiny_plugin import TinyPlugin

from neuropod.backend_installer import sources


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    plugin = TinyPlugin(tmp_path)
    monkeypatch.setattr(sources, "_sources_folder", lambda prefix: plugin.sources.parent)
    monkeypatch.syspath_prepend(plugin.site)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield plugin
    sys.modules.pop("tiny_framework", None)


@pytest.fixture
def folder(tmp_path):
    """The user's folder of plug-ins."""
    return tmp_path / "data" / "neuropod" / "backends"
