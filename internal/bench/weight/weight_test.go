package weight

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/agentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/all"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/retryablehttp"
)

// short are the peers that are measured with -short too.
var short = []string{nethttp.Peer.Name, retryablehttp.Peer.Name, agentmessaging.Peer.Name}

// weighed is a peer's program.
type weighed struct {
	built
	contents
}

// BenchmarkWeight builds the program of each peer.
//
// Its build-s is from a cache that has the floor's program in it, which has
// most of the standard library, and for the floor from an empty cache.
func BenchmarkWeight(b *testing.B) {
	floorCache := b.TempDir()
	floor := weigh(b, nethttp.Peer, floorCache)
	for _, peer := range all.Peers {
		b.Run("subject="+peer.Subject(), func(b *testing.B) {
			if testing.Short() && !slices.Contains(short, peer.Name) {
				b.Skipf("not measured with -short: what %s adds to a program", peer.Name)
			}
			if peer.Name == nethttp.Peer.Name {
				report(b, floor, "KiB", floor.bytes)
				return
			}
			w := weigh(b, peer, copyOf(b, floorCache))
			report(b, w, "KiB-over-net/http", w.bytes-floor.bytes)
		})
	}
}

func weigh(b *testing.B, peer peers.Peer, cache string) (w weighed) {
	b.Helper()
	file, err := writeProgram(b.TempDir(), peer)
	if err != nil {
		b.Fatal(err)
	}
	if w.contents, err = list(file); err != nil {
		b.Fatal(err)
	}
	if w.built, err = build(file, cache); err != nil {
		b.Fatal(err)
	}
	return w
}

func copyOf(b *testing.B, cache string) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "cache")
	if err := os.CopyFS(dir, os.DirFS(cache)); err != nil {
		b.Fatal(err)
	}
	return dir
}

func report(b *testing.B, w weighed, unit string, bytes int64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(w.modules), "modules")
	b.ReportMetric(float64(w.packages), "packages")
	b.ReportMetric(float64(bytes)/1024, unit)
	b.ReportMetric(w.took.Seconds(), "build-s")
}
