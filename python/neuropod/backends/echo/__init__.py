"""The framework-free platform."""
