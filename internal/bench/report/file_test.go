package report

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readFixture(t *testing.T) (string, *File) {
	t.Helper()
	text, err := os.ReadFile("testdata/results.txt")
	require.NoError(t, err)
	f, err := Parse(string(text))
	require.NoError(t, err)
	return string(text), f
}

func TestFileThereAndBack(t *testing.T) {
	t.Parallel()
	text, f := readFixture(t)
	assert.Equal(t, text, f.String())
	assert.Equal(t, "go1.26.0", f.Get("go"))
	assert.Empty(t, f.Get("date"))
	require.Len(t, f.Blocks, 9)
	assert.Equal(t, "programs", f.Blocks[2].Suite)
	assert.Equal(t, 2, f.Blocks[6].Round)
}

func TestRoundsOfTheHeader(t *testing.T) {
	t.Parallel()
	f := &File{Header: []Pair{
		Measured("client", "2026-05-01, 40 rounds of 100ms"),
		Measured("weight", "2026-05-01, 1 round of 100ms, short"),
		Measured("fake", "long ago"),
	}}
	for suite, want := range map[string]int{"client": 40, "weight": 1, "fake": 0, "programs": 0} {
		assert.Equal(t, want, f.rounds(suite), suite)
	}
}

// What is measured anew replaces its own and nothing else.
func TestKeep(t *testing.T) {
	t.Parallel()
	old := &File{
		Header: []Pair{{"cpus", "2"}, Measured("client", "old"), Measured("fake", "old")},
		Blocks: []Block{{"client", 1, "old\n"}, {"fake", 1, "old\n"}},
	}
	f := &File{
		Header: []Pair{{"cpus", "2"}, Measured("client", "new")},
		Blocks: []Block{{"client", 1, "new\n"}},
	}
	f.Keep(old, func(suite string) bool { return suite == "fake" })
	assert.Equal(t, []Pair{{"cpus", "2"}, Measured("client", "new"), Measured("fake", "old")}, f.Header)
	assert.Equal(t, []Block{{"fake", 1, "old\n"}, {"client", 1, "new\n"}}, f.Blocks)
}

func TestSplit(t *testing.T) {
	t.Parallel()
	const output = `goos: linux
goarch: amd64
pkg: example.com/client
cpu: Imaginary CPU
BenchmarkCall/subject=a-2     	    1000	      2301 ns/op
BenchmarkCall/subject=b-2     	--- FAIL: BenchmarkCall/subject=b
    call_test.go:42: no answer
PASS
ok  	example.com/client	1.2s
`
	kept, cpu, rest := Split([]byte(output))
	assert.Equal(t, "pkg: example.com/client\nBenchmarkCall/subject=a-2     \t    1000\t      2301 ns/op\n", kept)
	assert.Equal(t, "Imaginary CPU", cpu)
	assert.Equal(t, "BenchmarkCall/subject=b-2     \t--- FAIL: BenchmarkCall/subject=b\n    call_test.go:42: no answer\n", rest)
}
