package programs

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// starts are how often a program is started for one measurement.
const starts = 5

// loads: the first is not measured. It opens the connections, and lets what
// compiles or grows while it runs do so.
var (
	warmUp  = load{calls: 2000, within: time.Second}
	full    = load{calls: 20_000, within: 3 * time.Second}
	inShort = load{calls: 500, within: 3 * time.Second}
)

// BenchmarkProgram measures programs from outside:
//
//   - start-ms, from exec to the first good answer over the port, to about 1 ms
//   - start-RSS-MiB, the memory that a program then has
//   - calls/s, under 64 connections that are kept alive
//   - cpu-us/call, the processor time that a call takes in the program
//   - load-cpu-us/call, the processor time that it takes to ask
//   - RSS-MiB, its memory after these calls
//
// The load comes from the processors that also answer it, so calls/s is bound
// by what it takes to ask and makes programs look more alike than they are:
// cpu-us/call says what the program costs. Other systems than Linux do not
// tell processor time, nor memory. In short mode the calls take too little of
// it to be told.
func BenchmarkProgram(b *testing.B) {
	for _, s := range subjects {
		b.Run("subject="+s.name, func(b *testing.B) {
			if testing.Short() && !s.ours() {
				b.Skip("not in short mode")
			}
			program, measured := s.program(b), figures{}
			for b.Loop() {
				measured.startOften(b, s, program)
				measured.underLoad(b, s, program)
			}
			measured.report(b)
			b.ReportMetric(0, "ns/op") // of all the starts and calls it would say nothing
		})
	}
}

func (f figures) startOften(b *testing.B, s *subject, program string) {
	for range starts {
		p := start(b, s, program)
		f.add("start-ms", float64(p.took)/float64(time.Millisecond))
		f.addMemory(b, "start-RSS-MiB", p)
		p.stop()
	}
}

func (f figures) underLoad(b *testing.B, s *subject, program string) {
	p := start(b, s, program)
	defer p.stop()
	prepare(b, p, s)
	if testing.Short() {
		f.add("calls/s", put(b, p, inShort, s.call).rate())
	} else {
		put(b, p, warmUp, s.call)
		f.addCalls(b, p, s.call)
	}
	f.addMemory(b, "RSS-MiB", p)
}

// addCalls adds what the full load takes, of the program and of this process.
func (f figures) addCalls(b *testing.B, p *process, call ask) {
	asked, untold := processorTime(os.Getpid())
	cost, _ := processorTime(p.pid)
	o := put(b, p, full, call)
	f.add("calls/s", o.rate())
	if untold != nil {
		b.Logf("no cpu-us/call: %v", untold)
		return
	}
	askedSince, _ := processorTime(os.Getpid())
	costSince, err := processorTime(p.pid)
	require.NoError(b, err)
	f.add("cpu-us/call", o.share(costSince-cost))
	f.add("load-cpu-us/call", o.share(askedSince-asked))
}

func put(b *testing.B, p *process, l load, call ask) outcome {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	o, err := p.put(ctx, l, call)
	require.NoError(b, err)
	return o
}

// prepare asks for what the calls need.
func prepare(tb testing.TB, p *process, s *subject) {
	tb.Helper()
	if s.first.method != "" {
		require.NoError(tb, p.do(tb.Context(), s.first))
	}
}

func (f figures) addMemory(b *testing.B, unit string, p *process) {
	if mib, err := memory(p.pid); err == nil {
		f.add(unit, mib)
	} else {
		b.Logf("no %s: %v", unit, err)
	}
}
