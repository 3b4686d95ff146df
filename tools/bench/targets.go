package main

import (
	"fmt"
	"strings"
)

// A target is a figure that has to keep a bound, judged by its median.
type target struct {
	what    string
	measure func(*results) figure
	unit    string // empty: it is a ratio
	bound   bound
	because string // where profiles see the time go; the page says it of a target that is missed
}

type bound struct {
	words string
	sign  float64 // 1: a figure must not be above the limit; -1: not below
	limit float64
}

func atMost(limit float64) bound  { return bound{"at most ", 1, limit} }
func atLeast(limit float64) bound { return bound{"at least ", -1, limit} }

func (b bound) kept(v float64) bool { return b.sign*v <= b.sign*b.limit }

const (
	post    = "Call/over=canned/call=post"
	get     = "Call/over=canned/call=get"
	postOut = "Call/over=loopback/call=post"
	getOut  = "Call/over=loopback/call=get"
)

const (
	deadline = "the deadline of the call, a context and its timer, is a seventh of the time; the others set none"
	attempt  = "the hooks that learn whether a request was sent are a twentieth of the time, the context that can end the attempt a twentieth"
	between  = "of the instructions that are added, a third is the context that can end an attempt, a quarter its deadline, a quarter the hooks that learn whether it was sent"
	streams  = "the deadline, a context and its timer, is a fortieth of the time; the floor has none"
	facts    = "to look for secrets in the answer's header is a twenty-fifth of the time, the context that carries the facts a fiftieth"
	events   = "to allocate five events is a fifteenth of the time, to read the clock four times a thirtieth, to look for secrets in trace_id a thirtieth"
	asked    = "what is added is to read the clock once, and to ask the logger twice whether it wants a record"
	records  = "what log/slog does for a record is a fourteenth of the time, to read the clock a twenty-fifth, to look for secrets in trace_id a fiftieth"
	dropped  = "half of what is added is to tell any observer of five events, a fifth is the SDK's own to begin and drop the span"
	spans    = "half of what is added is the SDK's own for the one span, a fifth is to tell any observer of five events"
	limiter  = "the limiter's decision is an eighth of the time, and two readings of the clock are a twentieth"
	refusal  = "an eighth is the cool-down and its line, an eighth the deadlines of two attempts, a ninth decoding the refusal; the floor has none of them"
	decoding = "a fifth is decoding the members, a sixth the deadline, a twentieth the timer that ends a body that stalls; the floor has none of them"
	fresh    = "to check, redact and record the call takes a tenth of the time on the wire and a twentieth over loopback, to make the fake a fiftieth and a hundredth"
	caches   = "it takes no more instructions and twice the cache misses: so many do not fit into the processor's cache"
	checks   = "the fake's handler has a fifth of the processor's time, half of it to read, check and record the call; the floor's has a twelfth"
)

var targets = []target{
	{"POST in memory: allocations, of go-retryablehttp's", ratio(post, "allocs/op", own, retryable), "", atMost(1.25), ""},
	{"GET in memory: allocations, of go-retryablehttp's", ratio(get, "allocs/op", own, retryable), "", atMost(1.25), ""},
	{"POST in memory: time, of go-retryablehttp's", ratio(post, "sec/op", own, retryable), "", atMost(1.15), deadline},
	{"GET in memory: time, of go-retryablehttp's", ratio(get, "sec/op", own, retryable), "", atMost(1.15), deadline},
	{"POST in memory: time, of the generated client's", ratio(post, "sec/op", own, "oapi-codegen"), "", atMost(1), ""},
	{"GET in memory: time, of the generated client's", ratio(get, "sec/op", own, "oapi-codegen"), "", atMost(1), ""},
	{"POST over loopback: time, of the floor's", ratio(postOut, "sec/op", own, byHand), "", atMost(1.05), between},
	{"GET over loopback: time, of the floor's", ratio(getOut, "sec/op", own, byHand), "", atMost(1.05), between},
	{"POST over HTTP/2: time, of the floor's", ratio("HTTP2/call=post/callers=1", "sec/call", own, byHand), "", atMost(1.05), streams},
	{"GET over HTTP/2: time, of the floor's", ratio("HTTP2/call=get/callers=1", "sec/call", own, byHand), "", atMost(1.05), streams},
	{"POST over HTTP/2, 64 callers: processor time, of the floor's", ratio("HTTP2/call=post/callers=64", "cpu-sec/call", own, byHand), "", atMost(1.1), streams},
	{"GET over HTTP/2, 64 callers: processor time, of the floor's", ratio("HTTP2/call=get/callers=64", "cpu-sec/call", own, byHand), "", atMost(1.1), streams},
	{"POST under a caller's deadline: time, of the floor's", ratio(post, "sec/op", ownBounded, byHand), "", atMost(1.15), attempt},
	{"The same with GOEXPERIMENT=jsonv2", ratio("JSONv2/over=canned/call=post", "sec/op", ownBounded, byHand), "", atMost(1.15), attempt},
	{"WithCallInfo: time, of a call without", extra("call-info", "sec/op"), "", atMost(1.05), facts},
	{"WithCallInfo: allocations more", extraAllocs("call-info"), "more", atMost(2), ""},
	{"An observer that does nothing: time", extra("observer", "sec/op"), "", atMost(1.1), events},
	{"An observer that does nothing: allocations more", extraAllocs("observer"), "more", atMost(6), ""},
	{"A logger at Info: time", extra("logger-info", "sec/op"), "", atMost(1.03), asked},
	{"A logger at Info: allocations more", extraAllocs("logger-info"), "more", atMost(1), ""},
	{"A logger at Debug whose handler discards: time", extra("logger-debug", "sec/op"), "", atMost(1.3), records},
	{"otelagentmessaging, not sampled: time", extra("otel-unsampled", "sec/op"), "", atMost(1.3), dropped},
	{"otelagentmessaging, sampled and batched: time", extra("otel-sampled", "sec/op"), "", atMost(2), spans},
	{"otelagentmessaging with metrics: time", extra("otel-metrics", "sec/op"), "", atMost(2.3), spans},
	{"otelagentmessaging with metrics: allocations more", extraAllocs("otel-metrics"), "more", atMost(35), ""},
	{"otelagentmessaging with metrics: time, of otelhttp around the same call", across(on("otel-metrics"), on("otelhttp"), "sec/op"), "", atMost(1), spans},
	{"Pacer, nothing limited: time", extra("pacer", "sec/op"), "", atMost(1.15), limiter},
	{"Pacer, nothing limited: allocations more", extraAllocs("pacer"), "more", atMost(2), ""},
	{"100,000 callers who come to a Pacer's line and leave it", value("Line", "", "sec/op"), "sec", atMost(1), ""},
	{"A 429 with its cool-down, then success: time, of the floor's", ratio("Path/case=429", "sec/op", own, byHand), "", atMost(1.3), refusal},
	{"An error with a JSON body: time, of a floor that hands over text", ratio("Path/case=error", "sec/op", own, byHand), "", atMost(1.8), decoding},
	{"1 MiB of metadata: time, of the floor's", ratio("Path/case=metadata", "sec/op", own, byHand), "", atMost(1.1), ""},
	{"A fake's first call, direct, of the floor's", value("Fresh/direct", "", "x-floor"), "", atMost(2), fresh},
	{"A fake's first call, on the wire, of the floor's", value("Fresh/wire", "", "x-floor"), "", atMost(1.3), fresh},
	{"A fake's first call, over loopback, of the floor's", value("Fresh/loopback", "", "x-floor"), "", atMost(1.15), fresh},
	{"The fake under 64 connections, of the floor's calls/s", value("Throughput", "", "of-floor"), "", atLeast(0.85), checks},
	{"A call with 1,000 agents, of that with one", value("Scale/agents=1000/keys=1", "", "x-floor"), "", atMost(1.3), ""},
	{"A call with 1,000,000 agents, of that with one", value("Scale/agents=1000000/keys=1", "", "x-floor"), "", atMost(1.3), caches},
	{"A call with 100,000 keys, of that with one", value("Scale/agents=1/keys=100000", "", "x-floor"), "", atMost(1.3), caches},
	{"A message to a fake with 1,000 scripts for other agents, of one without", value("Rules/agent", "", "x-floor"), "", atMost(1.1), ""},
	{"Memory of an agent in the fake", value("Memory", "", "B/agent"), "B", atMost(1024), ""},
	{"Start of the fake's program", value("Start", "", "sec/op"), "sec", atMost(0.02), ""},
}

func value(bench, subject, unit string) func(*results) figure {
	return func(r *results) figure { return r.series[id{bench, subject}][unit].figure() }
}

func ratio(bench, unit, of, to string) func(*results) figure {
	return across(id{bench, of}, id{bench, to}, unit)
}

func across(of, to id, unit string) func(*results) figure {
	return func(r *results) figure { return r.series[of][unit].over(r.series[to][unit]).figure() }
}

func on(name string) id { return id{bench: "Extra/on=" + name} }

func extra(name, unit string) func(*results) figure { return across(on(name), on("none"), unit) }

func extraAllocs(name string) func(*results) figure {
	return func(r *results) figure {
		minus := func(a, b float64) float64 { return a - b }
		return r.series[on(name)]["allocs/op"].with(r.series[on("none")]["allocs/op"], minus).figure()
	}
}

func targetTable(r *results) string {
	rows := [][]string{{"Target", "Bound", "Measured", "Verdict"}}
	for _, t := range targets {
		f := t.measure(r)
		verdict := t.bound.verdict(f)
		if strings.HasPrefix(verdict, "missed") && t.because != "" {
			verdict += ": " + t.because
		}
		rows = append(rows, []string{t.what, t.bound.words + show(t.bound.limit, t.unit), f.cell(t.unit), verdict})
	}
	return markdown(rows)
}

func (b bound) verdict(f figure) string {
	verdict := "missed"
	switch {
	case f.rounds == 0:
		return "not measured"
	case b.kept(f.mid):
		verdict = "met"
	}
	if b.kept(f.low) != b.kept(f.high) {
		verdict = fmt.Sprint(verdict, ", within the noise")
	}
	return verdict
}
