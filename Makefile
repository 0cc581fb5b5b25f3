# Every target makes what it needs of the environment on first use and is quick afterwards.
#
#   make demo     cluster rendered pictures and write a report
#   make test     run the tests (a few minutes)
#   make versions the core tests with the oldest versions allowed, and with the newest on other Pythons
#   make lint     style, formatting and types
#   make stress   Ctrl-C, kill -9 and odd fits at random, by the thousand (an hour)
#   make bench    speed against other libraries, as ratios from one run (kept out of version control)
#   make fuzz     spoilt files for every reader (COUNT=10000 SEED=0)
#   make docs     build the documentation into docs/_build/html
#   make commands run the commands that README and documentation show, with small counts
#   make dist     build both wheels and the sdist into dist, and try them in a clean environment
#   make clean    remove what builds and tests left; `make distclean` the environment too
#
# Another Python: make PYTHON=python3.12 demo. Another folder for the environment: make VENV=… demo.

SHELL := /bin/sh
VENV ?= .venv
STAMPS := $(VENV)/stamps
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
INSTALL = @echo "Installing what this needs into $(VENV) (once, a minute or so)"; $(PIP) --constraint constraints.txt

# The first of these that is new enough, unless PYTHON names one.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$p" && break; done)

# More processes than this rarely pay: each loads the numerical libraries.
TEST_PROCESSES ?= 4
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses $(TEST_PROCESSES) --dist worksteal

# The default of scikit-learn and SciPy is to skip what concerns other array libraries.
export SCIPY_ARRAY_API = 1
# Python keeps what it has compiled: collecting the tests takes half the time from the second run on.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-rest versions stress lint format bench fuzz docs commands dist clean distclean

help:
	@sed -n 's/^#   \(make .*\)/\1/p' Makefile

demo: $(STAMPS)/demo
	$(BIN)/tuckermix demo

test: $(STAMPS)/test
	$(PYTEST) -m "not (slow or torch or data or browser)"

# Everything: three seeds, long tests, PyTorch, JAX, the datasets, a browser.
test-all: $(STAMPS)/test-all
	TUCKERMIX_TEST_SEEDS=3 $(PYTEST)

# What `make test` leaves out: together they are everything, once.
test-rest: $(STAMPS)/test-all
	$(PYTEST) -m "slow or torch or data or browser"

versions: $(STAMPS)/base
	$(BIN)/python .ci/try_versions.py $(VENV)

stress: $(STAMPS)/test
	$(BIN)/python -m stress.fits
	OMP_NUM_THREADS=1 $(BIN)/python -m stress.interrupts
	$(BIN)/python -m stress.kills

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

COUNT ?= 10000
SEED ?= 0
fuzz: $(STAMPS)/test
	$(BIN)/python -m fuzz --count $(COUNT) --seed $(SEED)

docs: $(STAMPS)/docs
	$(BIN)/python docs/check_numbers.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

# What README and documentation show: pip, make with small counts, benchmarks as far as their options.
commands: $(STAMPS)/test
	$(BIN)/python .ci/try_commands.py

dist: $(STAMPS)/dist
	$(BIN)/python .ci/check_dist.py dist

clean:
	rm -rf build dist docs/_build docs/api/generated docs/tutorials .pytest_cache .mypy_cache .ruff_cache tuckermix-demo
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

# --- the environment, one stamp for each set of packages ---------------------------------------

$(STAMPS)/base:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c '$(NEW_ENOUGH)' || { \
	  echo "tuckermix needs Python 3.11 or newer with its venv module, and found none."; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making the environment in $(VENV) (once)"
	"$(PYTHON)" -m venv $(VENV)
	@# Dependency groups came with pip 25.1.
	@$(PIP) --upgrade "pip>=25.1"
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --editable ".[cli,plot,report,io]" --editable bench
	@touch $@

$(STAMPS)/test: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --editable ".[all]" --editable bench --group test
	@touch $@

$(STAMPS)/test-all: $(STAMPS)/test
	$(INSTALL) --editable ".[all,photos,onnx]" --editable bench --group browser --group jax
	@touch $@

$(STAMPS)/lint: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --editable . --editable bench --group lint
	@touch $@

$(STAMPS)/bench: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --editable ".[all]" --editable bench --group bench
	@touch $@

$(STAMPS)/dist: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --group dist
	@touch $@

$(STAMPS)/docs: pyproject.toml bench/pyproject.toml constraints.txt | $(STAMPS)/base
	$(INSTALL) --editable ".[all,photos,onnx]" --editable bench --group docs
	@touch $@
