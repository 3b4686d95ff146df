package weight

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain has every benchmark run once, whatever -benchtime says: a cold
// build or a run of all tests is not repeated for a rounder number.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
