// Command bench holds what benchmarks print on standard input against targets,
// and writes the table between the marks of docs/performance.md:
//
//	make bench
//
// A line that comes again is another round. The benchmarks are this package's
// tests, those of package fakeserver and whatever else prints the Go format.
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

const page = "../../docs/performance.md"

// A target is the most that a figure may be, or by how much it may exceed another one.
type target struct {
	what, of string
	than     string // the benchmark that it is compared with; "" for none
	unit     string
	bound    float64
}

// times compares the client with net/http by hand in the same benchmark.
func times(what, bench, unit string, most float64) target {
	return target{what: what, of: bench + "/of=client", than: bench + "/of=hand", unit: unit, bound: most}
}

// with compares a call that has something switched on with one that has not.
func with(what, on string, most float64) target {
	return target{what: what, of: "With/on=" + on, than: "With/on=nothing", unit: "sec/op", bound: most}
}

// allocations are compared by how many more they are, anything else by ratio.
const allocations = "allocs/op"

var targets = []target{
	times("POST in memory: time, of by hand", "Call/over=memory/call=post", "sec/op", 0.85),
	times("GET in memory: time, of by hand", "Call/over=memory/call=get", "sec/op", 0.85),
	times("POST in memory: allocations more than by hand", "Call/over=memory/call=post", allocations, 1),
	times("GET in memory: allocations more than by hand", "Call/over=memory/call=get", allocations, 1),
	times("POST over HTTP/1.1: time, of by hand", "Call/over=http1/call=post", "sec/op", 1),
	times("GET over HTTP/1.1: time, of by hand", "Call/over=http1/call=get", "sec/op", 1),
	times("POST over HTTP/2: time, of by hand", "Call/over=http2/call=post", "sec/op", 1),
	times("GET over HTTP/2: time, of by hand", "Call/over=http2/call=get", "sec/op", 1),
	times("64 goroutines over HTTP/1.1: processor time, of by hand", "Callers/over=http1", "cpu-sec/op", 1.05),
	times("64 goroutines over HTTP/2: processor time, of by hand", "Callers/over=http2", "cpu-sec/op", 1.05),
	times("A 429, then success: time, of two calls by hand", "Refused", "sec/op", 1.5),
	with("WithCallInfo: time", "call-info", 1.05),
	with("An observer that does nothing: time", "observer", 1.1),
	with("A logger at Info: time", "logger-info", 1.03),
	with("A logger at Debug whose handler discards: time", "logger-debug", 1.3),
	with("otelagentmessaging, not sampled: time", "otel-unsampled", 1.25),
	with("otelagentmessaging, sampled and batched: time", "otel-batched", 2.1),
	with("otelagentmessaging with metrics: time", "otel-metrics", 2.2),
	with("Pacer, nothing limited: time", "pacer", 1.15),
	times("1 caller 20 ms away, HTTP/1.1: p99, of by hand", "Network/over=http1/callers=1", "p99-sec", 1.05),
	times("600 callers 20 ms away, HTTP/1.1: p99, of by hand", "Network/over=http1/callers=600", "p99-sec", 1.05),
	times("600 callers 20 ms away, HTTP/1.1: time for all, of by hand", "Network/over=http1/callers=600", "sec/op", 1.05),
	{what: "600 callers 20 ms away, HTTP/1.1: connections", of: "Network/over=http1/callers=600/of=client", unit: "conns", bound: 600},
	times("1 caller 20 ms away, HTTP/2: p99, of by hand", "Network/over=http2/callers=1", "p99-sec", 1.05),
	times("600 callers 20 ms away, HTTP/2: p99, of by hand", "Network/over=http2/callers=600", "p99-sec", 1.05),
	times("600 callers 20 ms away, HTTP/2: time for all, of by hand", "Network/over=http2/callers=600", "sec/op", 1.05),
	times("600 callers 20 ms away, HTTP/2: connections, of by hand", "Network/over=http2/callers=600", "conns", 1),
	times("The fake's program, 64 connections: time, of a mux with JSON", "Program", "sec/op", 1.18),
	times("The fake's program, 64 connections: processor time, of a mux with JSON", "Program", "cpu-sec/op", 1.2),
	{what: "Start of the fake's program, to its first answer", of: "Start", unit: "sec/op", bound: 0.02},
	{what: "A fake's first call in a test, direct, of a bare handler", of: "Fresh/direct", unit: "x-floor", bound: 2},
	{what: "A call of a fake with 1,000,000 agents, of one with one", of: "Scale/agents=1000000/keys=1", unit: "x-floor", bound: 1.3},
	{what: "Memory of an agent in the fake", of: "Memory", unit: "B/agent", bound: 1024},
}

func main() {
	if err := run(os.Stdin, page); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(results io.Reader, page string) error {
	measured, err := parse(results)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	marks := regexp.MustCompile(`(?s)(<!-- targets:begin -->\n).*(<!-- targets:end -->)`)
	if !marks.Match(text) {
		return fmt.Errorf("%s lacks the marks of the table", page)
	}
	table := table(measured) + fmt.Sprintf("\nMeasured on %s with %s, %s/%s, %d processors.\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return os.WriteFile(page, marks.ReplaceAll(text, []byte("${1}"+table+"${2}")), 0o644)
}

// results are the values of each round, by benchmark and unit.
type results map[[2]string][]float64

func parse(from io.Reader) (results, error) {
	all, reader := results{}, benchfmt.NewReader(from, "standard input")
	for reader.Scan() {
		line, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // what go test prints besides
		}
		base, parts := line.Name.Parts()
		name := string(base)
		for _, part := range parts {
			if part[0] == '/' { // else it is the number of processors
				name += string(part)
			}
		}
		for _, v := range line.Values {
			at := [2]string{name, v.Unit}
			all[at] = append(all[at], v.Value)
		}
	}
	return all, reader.Err()
}

func table(measured results) string {
	var b strings.Builder
	b.WriteString("| Target | Bound | Measured | |\n| --- | --- | --- | --- |\n")
	for _, t := range targets {
		unit := t.unit
		if t.than != "" {
			unit = ""
		}
		got, verdict := "not measured", ""
		if sample := t.sample(measured); sample != nil {
			sum := benchmath.AssumeNothing.Summary(sample, 0.95)
			got, verdict = show(sum.Center, unit), "missed"
			if spread := sum.PctRangeString(); spread != "∞" { // as of too few rounds
				got += " ± " + spread
			}
			if sum.Center <= t.bound {
				verdict = "met"
			}
		}
		fmt.Fprintf(&b, "| %s | at most %s | %s | %s |\n", t.what, show(t.bound, unit), got, verdict)
	}
	return b.String()
}

// sample has a value for each round; nil where a benchmark was not run. What is
// compared was measured one after the other in the same round.
func (t target) sample(measured results) *benchmath.Sample {
	values := append([]float64(nil), measured[[2]string{t.of, t.unit}]...)
	if t.than != "" {
		floor := measured[[2]string{t.than, t.unit}]
		values = values[:min(len(values), len(floor))]
		for i := range values {
			if t.unit == allocations {
				values[i] -= floor[i]
			} else {
				values[i] /= floor[i]
			}
		}
	}
	if len(values) == 0 {
		return nil
	}
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// show writes a number, or a value of a unit with its prefix.
func show(v float64, unit string) string {
	if unit == "" || unit == "conns" || unit == "x-floor" {
		return fmt.Sprintf("%.3g", v)
	}
	name, _, _ := strings.Cut(unit, "/")
	return strings.TrimSuffix(benchunit.Scale(v, benchunit.ClassOf(unit)), "B") + map[string]string{"sec": "s", "B": "B"}[name]
}
