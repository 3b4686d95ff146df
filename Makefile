.PHONY: check test race lint fuzz examples tables

# Everything; the same script that continuous integration runs.
check:
	.ci/run

test:
	.ci/run test

race:
	.ci/run race

lint:
	.ci/run format vet staticcheck tidy

fuzz:
	.ci/run fuzz

examples:
	.ci/run examples

# Rewrites the generated tables of README.md.
tables:
	go test -run '^TestREADME' . -update
