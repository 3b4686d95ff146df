package peers

import (
	"os"
	"strings"
)

// Key is what the clients of other services are given: as long as a key is,
// and of no service's form, which scanners for leaked keys would report.
const Key = "key_0123456789abcdef0123456789abcdef"

// Unset takes the variables that start with prefix out of the environment of
// the process, for a client that would read them: a measurement is the same on
// every machine.
func Unset(prefix string) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, prefix) {
			os.Unsetenv(name)
		}
	}
}
