.PHONY: check test race lint fuzz simulation bench

# Everything; the same script that continuous integration runs.
check:
	.ci/run

test:
	.ci/run test

race:
	.ci/run race

lint:
	.ci/run format vet staticcheck tidy docs scripts

fuzz:
	.ci/run fuzz

# Measures anew what tools/simulation/README.md shows.
simulation:
	cd tools/simulation && go test -timeout 30m -run TestTargets -update-docs .

# Measures anew the table of docs/performance.md, in ten rounds: a quarter of an
# hour on a machine that does nothing else.
bench:
	cd tools/bench && for round in 1 2 3 4 5 6 7 8 9 10; do \
		go test -run '^$$' -bench . -benchtime 200ms . ../../fakeserver || exit 1; \
	done >results.txt
	cd tools/bench && go run . <results.txt
