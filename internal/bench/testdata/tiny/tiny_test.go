// Package tiny is a suite that takes no time.
package tiny

import "testing"

func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(700, "B/agent")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkBroken(b *testing.B) {
	if !testing.Short() {
		b.Fatal("on purpose")
	}
	for b.Loop() {
	}
}
