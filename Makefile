# Every habit is one command. `make demo` and `make test` do all their own set-up.
PYTHON ?= python3
SCALE ?= 0.01
BIN := .venv/bin

.PHONY: compiled demo test lint types unit transformers bench bench-cluster bench-series readers fuzz-planner fuzz-inputs properties simulate chaos format pictures clean lock web test-page screenshots

# Bytecode of our own modules, also where PYTHONDONTWRITEBYTECODE is set: a cluster starts many
# processes, and each would compile them anew. And the kernels, if their sources have changed.
compiled: .venv/ready
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m caudal.kernels.building

demo: compiled
	@$(BIN)/caudal generate movies --scale $(SCALE) --out demo-data/movies
	@$(BIN)/caudal generate books --scale $(SCALE) --out demo-data/books
	@$(BIN)/caudal run movies --data demo-data/movies
	@$(BIN)/caudal run books --data demo-data/books
	@sh deploy/demo_dataset.sh $(BIN)/caudal demo-data/books
	@sh deploy/demo.sh $(BIN)/caudal demo-data/books

# First what needs one core each, side by side; then the tests, which take all of them.
test: .venv/ready
	@$(MAKE) --no-print-directory -j 2 --output-sync types lint compiled .venv/rabbitmq .venv/chromium .venv/transformers .venv/spark
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory -j 2 --output-sync transformers spark

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

# In the locked environment and nothing else: a package that only came with another one is missed here.
# One process more than the expected cores, because the tests of real clusters
# wait most of the time; and who has nothing left to do takes from the others.
PYTEST := $(BIN)/pytest -q -n 3 --dist worksteal
unit: compiled
	$(PYTEST) -m 'not long'

# What `make test` leaves out: the longest tests, and most cases of those that have many.
.PHONY: test-long
test-long: compiled .venv/rabbitmq .venv/chromium
	$(PYTEST) -m long

# The transformers backend, in the environment that has it. It runs beside the tests of Spark: each has
# its own temporary folder, since pytest cleans the shared one up and stumbles over another one that does.
transformers: .venv/transformers
	.venv-transformers/bin/pytest -q --basetemp .venv-transformers/tmp tests/unit/kernels/test_sentiment_model.py \
	  tests/unit/kernels/test_sentiment_transformers.py tests/acceptance/test_transformers_cluster.py

.PHONY: spark test-spark
# The Spark engine, in the environment that has PySpark: ten queries on a real Spark.
spark: .venv/spark
	.venv-spark/bin/pytest -q -n 0 --basetemp .venv-spark/tmp tests/unit/spark tests/spark

# The long ones: random plans, Sail, killed workers and executors.
test-spark: compiled .venv/spark
	.venv-spark/bin/pytest -q -n 0 tests/unit/spark tests/spark tests/spark_long

# PySpark and Sail read the tables of datasets. Sail takes clients of its own age.
readers: .venv/spark
	.venv-spark/bin/pytest -q -n 0 tests/integration/datasets/test_spark_readers.py -k pyspark
	PYTHONPATH=.venv-spark/sail .venv-spark/bin/pytest -q -n 0 \
	  tests/integration/datasets/test_spark_readers.py -k sail

# make bench ONLY=start measures how long commands and processes take to start, ONLY=dataset datasets.
bench: compiled
	$(BIN)/python -m bench$(if $(filter start,$(ONLY)),.start)$(if $(filter dataset,$(ONLY)),.shelf) --write docs/benchmarks.md

# A real cluster beside the embedded engine, PySpark and Dask:
# make bench-cluster [SCALE=0.3] [REPEATS=3] [GROWTH=0.1,0.3,1] [ONLY=whole,rivals,spark,scaling,small,tiny,growth,pages,datasets,idle]
bench-cluster: SCALE = 0.3
bench-cluster: compiled $(if $(filter idle,$(ONLY)),,$(if $(filter spark,$(ONLY)),.venv/spark,.venv/rabbitmq .venv/rivals .venv/spark))
	$(BIN)/python -m bench.cluster --scale $(SCALE) --write docs/benchmarks.md \
	  $(if $(REPEATS),--repeats $(REPEATS)) $(if $(GROWTH),--growth $(GROWTH)) $(if $(ONLY),--only $(ONLY))

bench-series: compiled
	$(BIN)/python -m bench.series --write docs/benchmarks.md

# What 1,000 workers cost, from measured units, and a simulated crowd of 500 of them: docs/scale.md
# ONLY=units measures the units again and keeps the crowd.
.PHONY: scale
scale: compiled
	$(BIN)/python -m bench.scale --write docs/scale.md $(if $(filter units,$(ONLY)),--units)

# Random queries against DuckDB, for as long as asked: make fuzz-planner SECONDS=3600
SECONDS ?= 300
fuzz-planner: compiled
	$(BIN)/python -m tests.fuzz.run $(SECONDS) $(SEED)

# The properties of the tests with many more examples, new ones each time: make properties TIMES=20
TIMES ?= 20
properties: compiled
	CAUDAL_TIMES=$(TIMES) $(BIN)/pytest -q -n 2 tests/property \
	  tests/integration/series/test_concurrency.py tests/integration/series/test_crashes.py \
	  tests/unit/tasks/test_local.py

# Damaged batches, streams, objects, messages and columns, read in a child process that must neither
# crash nor raise what it does not document: make fuzz-inputs CASES=1000000 [SEED=K] [BOUNDS=1]
# With BOUNDS, kernels are compiled anew with a check of every access to an array.
CASES ?= 100000
fuzz-inputs: compiled
	$(if $(BOUNDS),NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/bounds) \
	  $(BIN)/python -m tests.fuzz_inputs.run $(CASES) $(SEED)

# Many seeded worlds full of crashes, lost messages and frozen processes; SEED=K replays one. DATASETS=1:
# worlds with a dataset.
SEEDS ?= 300
FIRST ?= 0
simulate: compiled
	$(BIN)/python -m tests.simulation.run \
	  $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST) --processes 2) $(if $(DATASETS),--datasets)

# A real cluster under fire, jobs streaming all the time: make chaos KILLS=1000 [S3=1] [EMBEDDED=1]
# CLIENTS: how many stream jobs; EVERY: seconds between strikes, in the mean.
# HOSTILE=1: hostile clients beside honest ones instead: [JOBS=12] [KINDS=endless,planning]
# DOCKER=1: containers of compose.yaml on a Docker engine of its own instead of processes.
KILLS ?= 100
chaos: compiled $(if $(EMBEDDED)$(DOCKER),,.venv/rabbitmq)
	$(if $(DOCKER),@sh tests/containers/install_docker.sh)
	$(BIN)/python -m tests.acceptance.chaos --kills $(KILLS) $(if $(S3),--s3) \
	  $(if $(EMBEDDED),--embedded) $(if $(DOCKER),--docker) $(if $(SEED),--seed $(SEED)) \
	  $(if $(CLIENTS),--clients $(CLIENTS)) $(if $(EVERY),--every $(EVERY)) \
	  $(if $(HOSTILE),--hostile) $(if $(JOBS),--jobs $(JOBS)) $(if $(KINDS),--kinds $(KINDS))

# Three hosts, a broker's and a store's in network namespaces, as root; one fault of the network, of
# processes or of a clock after the other, while jobs stream and datasets are loaded and asked:
# NODES=3: the broker is three nodes of RabbitMQ on the hosts, by deploy/rabbitmq.conf (TICKTIME=60: another one).
# make partitions [SECONDS=20] [SEED=K] [NODES=3] [FAULTS=cut,one-way,loss,delay,parted,broker,store,kill,clock,slow,flapping,rolling,down]
.PHONY: partitions
partitions: SECONDS = 20
partitions: compiled .venv/rabbitmq
	@sh tests/partitions/install.sh
	$(BIN)/python -m tests.partitions.run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) \
	  $(if $(FAULTS),--faults $(FAULTS)) $(if $(NODES),--nodes) $(if $(TICKTIME),--ticktime $(TICKTIME))

# A cluster of the previous version becomes one of the present code and goes back, process by process,
# under kills: make upgrade [PREVIOUS=REF] [RABBIT=1] [SEED=K]; without PREVIOUS, the newest tag, or the
# commit of release 0.1.0 while there is no tag.
.PHONY: upgrade
upgrade: compiled $(if $(RABBIT),.venv/rabbitmq)
	$(BIN)/python -m tests.acceptance.upgrade $(if $(PREVIOUS),--previous $(PREVIOUS)) \
	  $(if $(RABBIT),--rabbit) $(if $(SEED),--seed $(SEED))

# The image and compose.yaml on a real Docker engine, as root: Debian's packages are installed if they
# are missing, the engine has its own folder and ends with the tests. CAUDAL_TEST_ENGINE=SOCKET uses a
# running one, CAUDAL_TEST_KEEP_IMAGE=1 an image built before. With compose 2; make test-docker COMPOSE=1
# takes Debian 12's own, 1.29.
.PHONY: test-docker
test-docker: compiled
	@sh tests/containers/install_docker.sh
	CAUDAL_TEST_DOCKER=1 $(if $(COMPOSE),CAUDAL_TEST_COMPOSE=$(COMPOSE)) $(BIN)/pytest -q -n 0 -s tests/containers

# Files for Kubernetes, systemd and HAProxy, checked by programs that Caudal does not need itself.
.PHONY: test-deploy
test-deploy: compiled
	@test -x .venv-deploy/bin/kubernetes-validate || { $(PYTHON) -m venv .venv-deploy && \
	  .venv-deploy/bin/pip install --quiet --disable-pip-version-check 'kubernetes-validate>=1.37'; }
	@command -v haproxy >/dev/null || sh tests/harness/apt_install.sh haproxy
	@command -v kubectl >/dev/null || sh tests/harness/apt_install.sh kubernetes-client
	@command -v systemd-analyze >/dev/null || sh tests/harness/apt_install.sh systemd
	CAUDAL_TEST_DEPLOY=1 CAUDAL_KUBERNETES_VALIDATE=.venv-deploy/bin/kubernetes-validate \
	  $(BIN)/pytest -q -n 0 tests/deploy

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What is generated: diagrams in ARCHITECTURE.md and docs/queries/, the list of ADRs in docs/README.md.
pictures: compiled
	$(BIN)/python -m tests.tidy.pictures

# The environment, exactly as locked. uv is in the lock too, so that it survives the sync.
.venv/ready: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes --python $(BIN)/python requirements.lock
	@PYTHONPATH=src $(BIN)/python -m caudal.kernels.building
	@$(BIN)/uv pip install --quiet --no-deps --python $(BIN)/python --editable .
	@touch $@

# The transformers backend is tested where a CPU build of torch can be had; it is not locked,
# because the general index serves builds of several gigabytes. Without it those tests skip. It has
# an environment of its own, so that everything else is tested without what comes with it. What is
# used of it is compiled to bytecode: each process of a cluster would spend 15 seconds on that.
# Here and below: what could not be had is tried again by the next make, and said each time.
.venv/transformers: .venv/ready
	@test -x .venv-transformers/bin/python || $(PYTHON) -m venv .venv-transformers
	@$(BIN)/uv pip sync --quiet --require-hashes --python .venv-transformers/bin/python requirements.lock
	@$(BIN)/uv pip install --quiet --no-deps --python .venv-transformers/bin/python --editable .
	@$(PYTHON) -m pip --python .venv-transformers/bin/python install --quiet --disable-pip-version-check \
	  --no-compile 'torch==2.13.0+cpu' 'transformers>=5' >/dev/null 2>&1 && touch $@ \
	  || echo "no CPU build of torch here: the tests of the transformers backend will skip"
	@PYTHONDONTWRITEBYTECODE= .venv-transformers/bin/python -c 'import transformers as t; \
	  t.BertForSequenceClassification, t.BertTokenizerFast, t.AutoTokenizer' >/dev/null 2>&1 || true

# PySpark and Sail for the tests of the Spark engine, in an environment of their own: they are too
# large for the lock. Without them, or without Java, those tests skip. Sail is older than PySpark and
# takes clients of its own age.
.venv/spark: .venv/ready
	@test -x .venv-spark/bin/python || $(PYTHON) -m venv .venv-spark
	@$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes --python .venv-spark/bin/python requirements.lock
	@$(BIN)/uv pip install --quiet --no-deps --python .venv-spark/bin/python --editable .
	@$(PYTHON) -m pip --python .venv-spark/bin/python install --quiet --disable-pip-version-check \
	  --compile 'pyspark[connect]==4.3.0' pysail==0.7.2 >/dev/null 2>&1 \
	  || { echo "no PySpark here: the tests of the Spark engine will skip"; exit 0; }; \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv-spark/sail pyspark-client==4.1.3 >/dev/null 2>&1 \
	  || { echo "no client for Sail here: its tests will skip"; exit 0; }; \
	sh tests/harness/install_java.sh && touch $@ || true

# A real broker for the tests, from the system's packages; without it those tests skip.
.venv/rabbitmq: .venv/ready
	@sh tests/harness/install_rabbitmq.sh && touch $@ || true

# Chromium for the tests of the page, and the packages of web/; without them those tests skip.
.venv/chromium: .venv/ready web/package-lock.json
	@sh tests/harness/install_chromium.sh && touch $@ || true

# The page of gateways: checked, tested and built from web/ into the package. It needs node.
web:
	cd web && npm install --no-save --silent && npm run --silent check && npm test --silent && npm run --silent build

# The page with ten thousand jobs and a million rows, in a real Chromium.
test-page: compiled .venv/chromium
	$(BIN)/pytest -q -n 0 tests/page/test_browser.py tests/page/test_pages.py tests/page/many.py

# The pictures of the README, from a real cluster under chaos.
screenshots: compiled .venv/chromium
	$(BIN)/python -m tests.page.pictures

# PySpark and Dask for bench-cluster, in an environment of their own: they are too large for the
# lock. Where they cannot be had, the benchmark says so in their place.
.venv/rivals: .venv/ready
	@test -x .venv-rivals/bin/python || $(PYTHON) -m venv .venv-rivals
	@$(BIN)/uv pip install --quiet --compile-bytecode --constraint requirements.lock \
	  --python .venv-rivals/bin/python 'pyspark>=4.1' 'dask[dataframe,distributed]>=2026' pandas --editable '.[cluster,s3]' \
	  && touch $@ || echo "PySpark and Dask cannot be installed here: bench-cluster goes on without them"

lock:
	$(BIN)/uv pip compile pyproject.toml --extra cluster --extra s3 --group dev --group bench --universal \
	  --generate-hashes --no-header --no-annotate --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra cluster --extra s3 --universal --constraint requirements.lock \
	  --generate-hashes --no-header --no-annotate --output-file deploy/requirements.lock
	$(BIN)/uv pip compile --group build --universal --constraint requirements.lock \
	  --generate-hashes --no-header --no-annotate --output-file deploy/build.lock

clean:
	rm -rf .venv .venv-deploy .venv-previous .venv-rivals .venv-spark .venv-transformers demo-data .mypy_cache .ruff_cache .pytest_cache .hypothesis
