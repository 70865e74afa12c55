# Weirpool's development commands. `make install` needs only Python 3.11 or newer; `make help` lists all commands.
# PYTHON=/path/to/python selects the interpreter for .venv, CC the compiler of the extensions.

PYTHON ?= python3 python3.13 python3.12 python3.11
BIN := .venv/bin

# The compiled modules: each .pxd with the .py that it declares C types for, and each .pyx.
EXTENSIONS := $(shell find src -name '*.pxd' -o -name '*.pyx')
EXTENSION_SOURCES := $(EXTENSIONS) $(wildcard $(EXTENSIONS:.pxd=.py))

PACKAGES := $(shell grep == requirements.lock)
# Those that the demo needs: how far its bar goes.
DEMO_PACKAGES := 33

# Succeeds if extensions can be compiled, which needs a C compiler and Python's headers.
CAN_COMPILE = printf '\043include <Python.h>\n' | $${CC:-cc} -fsyntax-only -x c \
	-I "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" - 2>/dev/null

.DEFAULT_GOAL := help
.PHONY: help install demo test labs reach lint bench docs dist interop chaos fuzz walk lock clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/built ## Create .venv with all dependencies and .venv/bin/weirpool

# Until `make install` has compiled something, the demo runs on the plain build, and only its packages are installed.
demo: $(if $(wildcard .venv/built),install,.venv/demo) ## Run a live stream into Spark and back
	@$(if $(wildcard .venv/built),,WEIRPOOL_PURE=1) $(BIN)/weirpool demo

# Spark's tests share a process: Spark starts slowly, and two instances slow each other down.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadgroup

# Runs the tests with some marks, those of compiled modules on both builds.
define TEST
@if $(CAN_COMPILE); then \
	WEIRPOOL_REQUIRE_EXTENSIONS=1 $(PYTEST) -m "$(1)" && \
	WEIRPOOL_PURE=1 $(PYTEST) -m "($(1)) and not once"; \
else \
	echo "no C compiler or no Python headers; testing only the plain build"; \
	$(PYTEST) -m "$(1)"; \
fi
endef

test: install ## Run the tests that a change needs, those of compiled modules on both builds
	$(call TEST,not lab and not rest)

# Fuzzing and chaos are shorter than by hand, where sanitizers take a second build. With WEIRPOOL_LABS=sample, searches are
# samples, and only the tables of laboratories are run.
labs: export WEIRPOOL_LABS ?= whole
labs: install ## Run what searches for longer: laboratories, tables as a whole, interop, fuzz and chaos
	$(call TEST,$(if $(filter sample,$(WEIRPOOL_LABS)),lab and not rest,lab or table))
	$(MAKE) interop
	$(MAKE) fuzz OPTIONS="--unsanitized --minutes 1"
	$(MAKE) chaos OPTIONS="--minutes 1"

reach: install ## Print how many branches of the store its laboratories reach, and check the least
	$(BIN)/python -m tools.reach

lint: .venv/installed ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: install ## Compare with other implementations; results go to benchmarks/results
	$(BIN)/python -m benchmarks

docs: .venv/installed ## Build the documentation's site into build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/docs

dist: .venv/installed ## Build the source distribution, a wheel and its SBOM into build/dist, reproducibly
	rm -rf build/dist
	$(BIN)/python -m tools.dist build/dist

interop: install ## Test against implementations in other languages (needs Node, Java, Maven and Cargo)
	$(BIN)/python -m interop

chaos: install ## Inject faults into the whole pipeline, served and then sealed, for five minutes each; or with OPTIONS
	$(BIN)/python -m chaos --reads served $(OPTIONS)
	$(BIN)/python -m chaos --reads sealed $(OPTIONS)

fuzz: install ## Fuzz all decoders for five minutes of the processor, with sanitizers (needs a C compiler); or with OPTIONS
	$(BIN)/python -m fuzz $(OPTIONS)

walk: .venv/installed ## Check metrics of the code's structure against their limits
	$(BIN)/python -m walk

lock: ## Regenerate requirements.lock with the newest compatible versions
	rm -rf build/lock
	$(BIN)/python -m venv build/lock
	WEIRPOOL_NO_EXTENSIONS=1 build/lock/bin/python -m pip install --quiet --editable '.[dev]'
	{ sed -n '/^#/p' requirements.lock; \
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude pip --exclude wheel; } > build/lock/requirements
	mv build/lock/requirements requirements.lock

clean: ## Remove build output; .venv stays
	rm -rf build src/weirpool.egg-info .venv/built .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src \( -name '*.so' -o -name '*.c' \) -delete
	find src tests benchmarks chaos examples fuzz interop walk -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@for python in $(PYTHON); do \
		if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "creating .venv with $$($$python --version)"; exec $$python -m venv .venv; \
		fi; \
	done; \
	echo "make: no Python >= 3.11 with venv found; tried: $(PYTHON)." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3-venv), or select one: make PYTHON=/path/to/python" >&2; \
	exit 1

# Spark exists only as sources: its wheel, of half a gigabyte, is not compressed in between. Most modules are never
# imported, so bytecode is written when they are. Both save half a minute.
STEP := $(BIN)/python -m tools.step
PIP := env DIST_EXTRA_CONFIG=$(CURDIR)/tools/uncompressed.cfg WEIRPOOL_NO_EXTENSIONS=1 $(BIN)/python -m pip
INSTALL := install --disable-pip-version-check --no-compile --no-build-isolation

.venv/setuptools: requirements.lock | .venv/bin/python
	@$(PIP) $(INSTALL) --quiet $(filter setuptools==%,$(PACKAGES))
	@touch $@

.venv/demo: requirements.lock pyproject.toml setup.py | .venv/setuptools
	@$(STEP) build/install.log $(DEMO_PACKAGES) "installing the $(DEMO_PACKAGES) packages of the demo, 600 MB" \
		$(PIP) $(INSTALL) --constraint requirements.lock --editable '.[demo]'
	@touch $@

.venv/installed: requirements.lock pyproject.toml setup.py | .venv/setuptools
	@$(STEP) build/install.log $(words $(PACKAGES)) "installing the $(words $(PACKAGES)) packages of requirements.lock" \
		$(PIP) $(INSTALL) --requirement requirements.lock --editable .
	@touch .venv/demo $@

.venv/built: .venv/installed $(EXTENSION_SOURCES)
	@$(STEP) build/compile.log $(words $(EXTENSIONS)) "compiling the hot modules, on all cores" \
		$(BIN)/python setup.py build_ext --inplace
	@touch $@
