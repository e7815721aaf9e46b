# Everything a person types here. Needs Python 3.10 or newer, make and a C compiler; no root, no conda, no MPI of the
# system. All of it lives in .venv/ of this folder; `make clean` removes it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

# Where the Python packages go; for which folder they were put there (a moved environment does not work); and what
# says that they are all there: a copy of that and of pyproject.toml.
VENV := .venv
PLACE := $(VENV)/place
STAMP := $(VENV)/installed
RUN := $(VENV)/bin/python
EXTRAS := mlir,mpi,lab,onnx,test
# Where pip put the JupyterLab extension; a checkout's is put there again, so that Lab has it as it stands.
EXTENSION := $(VENV)/share/jupyter/labextensions/jupyterlab-avial

# `make test-gpu`: where the bundle goes, and how long it may be checked and raced.
BUNDLE := build/gpu
MINUTES := 8

# A file's tests stay in one of two processes, and those that look at this machine's processes in the same
# (tests/conftest.py).
IN_TWO := -n 2 --dist loadscope

# Another environment's modules must not shadow ours, whatever shell this is called from.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONNOUSERSITE := 1

.PHONY: help demo test test-hosts test-browser test-gpu pictures test-full coverage lab lint style types layers format bench doctor setup install clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1/p' Makefile | while read -r name what; do \
	  printf '  make %-12s %s\n' "$$name" "$$what"; done

demo: setup  ## the deck's program on a small MPI cluster: levels, placement, check, timings, demo.html
	@$(RUN) -m avial_lab demo

test: lint  ## every check but the slow ones
	@printf '\n== tests\n'
	@$(RUN) -m pytest $(IN_TWO) -m "not slow"

test-browser: setup  ## the pages, widgets and notebooks in a real browser; skipped with the reason where none is
	@$(RUN) -m pytest -m browser tests/browser

test-hosts: setup  ## clusters over several machines, made of name spaces; skipped with the reason where they cannot be
	@$(RUN) -m pytest -m hosts tests/hosts

test-gpu: setup  ## a bundle of all kernels, checked and raced on the GPU that is here, else on the emulated one
	@$(RUN) -m avial_lab bundle -o $(BUNDLE)
	@cd / && PYTHONPATH= $(abspath $(RUN)) $(abspath $(BUNDLE))/run.py --minutes $(MINUTES) -o $(abspath $(BUNDLE))-results

pictures: setup  ## the README's pictures of the workbench, taken anew
	@$(RUN) -m tests.browser.pictures

# `make coverage TESTS=tests/runtime`: of one folder's tests.
coverage: setup  ## lines that no test runs, in whatever process
	@rm -rf build/coverage && mkdir -p build/coverage
	-@COVERAGE_FILE=$(abspath build/coverage/lines) $(RUN) -m coverage run -m pytest $(IN_TWO) -m "not slow" $(TESTS)
	@cd build/coverage && $(abspath $(RUN)) -m coverage combine --rcfile=$(abspath pyproject.toml) --data-file=lines -q
	@COVERAGE_FILE=build/coverage/lines $(RUN) -m coverage report --skip-covered --sort=miss

test-full: lint  ## every check there is
	@printf '\n== all tests\n'
	@AVIAL_TEST_OPT_LEVEL=2 AVIAL_TEST_EXAMPLES=all $(RUN) -m pytest $(IN_TWO)

lab: setup  ## JupyterLab on the notebooks
	@$(RUN) -m avial_lab kernel install --sys-prefix > /dev/null
	@$(RUN) -m jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

lint: style types layers  ## style, types, layers

style: setup
	@printf '\n== style\n'
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

types: setup
	@printf '\n== types\n'
	@$(RUN) -m pyright --pythonpath $(RUN)

layers: setup
	@printf '\n== layers\n'
	@$(RUN) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

format: setup  ## rewrite the source as `make lint` wants it
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

bench: setup  ## how fast avial_lab itself is
	@$(RUN) -m avial_lab bench --self

doctor: setup  ## what is installed here, and whether it works together
	@$(RUN) -m avial_lab doctor

# Instant where nothing changed since the last time.
setup:
	@if { printf '%s\n' "$(CURDIR)"; cat pyproject.toml; } | cmp -s - $(STAMP) && $(RUN) -c ''; \
	then :; else $(MAKE) --no-print-directory install; fi
	@rm -rf $(EXTENSION) && mkdir -p $(EXTENSION)
	@cp -R extensions/jupyterlab-avial/. $(EXTENSION) && mkdir -p $(EXTENSION)/static/views
	@for view in avial_lab/plot/views/*.js avial_lab/plot/views/*.css; do \
	  if [ -f "$$view" ]; then cp "$$view" $(EXTENSION)/static/views; fi; done

# The first Python that is new enough and can make environments; PYTHON=... puts another before them. Debian's, without
# its venv package, has no ensurepip: then its own pip fills the environment.
install:
	@command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || \
	{ echo "avial_lab links compiled programs with a C compiler, and found none:" \
	       "install gcc or clang." >&2; exit 1; }
	@rm -f $(STAMP)
	@if [ "$$(cat $(PLACE) 2>/dev/null)" = "$(CURDIR)" ] && $(RUN) -m pip --version >/dev/null 2>&1; then exit 0; fi; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10 python3.14 python; do \
	  "$$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null || continue; \
	  printf '== %s/ with %s\n' $(VENV) "$$("$$python" --version)"; \
	  rm -rf $(VENV); \
	  if "$$python" -m venv $(VENV) >/dev/null 2>&1 || \
	     { "$$python" -m venv --without-pip --clear $(VENV) && "$$python" -m pip --python $(RUN) install pip; }; \
	  then printf '%s\n' "$(CURDIR)" > $(PLACE); exit 0; fi; \
	done; \
	echo "No Python from 3.10 to 3.14 that can make environments was found: install one with its venv" \
	     "module, or name it: make PYTHON=/path/to/python" >&2; exit 1
	@printf '== packages into %s/ (about 1.5 GB; a few minutes the first time)\n' $(VENV)
	@$(RUN) -m pip install -q --disable-pip-version-check -e ".[$(EXTRAS)]"
	@{ printf '%s\n' "$(CURDIR)"; cat pyproject.toml; } > $(STAMP)

clean:  ## remove what `make` made here, .venv too
	rm -rf $(VENV) build dist demo.html .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
