# make lab opens the course, and make test runs its tests. Both install the packages that they need in .venv.
# PYTHON defaults to the first of these that is version 3.11 or newer.
PYTHONS = python3 python3.13 python3.12 python3.11
IS_NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for it in $(PYTHONS); do $$it -c '$(IS_NEW_ENOUGH)' 2>/dev/null && echo $$it && break; done),$(error \
	The course needs Python 3.11 or newer, but none of $(PYTHONS) is. Install one, or give its path: make PYTHON=/path/to/python3.13 lab))
ENVIRONMENT = $(PYTHON) tools/reader/environment.py
DEFAULT_REQUIREMENTS = requirements.txt tests/requirements.txt tests/requirements-default.txt
PYTEST = -m pytest
FORMS = .github/ISSUE_TEMPLATE
SCHEMAS = "vendor.github-workflows $(wildcard .github/workflows/*.yml)" \
	"vendor.dependabot .github/dependabot.yml" \
	"vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard $(FORMS)/*.yml))" \
	"vendor.github-issue-config $(FORMS)/config.yml" \
	"vendor.citation-file-format CITATION.cff"
# By default, two workers run the tests, with one core each. WORKERS= runs them in a single process, which is faster if
# ARGS selects only a few tests.
WORKERS ?= -n logical --maxprocesses 2 --dist load --maxschedchunk 1
# Tests of the test functions, of the maintenance tools, and of the setup of a new machine. They don't depend on JAX.
TOOL_TESTS = $(addprefix tests/repository/test_,$(addsuffix .py,environment execution new_lesson weekly_report))
# The tests to run on each JAX version, and the way to execute lessons there. PASSES=all selects all tests and both ways
# to execute lessons, as in the weekly run.
PASSES ?=
DEFAULT_TESTS = $(if $(PASSES),--passes $(PASSES),--passes plain -m "not other_versions")
OLDEST_TESTS = --chip $(if $(PASSES),--passes $(PASSES),tests/lessons tests/exercises tests/helpers tests/examples/test_train.py $(TOOL_TESTS) --passes plain -m "other_versions or not once")
NEWEST_TESTS = --chip $(if $(PASSES),--passes $(PASSES),tests/lessons tests/exercises tests/helpers --passes doubled -m "not once")
CHOSEN_TESTS = --chip tests/lessons tests/helpers --passes plain -m "not once"
# The tests of the two packages that people install without the course.
PACKAGE_TESTS = $(PYTEST) $(WORKERS) packages
ARGS ?=
FOLDER ?=
FOR ?=
JAX ?=
SYSTEMS ?=
LESSON ?=
LESSONS ?=
REPOSITORY ?=
REVISION ?=
PAGES = README.md ARCHITECTURE.md $(addsuffix /README.md,packages/shardcost packages/find-old-jax) CHANGELOG.md teach/workshop.md .github/CONTRIBUTING.md $(addsuffix /README.md,examples notebooks tests utils)
NARROW = --line-length 88 --no-force-exclude notebooks tools/lessons/setup_cell.py $(wildcard examples/[0-9]*.py) examples/train.py

.PHONY: help setup lab fresh progress doctor room slides handout spoilers site test test-oldest test-newest test-jax test-site check format links refresh lesson record record-costs check-costs stamp bench \
	test-environment site-environment compilers-environment

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup:  ## install the packages that make lab needs
	@$(ENVIRONMENT) .venv requirements.txt

lab:  ## open your copies of the lessons in JupyterLab; ARGS="--no-browser --port=8899" is passed on to it
	@$(PYTHON) start.py lab $(ARGS)

fresh:  ## start a lesson again, and keep your old copy in work/kept: LESSON=02
	@$(PYTHON) start.py fresh $(LESSON)

progress:  ## print the exercises and guesses you got right; FOLDER=room reads a folder of saved notebooks instead
	@$(PYTHON) start.py progress $(if $(FOLDER),"$(FOLDER)")

doctor:  ## check whether this machine is ready for the course, and explain how to fix problems
	@$(PYTHON) -m tools.reader.doctor

room: doctor

test: check  ## lint, then run the tests on the newest JAX that this Python supports
	@echo "Running the tests, which execute the lessons and take several minutes ..."
	@.venv/bin/python $(PYTEST) $(WORKERS) $(DEFAULT_TESTS) $(ARGS)
	@$(if $(ARGS),,.venv/bin/python $(PACKAGE_TESTS))

test-oldest:  ## run lessons, exercises and helpers on the oldest supported JAX, as in Colab, and the tests of the tools
	@$(ENVIRONMENT) .venv-oldest tests/requirements-oldest.txt tests/requirements.txt
	@echo "Running the tests on the oldest supported JAX ..."
	@.venv-oldest/bin/python $(PYTEST) $(WORKERS) $(OLDEST_TESTS) $(ARGS)
	@$(if $(ARGS),,.venv-oldest/bin/python $(PACKAGE_TESTS))

test-newest:  ## run lessons (each alone, each cell twice), exercises and helpers on the newest JAX and Python found
	@$(ENVIRONMENT) --newest-python .venv-newest tests/requirements-newest.txt tests/requirements.txt; status=$$?; \
	if [ $$status -eq 3 ]; then exit 0; elif [ $$status -ne 0 ]; then exit $$status; fi; \
	echo "Running the tests on the newest JAX ..."; COURSE_PLANS=$${COURSE_PLANS:-small} .venv-newest/bin/python $(PYTEST) $(WORKERS) $(NEWEST_TESTS) $(ARGS) && \
	$(if $(ARGS),true,.venv-newest/bin/python $(PACKAGE_TESTS))

test-jax:  ## run lessons and helpers on the JAX you choose, with the newest Flax that allows it: JAX=0.9 or JAX=0.9.1
	@mkdir -p scratch && echo "jax==$(JAX).*" > scratch/jax-$(JAX).txt
	@$(ENVIRONMENT) --newest-python .venv-jax-$(JAX) scratch/jax-$(JAX).txt requirements.txt tests/requirements.txt
	@echo "Running the tests on JAX $(JAX) ..."
	@.venv-jax-$(JAX)/bin/python $(PYTEST) $(WORKERS) $(CHOSEN_TESTS) $(ARGS)
	@$(if $(ARGS),,.venv-jax-$(JAX)/bin/python $(PACKAGE_TESTS))

slides:  ## make slides from the notebooks, for use without internet; LESSONS="01 02" selects lessons
	@$(ENVIRONMENT) .venv-slides tools/teach/requirements-slides.txt
	@.venv-slides/bin/python -m tools.teach.slides $(LESSONS)

handout: setup  ## prepare a folder for a USB drive, for a workshop without internet; FOR=3.12 SYSTEMS="linux mac" makes a smaller one
	@.venv/bin/python -m tools.teach.offline_folder $(FOR) -- $(SYSTEMS)

spoilers: setup site-environment  ## open copies of the lessons in JupyterLab, and count questions with visible answers; LESSONS="01 02"
	@.venv-site/bin/python -m tools.maintenance.spoilers $(LESSONS)

site: site-environment  ## build the pages and the PDF in site/_build/html, from the committed notebooks
	@echo "Building the site ..."
	@.venv-site/bin/python -m tools.site.build

test-site: site slides  ## test the site in a headless browser: links, keyboard, phone, dark mode, accessibility
	@echo "Testing the site ..."
	@.venv-site/bin/python $(PYTEST) $(WORKERS) --confcutdir=tests/site tests/site $(ARGS)

check: test-environment  ## lint Python, notebooks, spelling, links inside the repository, and workflows
	@echo "Linting ..."
	@.venv/bin/ruff check --quiet . && .venv/bin/ruff check --quiet $(NARROW)
	@.venv/bin/ruff format --quiet --check . --exclude '*.ipynb' && .venv/bin/ruff format --quiet --check $(NARROW)
	@.venv/bin/codespell
	@.venv/bin/basedpyright --pythonpath .venv/bin/python
	@printf '%s\n' $(SCHEMAS) | xargs -P 2 -L 1 .venv/bin/check-jsonschema --builtin-schema
	@.venv/bin/pre-commit validate-manifest .pre-commit-hooks.yaml
	@.venv/bin/zizmor --quiet --offline --no-progress .github/workflows
	@.venv/bin/python $(PYTEST) -p no:nbmake --check-links --check-links-ignore 'https?://.*' $(PAGES) notebooks

format: test-environment  ## format Python files and notebooks
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --exclude '*.ipynb' . ; .venv/bin/ruff format $(NARROW)

links: test-environment  ## check the external links (needs the internet)
	@.venv/bin/python $(PYTEST) -p no:nbmake --check-links $(ARGS) $(PAGES) notebooks

refresh: test-environment  ## execute the lessons and write their outputs; LESSONS="01 02" runs only these
	@.venv/bin/python -m tools.lessons.execute $(LESSONS)

lesson: test-environment  ## create a draft lesson: NUMBER=10 NAME=fully_sharded TITLE="Shard the weights"
	@.venv/bin/python -m tools.lessons.new "$$NUMBER" "$$NAME" "$$TITLE"

stamp: test-environment  ## update everything generated from the notebooks; REPOSITORY=owner/name REVISION=v1 also changes its links
	@.venv/bin/python -m tools.lessons.update_generated "$(REPOSITORY)" "$(REVISION)" && .venv/bin/python -m tools.lessons.predictions

record:  ## compile the lessons' programs for TPUs and GPUs, and record the compilers' plans (6 minutes); LESSONS="08"
	@$(ENVIRONMENT) --newest-python .venv-compilers tests/requirements-compilers.txt tests/requirements.txt
	@JAX_PLATFORMS=cpu .venv-compilers/bin/python -m tools.maintenance.record_plans $(LESSONS)

record-costs: compilers-environment  ## compile the lessons' programs for CPUs, H100s and TPUs, and record the bytes sent; LESSONS="03"
	@JAX_PLATFORMS=cpu .venv-compilers/bin/python -m tools.maintenance.record_costs $(LESSONS)

check-costs: compilers-environment  ## compile the programs of record-costs again, print the bytes sent, and compare them with the record
	@JAX_PLATFORMS=cpu .venv-compilers/bin/python -m tools.maintenance.record_costs --check $(LESSONS)
	@$(if $(LESSONS),,JAX_PLATFORMS=cpu COURSE_PLANS=gpus .venv-compilers/bin/python $(PYTEST) tests/helpers/test_aot_compiler.py -k record_agrees $(ARGS))

bench: test-environment  ## measure each lesson's CPU time, elapsed time and memory, and the cost counter's speed
	@.venv/bin/python -m tools.maintenance.bench

compilers-environment:
	@$(ENVIRONMENT) --newest-python .venv-compilers tests/requirements-compilers.txt tests/requirements.txt

test-environment:
	@$(ENVIRONMENT) .venv $(DEFAULT_REQUIREMENTS)

site-environment:
	@$(ENVIRONMENT) .venv-site site/requirements.txt
