// Package weight measures what a client adds to a program: modules, packages,
// bytes and build time.
//
// Each program has one peer, both of whose calls it makes. Programs are built
// for Linux on amd64, stripped, without cgo, so that their sizes are the same
// wherever they are measured. Build times are of this machine, one build after
// another: of the floor's program from an empty cache, and of each other one from
// a cache that has the floor's in it.
package weight
