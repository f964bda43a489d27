# Everything a checkout can do. `make setup` needs a Python (3.11 to 3.13) and, for the system
# packages, root or sudo; the other targets bring it along.

SHELL := /bin/bash

# PYTHON=python3.12 picks the interpreter that .venv is made with.
PYTHON ?=
CTEST_ARGS ?=
PYTEST_ARGS ?=

# OFFLINE_DIR=dist/offline-bundle-… sets up from what `make offline-bundle` fetched, without a network.
OFFLINE_DIR ?=

setup_environment := $(or $(PYTHON),python3) tools/set_up.py \
  $(if $(PYTHON),--python-chosen) $(if $(OFFLINE_DIR),--offline "$(OFFLINE_DIR)")
venv_python := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup offline-bundle environment demo wheels deb test test-gpu bench lint format docs clean python-at-hand

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: python-at-hand  ## system packages, .venv, build, TorchScript plug-in; quick when done
	@$(setup_environment)

offline-bundle: python-at-hand  ## what a set-up fetches, into dist/, for machines without a network
	@$(or $(PYTHON),python3) tools/offline_bundle.py

demo: setup  ## the main job on real data; ends with a page to look at
	@$(venv_python) examples/demo/run_demo.py

wheels: setup  ## the core's wheel and one per plug-in, into dist/; see docs/releasing.md
	@$(venv_python) tools/build_wheels.py

deb: environment  ## Debian packages of the library and its headers, into dist/
	@tools/build_debs.sh

test: setup  ## every test (CTEST_ARGS='-R name', PYTEST_ARGS='-k name')
	@CTEST_ARGS="$(CTEST_ARGS)" PYTEST_ARGS="$(PYTEST_ARGS)" tools/run_tests.sh

test-gpu:  ## the device tests on this machine's GPU; builds all they need into build/gpu; see docs/gpu.md
	@$(or $(PYTHON),$(wildcard .venv/bin/python),python3) tools/test_gpu.py

bench: setup  ## benchmarks: Neuropod against the framework called directly
	@$(venv_python) benchmarks/run.py

lint: setup  ## clang-format, clang-tidy, ruff, mypy, layers: reports, changes nothing
	@tools/lint.sh

format: environment  ## clang-format and ruff, in place
	@tools/format.sh

docs: environment  ## the documentation, into site/
	@.venv/bin/mkdocs build --strict

clean:  ## removes builds and caches; .venv stays
	rm -rf build site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

environment: python-at-hand
	@$(setup_environment) --until packages

python-at-hand:
	@command -v $(or $(PYTHON),python3) >/dev/null || { \
	  echo "make: $(or $(PYTHON),python3) not found: Python 3.11, 3.12 or 3.13 is needed" \
	    "(Debian: apt-get install python3 python3-venv; PYTHON= picks another)" >&2; exit 1; }
