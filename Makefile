# Each target is complete: it sets up what it needs, and is quick where nothing has changed.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)

.PHONY: help lab demo demo-site docs test check clean

help:
	@echo 'make lab        open JupyterLab with the extension (ARGS="--port 9000" are passed on)'
	@echo 'make demo-site  open JupyterLab on a simulated site: every screen and state without a cluster'
	@echo 'make demo       run the bundled benchmark on a local cluster and print its report'
	@echo 'make docs       build the documentation below build/docs'
	@echo 'make check      lint, types and unit tests, for daily work'
	@echo 'make test       everything: both Dask stacks, browser, wheel'
	@echo 'make clean      remove what the others made'

lab demo docs check test clean: python
	@$(PYTHON) -m tools.$@ $(ARGS)

demo-site: python
	@$(PYTHON) -m tools.demo_site $(ARGS)

.PHONY: python
python:
	@test -n '$(PYTHON)' || { echo 'make: Python 3.11 or newer is missing; install it first (Debian: apt-get install python3 python3-venv)'; exit 1; }
