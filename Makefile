# Go and make are all that run and test need; web and test-web need Node and
# Chromium too.

GO       ?= go
LINT     := .cache/bin/golangci-lint
LINT_VERSION := v2.15.0
FUZZTIME ?= 20s
BROKERS  ?= 1

.PHONY: help build run test race check lint vet generate generate-diff tidy-diff fuzz bench bench-kafka web web-diff test-web kafka-up kafka-down test-kafka simulate chaos clean

help: ## list what there is
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/flights and bin/streamgauge
	$(GO) build -o bin/ ./cmd/...

run: build ## the demo: embedded broker, three instances, real flights, http://localhost:8080
	bin/flights demo

test: ## all tests that need only Go
	$(GO) test -timeout 15m ./...

race: ## the same under the race detector
	$(GO) test -race -short -timeout 30m ./...

check: vet lint generate-diff tidy-diff ## everything that is checked without running

vet:
	$(GO) vet ./...

lint: $(LINT) ## golangci-lint, with the import arrows
	$(LINT) run ./...

$(LINT):
	GOBIN=$(CURDIR)/.cache/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

generate: ## generate graph/ from schema.graphqls
	$(GO) run ./cmd/streamgauge generate

generate-diff: generate ## fails when graph/ does not match its schema
	@test -z "$$(git status --porcelain -- graph)" || { git status --short -- graph; git diff -- graph; exit 1; }

tidy-diff: ## fails when go.mod is not tidy
	$(GO) mod tidy -diff

fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
	  done; \
	done

bench: ## every benchmark
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-kafka: ## measure a worker on a real Kafka with 3,000,000 flights: FLAGS=... (Node 20; Java 17 and Maven)
	$(GO) run ./bench/kafka $(FLAGS)

web: ## build the pages into web/dist
	cd web/app && npm ci --no-audit --no-fund && npm run build

web-diff: web ## fails when web/dist does not match its sources
	@test -z "$$(git status --porcelain -- web/dist)" || { git status --short -- web/dist; exit 1; }

test-web: build ## the pages in a browser, and the GraphQL-over-HTTP audits
	web/test.sh

kafka-up: ## run Apache Kafka on this machine, BROKERS=1 or 3 (Java 17 and Maven)
	deploy/kafka/kafka.sh up $(BROKERS)

kafka-down: ## stop it
	deploy/kafka/kafka.sh down

# Tests that use the same names run one after another. What needs a broker of its
# own, or virtual time, is left to make test.
test-kafka: ## the worker and its Kafka client against a real Kafka, and a short chaos run
	deploy/kafka/kafka.sh up 1
	STREAMGAUGE_TEST_KAFKA=127.0.0.1:29091 $(GO) test -count=1 -p 1 -timeout 15m \
	  -skip 'Simulation|CrashPoints|NamesakeWakes|DiskFillsUp' ./processor/broker ./processor; \
	  result=$$?; deploy/kafka/kafka.sh down; exit $$result
	$(MAKE) chaos DURATION=30s SEED=1 BROKERS=1

simulate: ## random clusters in virtual time: SEEDS=1000; the trace of one that fails is kept
	$(GO) test ./processor -run 'Simulation|CrashPoints' -count=1 -timeout 24h -seeds $(or $(SEEDS),1000) -traces $(CURDIR)/.cache/simulate

chaos: ## break instances and brokers by a seed while answers are checked: DURATION=120s SEED=n BROKERS=3 FLAGS=...
	$(GO) run ./internal/chaos/cmd -duration $(or $(DURATION),120s) $(if $(SEED),-seed $(SEED)) \
	  -brokers $(if $(filter command line environment,$(origin BROKERS)),$(BROKERS),3) $(FLAGS)

clean: ## delete what was built
	rm -rf bin .cache
