// Package simulation asks how well callers of one API key share its limits:
// workers in several processes, a service that counts by its own rule, and the
// network between them, all in virtual time (testing/synctest).
//
// It holds the targets of the client's Pacer as tests, beside other ways of
// coping with a limit, and measures what docs/rate-limits.md shows:
//
//	go test ./...                                  the targets, shortened
//	go test -run TestDocument -update-docs .       all cells, and the page
//
// Not modelled: requests that are lost, connections, several regions, drifting
// clocks, and a service of several nodes that count apart from each other.
package simulation
