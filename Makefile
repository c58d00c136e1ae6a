# make lab opens the course, make test proves it. Both set up all they need in .venv.
# The first of these Pythons that is new enough.
PYTHONS = python3 python3.13 python3.12 python3.11
ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for it in $(PYTHONS); do $$it -c '$(ENOUGH)' 2>/dev/null && echo $$it && break; done),$(error \
	The course needs Python 3.11 or newer, and none of $(PYTHONS) is. Install one, or say where it is: make PYTHON=/path/to/python3.13 lab))
ENVIRONMENT = $(PYTHON) tools/reader/environment.py
DEFAULT = requirements.txt tests/requirements.txt tests/requirements-default.txt
PYTEST = -m pytest
FORM = .github/ISSUE_TEMPLATE
SCHEMAS = "vendor.github-workflows $(wildcard .github/workflows/*.yml)" \
	"vendor.dependabot .github/dependabot.yml" \
	"vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard $(FORM)/*.yml))" \
	"vendor.github-issue-config $(FORM)/config.yml" \
	"vendor.citation-file-format CITATION.cff"
# Two workers, a core each. WORKERS= for none, which is quicker where ARGS names a test or two.
WORKERS ?= -n logical --maxprocesses 2 --dist load --maxschedchunk 1
# Do the tests and the tools notice what is wrong, and is a fresh machine set up?
OF_TESTS = $(addprefix tests/house/test_,$(addsuffix .py,alarm environment execution new_lesson))
# What each Python and JAX must prove, and how lessons are executed there. PASSES=all: everything, as in the weekly run.
PASSES ?=
THE_DEFAULT = $(if $(PASSES),--passes $(PASSES),--passes plain -m "not elsewhere")
THE_OLDEST = --chip $(if $(PASSES),--passes $(PASSES),tests/lessons tests/exercises tests/helpers tests/examples/test_train.py $(OF_TESTS) --passes plain -m "elsewhere or not once")
THE_NEWEST = --chip $(if $(PASSES),--passes $(PASSES),tests/lessons tests/exercises tests/helpers --passes doubled -m "not once")
THE_JAX = --chip tests/lessons tests/helpers --passes plain -m "not once"
ARGS ?=
FOLDER ?=
FOR ?=
JAX ?=
SYSTEMS ?=
LESSON ?=
LESSONS ?=
REPOSITORY ?=
REVISION ?=
PAGES = README.md CHANGELOG.md teach/workshop.md .github/CONTRIBUTING.md $(addsuffix /README.md,examples notebooks tests utils)
NARROW = --line-length 88 --no-force-exclude notebooks tools/lessons/setup_cell.py $(wildcard examples/[0-9]*.py) examples/train.py

.PHONY: help setup lab fresh progress room slides handout spoilers site test test-oldest test-newest test-jax test-site check format links refresh lesson record stamp bench \
	test-environment site-environment

help:  ## list what make can do
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup:  ## install what make lab needs, and open nothing
	@$(ENVIRONMENT) .venv requirements.txt

lab:  ## open your copies of the lessons in JupyterLab; ARGS="--no-browser --port=8899" is passed on
	@$(PYTHON) start.py lab $(ARGS)

fresh:  ## give a lesson anew and keep your copy aside: LESSON=02
	@$(PYTHON) start.py fresh $(LESSON)

progress:  ## what you have solved and guessed; FOLDER=room for the saved notebooks of a whole room
	@$(PYTHON) start.py progress $(if $(FOLDER),"$(FOLDER)")

room:  ## say in seconds whether this machine is ready for the course, and what to do if not
	@$(PYTHON) -m tools.reader.room

test: check  ## prove the course on the newest JAX that this Python can have
	@echo "Running the tests (the lessons are executed; some minutes) ..."
	@.venv/bin/python $(PYTEST) $(WORKERS) $(THE_DEFAULT) $(ARGS)

test-oldest:  ## lessons, exercises and helpers on the oldest supported JAX, as in Colab; the tests of the tests
	@$(ENVIRONMENT) .venv-oldest tests/requirements-oldest.txt tests/requirements.txt
	@echo "Running the tests on the oldest supported JAX ..."
	@.venv-oldest/bin/python $(PYTEST) $(WORKERS) $(THE_OLDEST) $(ARGS)

test-newest:  ## lessons (alone, each cell twice), exercises and helpers on the newest JAX and Python found
	@$(ENVIRONMENT) --newest-python .venv-newest tests/requirements-newest.txt tests/requirements.txt; status=$$?; \
	if [ $$status -eq 3 ]; then exit 0; elif [ $$status -ne 0 ]; then exit $$status; fi; \
	echo "Running the tests on the newest JAX ..."; COURSE_PLANS=$${COURSE_PLANS:-small} .venv-newest/bin/python $(PYTEST) $(WORKERS) $(THE_NEWEST) $(ARGS)

test-jax:  ## lessons and helpers on a JAX of your choice, with the newest Flax that it allows: JAX=0.9, or JAX=0.9.1
	@mkdir -p scratch && echo "jax==$(JAX).*" > scratch/jax-$(JAX).txt
	@$(ENVIRONMENT) --newest-python .venv-jax-$(JAX) scratch/jax-$(JAX).txt requirements.txt tests/requirements.txt
	@echo "Running the tests on JAX $(JAX) ..."
	@.venv-jax-$(JAX)/bin/python $(PYTEST) $(WORKERS) $(THE_JAX) $(ARGS)

slides:  ## make slides of the lessons, from the notebooks, for a room without internet; LESSONS="01 02" for some
	@$(ENVIRONMENT) .venv-slides tools/teach/requirements-slides.txt
	@.venv-slides/bin/python -m tools.teach.slides $(LESSONS)

handout: setup  ## make one folder for a stick, for a room without internet; FOR=3.12 SYSTEMS="linux mac windows" for some
	@.venv/bin/python -m tools.teach.handout $(FOR) -- $(SYSTEMS)

spoilers: setup site-environment  ## open your copies in a real JupyterLab and count answers in sight of their questions; LESSONS="01 02"
	@.venv-site/bin/python -m tools.upkeep.spoilers $(LESSONS)

site: site-environment  ## build the pages and the PDF in site/_build/html, from the committed notebooks
	@echo "Building the site ..."
	@.venv-site/bin/python -m tools.site.build

test-site: site slides  ## prove the site in a headless browser: links, keyboard, phone, dark mode, accessibility
	@echo "Testing the site ..."
	@.venv-site/bin/python $(PYTEST) $(WORKERS) --confcutdir=tests/site tests/site $(ARGS)

check: test-environment  ## lint Python, notebooks, spelling, links inside the repository, and workflows
	@echo "Linting ..."
	@.venv/bin/ruff check --quiet . && .venv/bin/ruff check --quiet $(NARROW)
	@.venv/bin/ruff format --quiet --check . --exclude '*.ipynb' && .venv/bin/ruff format --quiet --check $(NARROW)
	@.venv/bin/codespell
	@printf '%s\n' $(SCHEMAS) | xargs -P 2 -L 1 .venv/bin/check-jsonschema --builtin-schema
	@.venv/bin/zizmor --quiet --offline --no-progress .github/workflows
	@.venv/bin/python $(PYTEST) -p no:nbmake --check-links --check-links-ignore 'https?://.*' $(PAGES) notebooks

format: test-environment  ## format Python and notebooks
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --exclude '*.ipynb' . ; .venv/bin/ruff format $(NARROW)

links: test-environment  ## check the links that lead out of the repository (needs the internet)
	@.venv/bin/python $(PYTEST) -p no:nbmake --check-links $(ARGS) $(PAGES) notebooks

refresh: test-environment  ## execute the lessons and write their outputs; LESSONS="01 02" for some
	@.venv/bin/python -m tools.lessons.refresh $(LESSONS)

lesson: test-environment  ## begin a lesson: NUMBER=10 NAME=fully_sharded TITLE="Shard the weights"
	@.venv/bin/python -m tools.lessons.new "$$NUMBER" "$$NAME" "$$TITLE"

stamp: test-environment  ## write what follows from the notebooks, and the repository's name: REPOSITORY=owner/name REVISION=v1
	@.venv/bin/python -m tools.lessons.stamp "$(REPOSITORY)" "$(REVISION)" && .venv/bin/python -m tools.lessons.predictions

record:  ## compile lessons' programs for TPUs and record what the compiler says (needs libtpu; 4 minutes); LESSONS="08" for some
	@$(ENVIRONMENT) --newest-python .venv-newest tests/requirements-newest.txt tests/requirements.txt
	@.venv-newest/bin/python -m tools.upkeep.record $(LESSONS)

bench: test-environment  ## CPU seconds, seconds and memory of each lesson, and what the helpers cost
	@.venv/bin/python -m tools.upkeep.bench

test-environment:
	@$(ENVIRONMENT) .venv $(DEFAULT)

site-environment:
	@$(ENVIRONMENT) .venv-site site/requirements.txt
