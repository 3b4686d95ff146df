// Package weight measures what a client adds to a program: modules, packages,
// bytes and build time.
//
// Each program has one peer, both of whose calls it makes. Programs are built
// for Linux on amd64, stripped, without cgo, so that their sizes are the same
// wherever they are measured. Build times are of this machine, and of a second
// program on it that builds at the same time too.
package weight
