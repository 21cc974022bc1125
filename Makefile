# Every target does its own set-up, into .venv. `make repro` and `make test` are all a newcomer needs.
SHELL := /bin/bash
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What `make bundle` puts into remote/ beside the data: half an hour, or a language model, on two cores.
COSTLY := induce@handbook label@handbook embed@handbook-minilm embed@handbook-mpnet \
  index@handbook-minilm index@handbook-mpnet \
  units-retrieve@handbook-minilm units-retrieve@handbook-mpnet
INSTALL := .venv/bin/pip install --quiet --constraint constraints.txt

.PHONY: repro test setup pull models ui lint docs bench calibration bundle

repro: pull models          ## documents to tested contrasts: reports/report.html, mlruns/
	dvc repro
	@echo "read reports/report.html, or run 'make ui' for the MLflow page"

test: .venv/dev pull models ## the whole suite; what the machine lacks is reported, not passed over
	pytest

setup: .venv/base           ## the virtual environment

pull: .venv/base            ## bundled data and artifacts from the remote inside the repository
	@dvc pull --remote bundled --allow-missing --quiet $(COSTLY) || \
	  echo "Artifacts that DVC has not recorded stay as they are; 'dvc repro' goes on from them."
	@[ -d data/handbook ] || dvc pull --quiet data.dvc || { \
	  echo "DVC overwrites nothing that it has not recorded: move your own folder out of data/, run"; \
	  echo "'make pull', move it back and record it with 'dvc add data/NAME'."; exit 1; }

models: .venv/base          ## weights of the weak embedder, whose tokenizer measures every chunk
	spanwise models fetch minilm

ui: .venv/base              ## MLflow's page on http://127.0.0.1:5000
	spanwise ui

lint: .venv/dev
	ruff check .
	mypy

docs: .venv/docs            ## docs/ as a site, in site/
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet

bench: .venv/dev            ## ratios against other tools, each measured in one run
	python bench/scoring.py
	python bench/bootstrap.py
	python -m bench.report
	python -m bench.placebo

calibration: .venv/dev      ## 10,000 simulated studies of each design: hours; a run that was stopped goes on
	OMP_NUM_THREADS=1 python -m bench.calibration.intervals

bundle: .venv/base          ## write the bundled corpus and its costly artifacts to remote/
	@[ "$$(ls data)" = handbook ] || { echo "data/ has more than the bundled corpus: git must never"; \
	  echo "track what a person added; take it out of data/ and data.dvc first"; exit 1; }
	rm -rf remote/files
	dvc push --remote bundled data.dvc $(COSTLY)
	cd remote && { echo '# The objects that belong here; git takes no other. `make bundle` writes it.'; \
	  printf '%s\n' '/*' '!/.gitignore' '!/files' '/files/*' '!/files/md5' '/files/md5/*' '!/files/md5/??'; \
	  echo '/files/md5/??/*'; find files -type f | LC_ALL=C sort | sed 's|^|!/|'; } >.gitignore
	du -sh remote

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/base: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[cpu,formats]'
	touch .venv/base

.venv/dev: .venv/base
	$(INSTALL) --editable '.[cpu,formats,dev]'
	touch .venv/dev

.venv/docs: .venv/base
	$(INSTALL) --editable '.[cpu,formats,docs]'
	touch .venv/docs
