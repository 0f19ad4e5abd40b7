# Two commands: `make demo` shows what failsoft does, `make test` checks everything.
# Each makes .venv and installs what it needs, pinned by hash; the second run installs nothing.
# `make help` lists the rest. Another Python: `make test PYTHON=python3.13`.

PYTHON ?= python3
JOBS   ?= 3

VENV    := .venv
BIN     := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev
OLDEST  := $(VENV)-oldest/.frameworks
BENCH   := $(VENV)-bench/.peers
CORPUS  := $(VENV)-corpus/.libraries
YARD    := $(VENV)-yardstick/.benchmarks
PIP     := $(BIN)/python -m pip --disable-pip-version-check -qq --no-input
SOURCES := src tests $(wildcard bench examples tools)

.DEFAULT_GOAL := help
.PHONY: help demo docs golden demo-picture page-pictures test lint types contracts test-fast test-oldest test-core test-other test-million mutation torture torture-check soak corpus dist bench bench-guard comparison yardstick format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- the two commands --------------------------------------------------------------------------------------------

demo: $(RUNTIME) ## a turn of tool calls that fails softly, in your terminal
	@$(BIN)/failsoft demo

test: lint types contracts ## lint, types, import contracts, all tests
	@echo "tests"
	@$(BIN)/python -m pytest -q -n $(JOBS)

# --- parts of it -------------------------------------------------------------------------------------------------

lint: $(DEV) ## ruff: rules and format
	@echo "lint"
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES)

types: $(DEV) ## mypy, strict; and pyright on the public API
	@echo "types"
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pyright --warnings tests/typing >$(VENV)/pyright.txt 2>&1 || { cat $(VENV)/pyright.txt; exit 1; }

contracts: $(DEV) ## import-linter: imports point down only
	@echo "import contracts"
	@$(BIN)/lint-imports --no-cache >$(VENV)/contracts.txt 2>&1 || { cat $(VENV)/contracts.txt; exit 1; }

test-fast: $(DEV) ## the quick tests only, no lint
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow"

test-oldest: $(OLDEST) ## the adapters, with the oldest frameworks that they allow
	@echo "adapters with the oldest frameworks"
	@$(VENV)-oldest/bin/python -m pytest -q -n $(JOBS) tests/adapters

test-core: $(DEV) ## the core and the specification
	@$(BIN)/python -m pytest -q -n $(JOBS) tests/core tests/conformance

test-other: ## the same on one other Python, if there is one on the PATH or in pyenv
	@own=$$($(PYTHON) -c 'import sys; print(*sys.version_info[:2])'); \
	for other in python3.14 python3.13 python3.12 "$$(pyenv root 2>/dev/null)"/versions/3.1*/bin/python; do \
	  version=$$("$$other" -c 'import sys; print(*sys.version_info[:2]) if sys.version_info >= (3, 11) else 0' 2>/dev/null); \
	  if [ -n "$$version" ] && [ "$$version" != "$$own" ]; then \
	    echo "core and specification on Python $$version"; \
	    exec $(MAKE) --no-print-directory test-core VENV=$(VENV)-other PYTHON="$$other"; \
	  fi; \
	done; \
	echo "there is no other Python here"

# --- proof that takes longer -------------------------------------------------------------------------------------

test-million: $(DEV) ## a million breaker sequences against the reference model
	@FAILSOFT_SEQUENCES=1000000 $(BIN)/python -m pytest -q -n $(JOBS) tests/properties/test_breaker_model.py

mutation: $(DEV) ## break backoff, breaker and turn machine on purpose: do the tests notice?
	@for part in resilience/backoff resilience/circuit_breaker turn/machine; do \
	  $(BIN)/python tools/mutate.py --least 90 --jobs $(JOBS) src/failsoft/core/$$part.py -- \
	    tests/core/$$(dirname $$part)/test_$$(basename $$part).py || exit 1; \
	done

corpus: $(CORPUS) ## classification on real errors of 40 libraries, beside others' rules
	@PYTHONPATH=src $(VENV)-corpus/bin/python tests/corpus/score.py --baselines --errors 20

torture: $(DEV) ## the torture tests with their full counts
	@FAILSOFT_TORTURE=full $(BIN)/python -m pytest -q -n $(JOBS) tests/torture

torture-check: $(DEV) ## take out each protection in turn: does its torture test go red?
	@$(BIN)/python tools/torture_check.py --jobs $(JOBS)

soak: $(DEV) ## 100 simulated days and 10 minutes of real load (20 minutes in all)
	@$(BIN)/python -m tools.soak --jobs $(JOBS)

bench: $(BENCH) ## what failsoft costs, beside its peers (20 minutes); writes docs/performance.md
	@$(VENV)-bench/bin/python -m bench --instr --json $(VENV)-bench/run.json --page docs/performance.md

comparison: $(BENCH) ## the torture cases against the peers (6 minutes); writes docs/comparison.md
	@$(VENV)-bench/bin/python -m bench.peers --json $(VENV)-bench/peers.json --page docs/comparison.md

yardstick: $(YARD) ## other people's tasks under faults (15 minutes); writes docs/yardstick.md, fails if a mark is missed
	@$(VENV)-yardstick/bin/python -m bench.yardstick --jobs $(JOBS) --json $(VENV)-yardstick/run.json --page docs/yardstick.md

bench-guard: $(RUNTIME) ## has the happy path become dearer? (needs valgrind)
	@$(BIN)/python -m bench.guard

dist: $(RUNTIME) ## build wheel and sdist, and use them as a stranger does (installs every extra: minutes)
	@$(BIN)/python tools/dist_check.py

# --- housekeeping ------------------------------------------------------------------------------------------------

docs: $(DEV) ## write the generated pages of docs/ anew
	@for page in tools/*_page.py; do $(BIN)/python -m tools.$$(basename $$page .py) || exit 1; done

golden: $(DEV) ## record the event streams of tests/golden anew (a changed event needs a changelog entry)
	@$(BIN)/python -m tests.golden

demo-picture: $(RUNTIME) ## draw docs/assets/demo.svg anew
	@$(BIN)/python tools/draw_demo.py

page-pictures: $(DEV) ## draw docs/assets/page-*.png anew (needs chromium)
	@$(BIN)/python -m tools.draw_pages

format: $(DEV) ## let ruff mend what it can
	@$(BIN)/ruff check --fix --quiet $(SOURCES) || true
	@$(BIN)/ruff format --quiet $(SOURCES)

# The extras stay in the pins: without them, pip 23 looks for the newest version of a package that is required with one.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-strip-extras --no-config \
        --custom-compile-command "make lock"

lock: ## write requirements/*.lock anew (needs uv; UPGRADE=1 takes the newest versions)
	@$(LOCK) $(if $(UPGRADE),--upgrade) pyproject.toml --group dev --output-file requirements/dev.lock >/dev/null
	@$(LOCK) pyproject.toml --group build --constraints requirements/dev.lock \
	  --output-file requirements/runtime.lock >/dev/null
	@$(LOCK) $(if $(UPGRADE),--upgrade) pyproject.toml --group oldest --output-file requirements/oldest.lock >/dev/null
	@$(LOCK) $(if $(UPGRADE),--upgrade) pyproject.toml --group bench --output-file requirements/bench.lock >/dev/null
	@$(subst --no-config,--config-file requirements/yardstick.uv.toml,$(LOCK)) $(if $(UPGRADE),--upgrade) pyproject.toml \
	  --group yardstick --output-file requirements/yardstick.lock >/dev/null

clean: ## remove .venv and everything generated
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-other $(VENV)-bench $(VENV)-corpus $(VENV)-yardstick build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------------------

NO_INDEX = echo "pip could not install everything: it needs a package index, once. What is done is kept: run make again." >&2; exit 1

$(RUNTIME): pyproject.toml requirements/runtime.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(1)' 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>/dev/null) || found="not there"; \
	  echo "failsoft needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing failsoft and what it needs"
	@$(PIP) install --require-hashes -r requirements/runtime.lock || { $(NO_INDEX); }
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements/dev.lock
	@echo "installing the development tools (a minute or so, once)"
	@$(PIP) install --require-hashes -r requirements/dev.lock || { $(NO_INDEX); }
	@touch $@

$(OLDEST): pyproject.toml requirements/oldest.lock
	@test -x $(VENV)-oldest/bin/python || { echo "making $(VENV)-oldest"; $(PYTHON) -m venv $(VENV)-oldest; }
	@echo "installing the oldest frameworks"
	@$(subst $(BIN),$(VENV)-oldest/bin,$(PIP)) install --require-hashes -r requirements/oldest.lock || { $(NO_INDEX); }
	@$(subst $(BIN),$(VENV)-oldest/bin,$(PIP)) install --no-deps --no-build-isolation --editable .
	@touch $@

$(BENCH): pyproject.toml requirements/bench.lock
	@test -x $(VENV)-bench/bin/python || { echo "making $(VENV)-bench"; $(PYTHON) -m venv $(VENV)-bench; }
	@echo "installing the peers to measure beside"
	@$(subst $(BIN),$(VENV)-bench/bin,$(PIP)) install --require-hashes -r requirements/bench.lock
	@$(subst $(BIN),$(VENV)-bench/bin,$(PIP)) install --no-deps --no-build-isolation --editable .
	@touch $@

$(YARD): pyproject.toml requirements/yardstick.lock
	@test -x $(VENV)-yardstick/bin/python || { echo "making $(VENV)-yardstick"; $(PYTHON) -m venv $(VENV)-yardstick; }
	@echo "installing the benchmarks and the peers to measure beside"
	@$(subst $(BIN),$(VENV)-yardstick/bin,$(PIP)) install --no-deps --require-hashes -r requirements/yardstick.lock || { $(NO_INDEX); }
	@$(subst $(BIN),$(VENV)-yardstick/bin,$(PIP)) install --no-deps --no-build-isolation --editable .
	@touch $@

$(CORPUS): tests/corpus/requirements.txt
	@test -x $(VENV)-corpus/bin/python || { echo "making $(VENV)-corpus"; $(PYTHON) -m venv $(VENV)-corpus; }
	@echo "installing the libraries of the corpus (a few minutes, once)"
	@$(subst $(BIN),$(VENV)-corpus/bin,$(PIP)) install -r tests/corpus/requirements.txt
	@touch $@
