# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
RUST := $(shell find crates proto -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.proto' \)) Cargo.toml Cargo.lock
POLICIES ?= ../shared/policies
export INTERLOCK_POLICIES ?= $(abspath $(POLICIES))
export HF_HUB_OFFLINE := 1

.PHONY: demo test check lint rust python slow policies bench train frozen clean help
.DEFAULT_GOAL := help

help:                ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*##/\t/' | expand -t 14

$(BIN)/.tools: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(UV) pip install --quiet --python $(BIN)/python -r requirements.lock
	@touch $@

$(BIN)/.built: $(BIN)/.tools $(RUST) pyproject.toml
	@echo "building the Rust core (a few minutes the first time)"
	$(BIN)/maturin develop --release --uv
	@touch $@

demo: $(BIN)/.built  ## the main job: checkpoint to guarded robot, in simulation, with a report
	$(BIN)/interlock go demo

test: lint rust python ## everything CI runs

lint: $(BIN)/.built  ## formatters, linters, types, layers
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BIN)/ruff check python tests benches training
	$(BIN)/ruff format --check python tests benches training
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest interlock._core --ignore-disjoint-bases
	$(BIN)/lint-imports --no-cache

rust: $(BIN)/.built  ## Rust tests
	INTERLOCK_ORT=$$($(BIN)/python -c 'from interlock.runtime.library import onnxruntime_library as f; print(f())') \
	  cargo test --quiet --workspace --exclude interlock-py

python: $(BIN)/.built ## Python tests
	$(BIN)/pytest -m "not slow"

slow: $(BIN)/.built  ## the suites that take minutes: a million guarded steps, 200 episodes, long fuzzing
	cargo test --quiet --release -p interlock-core --test guard_million -- --ignored
	$(BIN)/pytest -m slow

policies: $(BIN)/.built ## four published walking policies, from their files to 10 s of walking
	$(BIN)/python -m tests.policies

bench: $(BIN)/.built ## measurements as ratios against the floor; writes benches/out
	$(BIN)/python -m benches

train: $(BIN)/.built ## trains the demo's policy again, under 25 minutes on two cores
	$(BIN)/python -m training

frozen: $(BIN)/.built ## remakes what the package ships for users without PyTorch
	$(BIN)/python -m training.frozen

clean:               ## removes what was built, not what was recorded
	rm -rf target .venv python/interlock/_core*.so
