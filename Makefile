# `make` lists the targets. Everything runs in .venv, which `make install` sets up.
PYTHON ?= python3
# Another Python has an environment of its own: make test PYTHON=python3.13
VERSION := $(if $(filter-out python3,$(PYTHON)),$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
VENV ?= $(if $(VERSION),build/venv-$(VERSION),.venv)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The demo learns without torch.
FOR_DEMO := $(VENV)/.installed-for-demo

.DEFAULT_GOAL := help
.PHONY: help install demo test slow lint format docs site smoke bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

install: $(INSTALLED)  ## set up .venv with everything

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt pip
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable '.[train,parquet,files,plots,server,mcp,milvus,postgres,export,ray]' --group dev
	@touch $@ $(FOR_DEMO)

$(FOR_DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt pip
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable .
	@touch $@

demo: $(FOR_DEMO)  ## learn from the docstrings of installed packages and search them
	$(BIN)/vdsh demo

# A process more than there are cores, up to four: many tests wait for a server or a cluster. They
# start hundreds of others, which need not compile our files each time.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --dist loadfile \
	--no-loadscope-reorder -n $$($(BIN)/python -c 'import os; print(min(4, os.cpu_count() + 1))')

test: $(INSTALLED)  ## run the tests, side by side
	$(PYTEST) -m "not slow"

slow: $(INSTALLED)  ## run the few tests that take long: clusters, crashes, the tutorial
	$(PYTEST) -m slow

smoke: $(INSTALLED)  ## install the base alone into a fresh environment and use a saved model
	.ci/smoke $(BIN)/python

lint: $(INSTALLED)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)  ## rewrite files in our style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED)  ## write the references of Python and the command line to build/docs
	$(BIN)/python docs/make_references.py

site: $(INSTALLED)  ## build the documentation site into build/site; a broken link is an error
	$(BIN)/python -m pip install --quiet -c constraints.txt --group docs
	rm -rf build/pages && mkdir -p build/pages/results build/pages/benchmarks
	cp -r README.md CHANGELOG.md SECURITY.md CITATION.cff docs examples build/pages
	$(BIN)/python docs/make_references.py build/pages/docs
	cp -r results/*.md results/*.png results/tuning build/pages/results
	cp -r benchmarks/results build/pages/benchmarks
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(INSTALLED)  ## measure again what the documentation claims (VDSH_DATA names the corpora)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group bench
	for name in startup text training search scaling store words filters engines duplicates server mcp restart chaos living explain drift; do \
		$(BIN)/python benchmarks/bench_$$name.py || exit 1; done
	$(BIN)/python benchmarks/tables.py

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build
