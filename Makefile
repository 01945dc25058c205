# Everything runs in a virtual environment of its own, made on first use.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := CMakeLists.txt pyproject.toml $(wildcard cpp/*/*.hpp cpp/*/*.cpp cpp/*/*/*.hpp cpp/*/*/*/*.hpp)
CPP    := $(wildcard cpp/*/*.hpp cpp/*/*.cpp cpp/*/*/*.hpp cpp/*/*/*/*.hpp tests/cpp/*.cpp)

.PHONY: demo test test-all hunt fuzz lint format stub bench bench-peers papers docs sanitize clean

demo: $(VENV)/.installed
	$(BIN)/bmrm demo --output demo-output

test: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal

test-all: $(VENV)/.installed sanitize build/asan/.built
	$(BIN)/python -m pytest -n auto --dist worksteal
	PYTHONPATH=tests $(BIN)/python -m fuzz --core build/asan --minutes 3

# Half an hour of random problems. ARGS="--minutes 5 --seed 7" for others; --help lists the options.
hunt: $(VENV)/.installed
	$(BIN)/python -m bmrm.testing $(ARGS)

# Ten minutes of random files, messages and arguments. ARGS="--minutes 60 --target svmlight --seed 7"; --help lists all.
fuzz: build/asan/.built
	PYTHONPATH=tests $(BIN)/python -m fuzz --core build/asan $(ARGS)

lint: $(VENV)/.linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/python -m nanobind.stubgen -q -m bmrm._core -o build/_core.pyi
	diff -u src/bmrm/_core.pyi build/_core.pyi || { echo "src/bmrm/_core.pyi is out of date: run 'make stub'"; exit 1; }

format: $(VENV)/.linters
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

stub: $(VENV)/.linters
	$(BIN)/python -m nanobind.stubgen -q -m bmrm._core -o src/bmrm/_core.pyi

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

# Takes an hour. ARGS="--own --data a9a --loss hinge" for a few cells; --help lists the other options.
bench-peers: $(VENV)/.peers
	$(BIN)/python benchmarks/peers/run.py $(ARGS)

# ARGS="--only d09" for one of them; --help lists the others.
papers: $(VENV)/.bench
	PYTHONPATH=benchmarks $(BIN)/python -m papers $(ARGS)

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W -b html docs docs/_build

# The kernels alone, under the address and undefined-behavior sanitizers.
sanitize: $(VENV)/.installed
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DBMRM_KERNEL_TESTS=ON -DCMAKE_BUILD_TYPE=Debug \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
	$(BIN)/cmake --build build/sanitize
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure

# The Python module under the same sanitizers, beside the one that is installed.
build/asan/.built: $(CORE) | $(VENV)/.installed
	$(BIN)/cmake -S . -B build/asan -G Ninja -DBMRM_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python \
	  -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	$(BIN)/cmake --build build/asan
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=24"

# The core is compiled in place, so that only what changed is compiled again; packages without a wheel are built by their
# own rules, in an environment of their own.
$(VENV)/.installed: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind==3.1.0" "cmake>=3.24" ninja
	$(BIN)/python -m pip install -q --no-build-isolation -e .
	$(BIN)/python -m pip install -q "bmrm[test]"
	touch $@

$(VENV)/.linters: $(VENV)/.installed
	$(BIN)/python -m pip install -q "bmrm[lint]"
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install -q "bmrm[bench]"
	touch $@

# Each peer by itself: one that does not install here is left out, and the benchmark says so.
$(VENV)/.peers: $(VENV)/.bench
	for peer in $$($(BIN)/python -c "import tomllib; \
	    print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['peers'])"); do \
	  $(BIN)/python -m pip install -q $$peer || echo "$$peer does not install here: left out"; \
	done
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install -q "bmrm[docs]"
	touch $@

clean:
	rm -rf build dist demo-output docs/_build
