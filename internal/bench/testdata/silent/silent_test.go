// Package silent is a suite without a result.
package silent

import "testing"

func BenchmarkSkipped(b *testing.B) { b.Skip("as where a program is missing") }
