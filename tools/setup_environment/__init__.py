"""The steps of `make setup`, one module each."""
