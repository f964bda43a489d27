"""Module paths that existing applications import; thin, everything is elsewhere."""
