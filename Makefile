# Targets are verbs. `make` alone lists them. No activated virtual environment is needed.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.wallaby-setup
# The site is built in an environment of its own
DOCS_VENV := .venv-docs
DOCS_STAMP := $(DOCS_VENV)/.wallaby-docs
# The released client of Spark Connect is in one, and so is a release
CONNECT_VENV := .venv-connect
CONNECT_STAMP := $(CONNECT_VENV)/.wallaby-connect
RELEASE_VENV := .venv-release
RELEASE_STAMP := $(RELEASE_VENV)/.wallaby-release
# And what runs notebooks is installed beside Wallaby
NOTEBOOK := .bench/notebook
NOTEBOOK_STAMP := $(NOTEBOOK)/.wallaby-notebook
SEEDS ?= 100000
MINUTES ?= 60
SCALE ?= 1
WORKERS ?= 4
# Of the paper, e.g. FIGURES="a d"; empty: all
FIGURES ?=
QUERIES ?= 1000
LOSSES ?= 50
TOPS ?= 200
# Among which random queries and expressions are shared out; each has a session and two TaskManagers
PROCESSES ?= 2
COMMIT = $(shell git rev-parse --short HEAD 2>/dev/null)
# The figures of pipelines: bench-pipelines at scale 1, else with the scale in the name
PIPELINES = bench-pipelines$(if $(filter 1,$(SCALE)),,-sf$(SCALE))
# Further arguments for the command that a target runs, e.g. make test ARGS="-k records"
ARGS ?=

# One target at a time: `make -j` is harmless, and each tool uses the cores itself.
.NOTPARALLEL:
.PHONY: help setup demo pipeline test test-lab clusters hosts connect versions lakes browser notebook check simulate mutants chaos soak differential bench bench-paper bench-pipelines predict contenders tpcds verify memory memory-tpcds memory-tpch memory-exploding measure newcomer pages docs release format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv and install the pinned requirements (instant when nothing changed)

$(STAMP): requirements.txt requirements-dev.txt pyproject.toml lab/pyproject.toml tools/find_python.sh
	@if ! $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		python="$$(bash tools/find_python.sh)"; \
		echo "creating $(VENV) with $$python"; \
		"$$python" -m venv --clear $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable lab
	@touch $@

demo: setup ## Run TPC-H on Spark and on Wallaby, and kill a worker on the way (needs a JDK 17 or newer)
	$(BIN)/wallaby demo $(ARGS)

pipeline: setup ## Build a small data lake in three layers, twice, and kill workers the second time (examples/pipeline.py)
	$(BIN)/python examples/pipeline.py $(ARGS)

test: setup ## Run the engine's tests in two processes, or in one with ARGS
	$(BIN)/python -m tools.run_tests $(ARGS)

test-lab: setup ## Run the tests of the lab: simulation, chaos, differential, benchmarks
	$(BIN)/python -m tools.run_tests --lab $(ARGS)

clusters: setup ## Run the tests that start whole Spark clusters and kill drivers (some minutes)
	$(BIN)/python -m pytest -m cluster tests/hosting lab/tests/bench $(ARGS)

hosts: setup ## Run a cluster on hosts with a network between them, and cut it (needs root and iproute2; some minutes)
	$(BIN)/python -m pytest -m hosts lab/tests/hosts tests/hosting $(ARGS)

lakes: setup ## Compare tables of Delta Lake and Iceberg with Spark's (needs Maven; downloads PySpark 4.1 and 60 MB of jars)
	$(BIN)/python -m tools.run_lakes $(ARGS)

connect: $(CONNECT_STAMP) ## Test Spark Connect with the released pyspark-client, which has no JVM, as the client
	WALLABY_CONNECT_PYTHON=$(CURDIR)/$(CONNECT_VENV)/bin/python $(BIN)/python -m pytest tests/engine/connect $(ARGS)

$(CONNECT_STAMP): $(STAMP) requirements-connect.txt
	$(BIN)/python -m venv --clear $(CONNECT_VENV)
	$(CONNECT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-connect.txt
	@touch $@

browser: setup docs ## Look at the site, the live page, the history and the report with a real browser (needs Chromium)
	$(BIN)/python -m pytest -m browser tests/ui $(ARGS)

notebook: setup $(NOTEBOOK_STAMP) ## Run the example notebook in Jupyter, and look at it with a real browser (needs Chromium)
	JUPYTER_PATH=$(CURDIR)/$(NOTEBOOK)/share/jupyter PYTHONPATH=$(CURDIR)/$(NOTEBOOK) \
		$(BIN)/python -m pytest -m browser tests/ui/test_notebook_in_jupyter.py $(ARGS)

$(NOTEBOOK_STAMP): requirements-notebook.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(NOTEBOOK) \
		-r requirements-notebook.txt
	@touch $@

versions: setup ## Compare answers, writes and a killed worker with Spark on every supported Spark version (downloads 450 MB for each; ARGS="--version 4.1")
	$(BIN)/python -m tools.run_versions $(ARGS)

check: setup ## Check format, lint, types, import contracts and house rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_house.py

simulate: setup ## Try to break the protocol with random faults (SEEDS=100000)
	$(BIN)/wallaby simulate --seeds $(SEEDS) $(ARGS)

chaos: setup ## Break real engines at every fail point, under TPC-H, and compare answers (an hour or more; resumable)
	$(BIN)/wallaby chaos $(ARGS)

soak: setup ## Run queries under all kinds of faults with 4 workers and small budgets, and look for leaks (MINUTES=60; resumable)
	$(BIN)/wallaby chaos --soak $(MINUTES) --workers 4 --report reports/soak.json --page docs/results/soak.md $(ARGS)

differential: setup ## Compare every expression, random queries (QUERIES=1000, the next seeds) and tops with Spark's answers
	$(BIN)/wallaby differential --processes $(PROCESSES) --save reports/differential.json --commit "$(COMMIT)" $(ARGS)
	$(BIN)/wallaby differential --queries $(QUERIES) --processes $(PROCESSES) --save reports/differential.json --commit "$(COMMIT)"
	$(BIN)/wallaby differential --queries $(LOSSES) --processes $(PROCESSES) --losses --save reports/differential.json --commit "$(COMMIT)"
	$(BIN)/wallaby differential --tops --processes $(PROCESSES) --save reports/differential.json --commit "$(COMMIT)"
	$(BIN)/wallaby differential --tops --queries $(TOPS) --processes $(PROCESSES) --save reports/differential.json --commit "$(COMMIT)"
	$(BIN)/wallaby differential --page reports/differential.json docs/differential.md

mutants: setup ## Break the protocol and publishing on purpose; simulation and tests must notice each break
	$(BIN)/python -m pytest -m mutants tests/above
	$(BIN)/wallaby simulate --mutants --save reports/mutants.json --commit "$(COMMIT)" $(ARGS)

bench: setup ## Measure TPC-H by Wallaby, SparkSQL and DuckDB side by side (SCALE=1; takes a while)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby bench queries .bench/sf$(SCALE) --engine spark --engine wallaby --engine wallaby-2 --engine duckdb \
		--save reports/bench-sf$(SCALE).json --page docs/results/bench-sf$(SCALE).md $(ARGS)

bench-paper: setup ## Measure what the paper measured and draw its figures (SCALE=1 WORKERS=4 FIGURES="a d"; all: hours)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby bench paper .bench/sf$(SCALE) --workers $(WORKERS) $(addprefix --figure ,$(FIGURES)) \
		--out docs/paper-sf$(SCALE) $(addprefix --page ,$(shell grep -l 'paper-sf$(SCALE)/paper-' docs/evaluation.md)) $(ARGS)

bench-pipelines: setup ## Measure pipelines: Wallaby below Spark's own plans, beside Spark alone (SCALE=1; resumable)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby bench pipelines .bench/sf$(SCALE) --save reports/$(PIPELINES).json \
		--page docs/results/$(PIPELINES).md $(ARGS)

predict: setup ## Predict the paper's figures for up to 1,000 workers from its own runs, into docs/evaluation.md (SCALE=10)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby predict --data .bench/sf$(SCALE) --runs .bench/predict --policies docs/paper-sf$(SCALE)/paper-policies.json \
		--save docs/paper-sf$(SCALE)/predict.json --page docs/evaluation.md $(ARGS)

tpcds: setup ## Install DuckDB's TPC-DS generator, pinned, beside Wallaby (.bench/tpcds)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .bench/tpcds \
		-r requirements-tpcds.txt

contenders: setup ## Install further engines for the benchmark, pinned, beside Wallaby (.bench/packages)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target .bench/packages \
		-r requirements-bench.txt

verify: setup ## Compare TPC-H answers with Spark's on local, local-cluster and standalone masters (SCALE=1)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	PYTHONPATH=. $(BIN)/python tools/verify_masters.py .bench/sf$(SCALE)

memory: setup ## Measure the memory of a TaskManager under a small budget (SCALE=1)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/python tools/measure/memory.py .bench/sf$(SCALE)

memory-tpcds: tpcds ## Run TPC-DS under budgets of 1, 2 and 4 GiB and compare answers (SCALE=1; hours at 10; resumable)
	@test -d .bench/ds$(SCALE) || $(BIN)/wallaby tpcds generate .bench/ds$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby bench memory tpcds .bench/ds$(SCALE) --memory 1g --memory 2g --memory 4g \
		--conf spark.driver.memory=3g --save reports/memory-ds$(SCALE).json --page docs/results/memory-ds$(SCALE).md $(ARGS)

memory-tpch: setup ## Run TPC-H under a budget of 1 GiB and compare answers (SCALE=1; an hour at 30; resumable)
	@test -d .bench/sf$(SCALE) || $(BIN)/wallaby tpch generate .bench/sf$(SCALE) --scale $(SCALE)
	$(BIN)/wallaby bench memory tpch .bench/sf$(SCALE) --memory 1g --conf spark.driver.memory=3g \
		--save reports/memory-sf$(SCALE).json --page docs/results/memory-sf$(SCALE).md $(ARGS)

memory-exploding: setup ## Run 2,000 random queries with exploding joins under 256 MiB (resumable)
	$(BIN)/wallaby bench memory exploding .bench/exploding --memory 256m --conf spark.driver.memory=3g \
		--save reports/memory-exploding.json --page docs/results/memory-exploding.md $(ARGS)

measure: setup ## Measure a cold start, and what enable costs queries that stay on Spark (on a quiet machine)
	$(BIN)/python tools/measure/start.py
	$(BIN)/python tools/measure/enable.py

newcomer: setup ## Type what README and tutorial say, on a fresh clone of the last commit, with own files and mistakes, and time it
	$(BIN)/python -m tools.measure.newcomer $(ARGS)

pages: setup ## Generate the pages of docs/ that are made from code, and the drawings that are made from reports
	$(BIN)/python -m tools.write_docs
	$(BIN)/python -m tools.write_drawings

docs: pages $(DOCS_STAMP) ## Build the documentation site, build/site/index.html, after make pages
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --quiet $(ARGS)
	@echo "The site is in build/site. To search it, too: $(BIN)/python -m http.server --directory build/site"

$(DOCS_STAMP): requirements-docs.txt
	$(BIN)/python -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

release: $(RELEASE_STAMP) ## Make a release ready in dist/: build, check, try with every supported Python here, write notes (minutes)
	$(RELEASE_VENV)/bin/python -m tools.release

$(RELEASE_STAMP): $(STAMP) requirements-release.txt
	$(BIN)/python -m venv --clear $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-release.txt
	@touch $@

format: setup ## Format the code and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the virtual environment, caches and build results
	rm -rf $(VENV) $(DOCS_VENV) $(CONNECT_VENV) $(RELEASE_VENV) build dist lab/build lab/dist src/*.egg-info lab/src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src lab tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
