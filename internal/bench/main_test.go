package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/report"
)

var day = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func asked(only string, rounds int) options {
	return options{rounds: rounds, benchtime: "1x", only: regexp.MustCompile(only)}
}

func written(o options) options {
	o.write = true
	return o
}

// tiny is one package as two suites, one that is not there and one that has
// nothing to say.
func tiny() []suite {
	return []suite{
		{"tiny", "testdata/tiny", 0},
		{"once", "testdata/tiny", 1},
		{"gone", "testdata/gone", 0},
		{"silent", "testdata/silent", 1},
	}
}

func TestRounds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{"client": {10, 2}, "fake": {10, 2}, "programs": {3, 2}, "weight": {1, 1}} {
		for _, s := range suites {
			if s.name == name {
				assert.Equal(t, want, [2]int{s.rounds(options{rounds: 10}), s.rounds(options{rounds: 2})}, name)
			}
		}
	}
	assert.Len(t, suites, 4)
}

// Suites take turns; what fails is an error, and the rest is in the file.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	file, failed := measure(t.Context(), asked("", 2), tiny(), day)
	require.NotNil(t, file)
	assert.ErrorContains(t, failed, "gone was not built")
	assert.ErrorContains(t, failed, "tiny, round 2: exit status 1")
	var order []string
	for _, b := range file.Blocks {
		order = append(order, b.Suite)
		if b.Suite == "silent" {
			assert.NotContains(t, b.Output, "Benchmark")
			continue
		}
		assert.Regexp(t, `^pkg: .*/bench/testdata/tiny\nBenchmarkMemory(-\d+)?\s+1\s+700\.0 B/agent\n$`, b.Output)
	}
	assert.Equal(t, []string{"tiny", "once", "silent", "tiny"}, order)
	assert.Equal(t, "2026-05-01, 2 rounds of 1x", file.Get("measured-tiny"))
	assert.Equal(t, "2026-05-01, 1 round of 1x", file.Get("measured-once"))
	assert.Empty(t, file.Get("measured-gone"))
	assert.Empty(t, file.Get("measured-silent"))

	short := asked("tiny", 1)
	short.short = true
	file, failed = measure(t.Context(), short, tiny()[:1], day)
	require.NoError(t, failed)
	assert.Contains(t, file.Blocks[0].Output, "BenchmarkBroken")
	assert.Equal(t, "2026-05-01, 1 round of 1x, short", file.Get("measured-tiny"))
}

func TestNothingToMeasure(t *testing.T) {
	t.Parallel()
	for _, o := range []options{asked("nobody", 1), asked("", 0)} {
		file, failed := measure(t.Context(), o, suites, day)
		assert.Nil(t, file)
		assert.ErrorContains(t, failed, "nothing to measure")
	}
}

// benchFolder is a copy of what the command writes, and its working folder from
// here on. The suite is still the one of this folder.
func benchFolder(t *testing.T) (all []suite, page string) {
	t.Helper()
	folder, err := filepath.Abs("testdata/tiny")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	require.NoError(t, err)
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bench"), 0o755))
	page = filepath.Join(root, "docs", "performance.md")
	require.NoError(t, os.WriteFile(page, text, 0o644))
	t.Chdir(filepath.Join(root, "bench"))
	return []suite{{"tiny", folder, 0}, {"other", folder, 0}}, page
}

// Without -write the tables are printed, whatever results.txt is, and no file
// is made or changed.
func TestNothingIsWrittenUnasked(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	all, page := benchFolder(t)
	const foreign = "goos: abacus\n"
	require.NoError(t, os.WriteFile(resultsFile, []byte(foreign), 0o644))
	before, err := os.ReadFile(page)
	require.NoError(t, err)

	var out strings.Builder
	failed := run(t.Context(), asked("tiny", 1), all, &out)
	assert.ErrorContains(t, failed, "tiny, round 1")
	assert.Contains(t, out.String(), "The fake's memory\n")
	assert.Contains(t, out.String(), "700 B")
	assert.NotContains(t, out.String(), "One call over loopback\n")

	after, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	kept, err := os.ReadFile(resultsFile)
	require.NoError(t, err)
	assert.Equal(t, foreign, string(kept))
	pictures, err := filepath.Glob("../../docs/*.svg")
	require.NoError(t, err)
	assert.Empty(t, pictures)
}

func TestWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	all, page := benchFolder(t)
	var out strings.Builder
	assert.Error(t, run(t.Context(), written(asked("", 1)), all[:1], &out))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| 100,000 agents and 100,000 keys | 700 B |")
	assert.FileExists(t, resultsFile)
	assert.FileExists(t, "../../docs/performance.svg")
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Linux 6.18.44-fc-v657\n": "Linux 6.18",
		"Linux 6.1\n":             "Linux 6.1",
		"Darwin 24.1.0\n":         "Darwin 24.1",
		"":                        "",
	} {
		assert.Equal(t, want, release(in), in)
	}
}

// What was measured before is kept only beside results of the same machine.
func TestOtherSuitesAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	folder, err := filepath.Abs("testdata/tiny")
	require.NoError(t, err)
	all := []suite{{"tiny", folder, 0}, {"other", folder, 0}}
	first, _ := measure(t.Context(), asked("", 1), all, day)
	require.NotNil(t, first)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(resultsFile, []byte(first.String()), 0o644))

	second, _ := measure(t.Context(), written(asked("tiny", 1)), all, day.AddDate(0, 0, 1))
	require.NotNil(t, second)
	assert.Equal(t, "2026-05-02, 1 round of 1x", second.Get("measured-tiny"))
	assert.Equal(t, "2026-05-01, 1 round of 1x", second.Get("measured-other"))
	assert.Len(t, second.Blocks, 2)

	if first.Get("cpu") != "" { // known after measuring only
		wantRefused(t, first, all, 2, "cpu")
	}
	all[0].folder = "gone" // it is not even built
	wantRefused(t, first, all, 0, "goos")
}

func wantRefused(t *testing.T, old *report.File, all []suite, at int, key string) {
	t.Helper()
	was := old.Header[at]
	old.Header[at].Value = "abacus"
	require.Equal(t, key, was.Key)
	require.NoError(t, os.WriteFile(resultsFile, []byte(old.String()), 0o644))
	file, failed := measure(t.Context(), written(asked("tiny", 1)), all, day)
	assert.Nil(t, file)
	assert.ErrorContains(t, failed, key+` "abacus"`)
	assert.NotContains(t, failed.Error(), "was not built")
	old.Header[at] = was
}
