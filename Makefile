# Penstock's commands. All that `make install` needs is Python 3.11 or newer; `make help` lists the rest.
# PYTHON=/path/to/python chooses the interpreter that .venv is made with, CC the compiler of the extensions.

PYTHON ?= python3 python3.13 python3.12 python3.11
BIN := .venv/bin

# The compiled modules: each .pxd with the .py that it gives C types to, and each .pyx.
EXTENSIONS := $(shell find src -name '*.pxd' -o -name '*.pyx')
EXTENSION_SOURCES := $(EXTENSIONS) $(wildcard $(EXTENSIONS:.pxd=.py))

# Succeeds where extensions can be compiled: a C compiler, and Python's headers.
CAN_COMPILE = printf '\043include <Python.h>\n' | $${CC:-cc} -fsyntax-only -x c \
	-I "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" - 2>/dev/null

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench docs interop chaos walk lock clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/built ## Make .venv with everything in it; .venv/bin/penstock runs

demo: install ## Run the main job end to end: a live stream into Spark and back
	$(BIN)/penstock demo

# A process a core. Spark's tests stay in one: to start Spark takes long, and two of them hold each other up.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadgroup

test: install ## Run all tests, those of compiled modules on both builds
	@if $(CAN_COMPILE); then \
		PENSTOCK_REQUIRE_EXTENSIONS=1 $(PYTEST) && \
		PENSTOCK_PURE=1 $(PYTEST) -m "not once"; \
	else \
		echo "no C compiler, or no Python headers: only the plain build is tested"; \
		$(PYTEST); \
	fi

lint: .venv/installed ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: install ## Measure, next to other implementations; results go to benchmarks/results
	$(BIN)/python -m benchmarks

docs: .venv/installed ## Build the documentation into build/docs
	$(BIN)/mkdocs build --strict --site-dir build/docs

interop: install ## Talk to implementations in other languages (needs Node, Java, Maven and Cargo)
	$(BIN)/python -m interop

chaos: install ## Break the whole pipeline for five minutes, by a seed, and judge what is left
	$(BIN)/python -m chaos

walk: .venv/installed ## Count the files that a call enters, and what else must not grow
	$(BIN)/python -m walk

lock: ## Write requirements.lock anew, with the newest versions that fit
	rm -rf build/lock
	$(BIN)/python -m venv build/lock
	PENSTOCK_NO_EXTENSIONS=1 build/lock/bin/python -m pip install --quiet --editable '.[dev]'
	{ sed -n '/^#/p' requirements.lock; \
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip --exclude wheel; } > build/lock/requirements
	mv build/lock/requirements requirements.lock

clean: ## Remove what was built; .venv stays
	rm -rf build src/penstock.egg-info .venv/built .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src \( -name '*.so' -o -name '*.c' \) -delete
	find src tests benchmarks chaos examples interop walk -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@for python in $(PYTHON); do \
		if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "making .venv with $$($$python --version)"; exec $$python -m venv .venv; \
		fi; \
	done; \
	echo "make: no Python >= 3.11 with venv found; tried: $(PYTHON)." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3-venv), or name it: make PYTHON=/path/to/python" >&2; \
	exit 1

.venv/installed: requirements.lock pyproject.toml setup.py | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	PENSTOCK_NO_EXTENSIONS=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps --editable .
	@touch $@

.venv/built: .venv/installed $(EXTENSION_SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@
