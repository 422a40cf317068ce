# Everything runs in .venv, which tools/bootstrap.py makes and keeps up to date.
PYTHON ?= python3
EXTRAS ?= dev
T      ?= tests notebooks
PY     := .venv/bin/python
NBVAL  := --nbval-lax --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with=tests/sanitize.cfg

.DEFAULT_GOAL := help
.PHONY: help setup lab test report lint sanitize bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[a-z ]*## /make \1\t/p' Makefile

setup: ## make or update .venv with what the tests need (EXTRAS=dev,bench for more)
	@$(PYTHON) tools/bootstrap.py --extras $(EXTRAS)

lab: ## open JupyterLab on the notebook to start with
	@$(PYTHON) tools/bootstrap.py
	@$(PY) tools/lab.py

test: setup ## run the tests and every notebook (T=tests/model for a part)
	@$(PY) -m pytest $(NBVAL) $(T)

report: ## run the notebooks and write each as one offline file into reports/
	@$(PYTHON) tools/bootstrap.py
	@$(PY) tools/reports.py

lint: setup ## check style
	@$(PY) -m ruff check .

sanitize: setup ## the C tests under AddressSanitizer and ThreadSanitizer
	@$(PY) -m tests.live.storm

bench: ## measure speed, against a C loop and libcachesim (minutes; on an idle machine)
	@$(PYTHON) tools/bootstrap.py --extras dev,bench
	@$(PY) -m tests.bench
	@$(PY) -m tests.bench.live

clean: ## remove what the targets made, .venv included
	rm -rf .venv build dist *.egg-info reports screenshots .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
