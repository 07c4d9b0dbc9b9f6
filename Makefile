# The two commands of a fresh machine: `make demo` and `make test`. Nothing but Python 3.11, git and
# make is needed; with Docker there, `make test` also builds its images and runs real containers, so
# many test files at once as WORKERS says: most of them wait for engines, daemons and cut cables.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= $(shell expr $$(nproc) + 2)
VENV := .venv
BIN := $(VENV)/bin
# pip would compile all modules; most are never imported, and the first command compiles those that are.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Empty counts as unset: without byte code every process would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test up down check unit drill format docs site house images bench bench-gpu fleet clean

demo: $(VENV)/.installed-demo$(if $(ENGINE),-$(ENGINE)) ## Deploy a tiny model, chat with it, show its record. KEEP=1 leaves it running; ENGINE=llama.cpp takes a GGUF file, without torch.
	@KEEP=$(KEEP) ENGINE=$(ENGINE) scripts/demo.sh

test: check ## Everything that this machine can test.
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder; code=$$?; \
	if [ $$code -ne 1 ]; then exit $$code; fi; \
	echo "What failed runs once more, alone: only what fails again is a failure."; \
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# docs/team.md. UP='--port 4300 --no-serve' gives options; WITH=compose uses containers.
ifeq ($(WITH),compose)
COMPOSE := docker compose --env-file deployments/team.env
up: deployments/team.env ## A server for a team: PostgreSQL and Prefect.
	$(COMPOSE) up --detach --wait --wait-timeout 300
down: ## Stop it; the data stay.
	$(COMPOSE) down
else
up: $(VENV)/.installed-team ## A server for a team: PostgreSQL, Prefect and the flows.
	@$(BIN)/python -m scripts.team up $(UP)
down: $(VENV)/.installed-team ## Stop it; the data stay.
	@$(BIN)/python -m scripts.team down $(UP)
endif

deployments/team.env:
	@echo 'cp deployments/team.env.example $@, and fill in the passwords' >&2; exit 1

check: $(VENV)/.installed-dev ## Format, lint, types, layers.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@# On a busy machine its workers may not come up in time.
	$(BIN)/mypy --num-workers $$(nproc) || $(BIN)/mypy

unit: $(VENV)/.installed-dev ## Only what runs in seconds.
	$(BIN)/python -m pytest -m "not server and not process and not docker and not vllm"

drill: $(VENV)/.installed-dev ## 200 random operations, some of them killed (CI: 60); 10 sleeping models asked for 5 minutes (CI: 4, 20 s); a thousand claims at once (CI: 320).
	MOORAGE_CHAOS_OPERATIONS=200 $(BIN)/python -m pytest tests/e2e/test_chaos.py
	MOORAGE_CLAIMS_EACH=125 $(BIN)/python -m pytest tests/adapters/ledger/test_competition.py
	MOORAGE_CROWD_MODELS=10 MOORAGE_CROWD_SECONDS=300 $(BIN)/python -m pytest -s tests/e2e/test_crowd.py

format: $(VENV)/.installed-dev ## Format, and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-dev ## Write what is generated: references, schemas, names of options, dashboards, the picture of the rooms.
	$(BIN)/python -m scripts.reference
	$(BIN)/python scripts/make_option_names.py
	$(BIN)/python scripts/make_dashboards.py
	$(BIN)/python -m scripts.house --update CONTRIBUTING.md

site: $(VENV)/.installed-docs ## Build the site of docs/ into site/. Broken links are errors.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

house: $(VENV)/.installed-dev ## Sizes of the rooms, imports that point up, files to read. AGAINST=REV compares.
	@$(BIN)/python -m scripts.house $(if $(AGAINST),--against $(AGAINST))

images: ## Build the container images that the tests use.
	scripts/build_lifecycle_image.sh
	scripts/build_vllm_cpu_image.sh
	scripts/build_helper_image.sh
	scripts/build_envoy_image.sh
	scripts/build_llama_cpp_image.sh
	scripts/build_triton_image.sh
	scripts/build_vllm_cpu_ray_image.sh

bench: $(VENV)/.installed-dev ## What commands take, what a home of 10,000 releases costs, what placement and survey take on large fleets, what a deploy adds to the engine's own start, redeploying 100 models, what the gateway adds to a request, and what bringing weights costs.
	$(BIN)/python -m benchmarks.commands
	$(BIN)/python -m benchmarks.home
	$(BIN)/python -m benchmarks.placement
	$(BIN)/python -m benchmarks.claiming
	$(BIN)/python -m benchmarks.survey
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.redeploying
	$(BIN)/python -m benchmarks.gateway
	$(BIN)/python -m benchmarks.downloads

bench-gpu: $(VENV)/.installed-dev ## What vLLM takes of this machine's NVIDIA GPU, beside what was predicted; vLLM has to be installed next to this Python.
	$(BIN)/python -m benchmarks.gpu_memory

fleet: $(VENV)/.installed-dev ## Three Docker hosts on this machine to play with (root), until Ctrl-C.
	scripts/build_lifecycle_image.sh
	$(BIN)/python -m tests.fleet --hosts 3 --image moorage/lifecycle:1

clean: ## Remove what `make` has made.
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip # Python 3.11's takes half as long again
	$(BIN)/python -m pip uninstall --quiet --yes setuptools # 9 MB that Python 3.11 adds and nothing needs

$(VENV)/.installed-demo: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e '.[transformers,gateway]'
	@touch $@

$(VENV)/.installed-demo-llama.cpp: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e '.[llama-cpp]'
	@touch $@

$(VENV)/.installed-team: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e '.[configs,postgres]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e '.[transformers,postgres,dev]'
	@touch $@ $(VENV)/.installed-demo $(VENV)/.installed-docs $(VENV)/.installed-team
