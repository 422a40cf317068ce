# Everything runs in .venv, which tools/bootstrap.py makes and keeps up to date.
PYTHON ?= python3
EXTRAS ?= dev
PY     := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup

help:    ## list the targets
	@sed -n 's/^\([a-z-]*\): *.*## */\1\t/p' Makefile

setup:   ## make .venv with what the tests need (EXTRAS=dev,bench for more)
	@$(PYTHON) tools/bootstrap.py --extras $(EXTRAS)
