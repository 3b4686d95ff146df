.PHONY: check test race lint fuzz simulation bench

# What a change can break. Continuous integration runs the same script, with its rare steps.
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

# Measures again what tools/simulation/README.md shows, and draws docs/pictures/limit.svg.
simulation:
	cd tools/simulation && go test -timeout 30m -update-docs .

# Measures what docs/performance.md shows, in ten rounds: two minutes on a machine
# that does nothing else.
bench:
	cd tools/bench && for round in 1 2 3 4 5 6 7 8 9 10; do \
		go test -run '^$$' -bench . -benchtime 200ms . || exit 1; \
	done >results.txt
	cd tools/bench && go tool benchstat -col /of -filter '/of:(base OR client) .unit:(sec/op OR cpu-sec/op OR allocs/op)' results.txt
