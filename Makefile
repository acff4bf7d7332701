# Every target is one line; what it does is in gate/. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-lab run plugin lab test test-lab test-kubernetes test-languages test-images bench fmt

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
setup: ## install what building and testing needs; the other targets do it by themselves
	@gate/setup.sh cluster gate
setup-lab: ## and what real nodes on this machine need: packages of Debian, as root
	@gate/setup.sh cluster lab
run: ## a real cluster with OpenSDN on this machine, to try with your own kubectl; Ctrl-C ends it
	@gate/run.sh
plugin: ## build the kubectl plugin alone, into target/kubectl-opensdn
	@gate/plugin.sh
lab: ## a cluster of three real nodes on this machine, as root on Linux; Ctrl-C ends it
	@gate/lab.sh
test: ## the gate: format, lints, docs, licences, all tests
	@gate/test.sh
test-lab: ## the long tests on real nodes: every fault under load, outages, images as shipped; as root
	@gate/test.sh lab
test-kubernetes: ## the sandbox and admission tests against VERSION=1.33, 1.35 or 1.36
	@gate/test-kubernetes.sh $(VERSION)
test-languages: ## begin, build and test a policy in each language: Rust, JavaScript, Python, C
	@gate/test-languages.sh
test-images: ## build and start the images of services that the lab uses: Redis, Cassandra, …
	@gate/test-images.sh
bench: ## measure evaluation, throughput, start-up and memory; prints a table, writes JSON
	@gate/bench.sh
fmt: ## format the source
	@cargo fmt --all
