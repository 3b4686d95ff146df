// Package simulation measures package pacer on services that count calls in
// each of the usual ways, in virtual time. Its table of targets is part of
// docs/rate-limits.md.
package simulation
