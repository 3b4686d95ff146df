//go:build unix

// Package bench_test measures the client next to the same calls by hand. In a benchmark's name
// of=base is what the client is compared with:
//
//	make bench
package bench_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otelmetric "go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

const (
	memory    = "https://service.example"
	key       = "ams_0123456789abcdef0123456789abcdef"
	agentID   = "agent_000001"
	agentPath = "/v1/agents/" + agentID
	text      = "Where is it?"
)

var (
	reply   = `{"reply_text":"It was sent on Monday and should be with you tomorrow.","trace_id":"trace_01jb2m7vqk8rs4d1"}`
	found   = `{"agent_id":"` + agentID + `","status":"active","created_at":"2026-05-01T12:00:00Z","updated_at":"2026-05-01T12:00:00Z","sms":{"mode":"sandbox"},"trace_id":"trace_01jb2m7vqk8rs4d1"}`
	refusal = `{"error":"rate_limited","limit_key":"requests_per_minute","trace_id":"trace_01jb2m7vqk8rs4d1"}`
)

// subject makes the calls that are measured: by hand (the base) or with the client.
type subject struct {
	send, read func(context.Context) error
}

// opener returns a subject that calls over a transport.
type opener func(b *testing.B, transport http.RoundTripper, baseURL string) subject

// compare runs a benchmark for both subjects, each over a separate transport.
func compare(b *testing.B, name, over string, base, ours opener, run func(*testing.B, subject)) {
	for i, of := range []string{"base", "client"} {
		b.Run(name+"/of="+of, func(b *testing.B) {
			transport, url := ways[over](b)
			run(b, []opener{base, ours}[i](b, transport, url))
		})
	}
}

// hand calls without the client. It has what any program needs: JSON, a deadline, and the
// checks of status and size without which it cannot trust an answer.
type hand struct {
	client  *http.Client
	baseURL string
}

func byHand(_ *testing.B, transport http.RoundTripper, baseURL string) subject {
	h := hand{&http.Client{Transport: transport}, baseURL}
	return subject{h.send, h.read}
}

func (h hand) send(ctx context.Context) error {
	var reply struct {
		Text     string   `json:"reply_text"`
		Warnings []string `json:"warnings"`
		TraceID  string   `json:"trace_id"`
	}
	body, err := json.Marshal(struct {
		Text    string `json:"text"`
		UserRef string `json:"user_ref,omitempty"`
	}{Text: text})
	if err != nil {
		return err
	}
	return h.call(ctx, http.MethodPost, agentPath+"/messages", bytes.NewReader(body), &reply)
}

func (h hand) read(ctx context.Context) error {
	var agent struct {
		ID        string `json:"agent_id"`
		Status    string `json:"status"`
		CreatedAt string `json:"created_at"`
		UpdatedAt string `json:"updated_at"`
		SMS       *struct {
			Mode string `json:"mode"`
		} `json:"sms"`
		TraceID string `json:"trace_id"`
	}
	return h.call(ctx, http.MethodGet, agentPath, nil, &agent)
}

func (h hand) call(ctx context.Context, method, path string, body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the client's default
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.baseURL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 1 << 20
	raw, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return err
	case len(raw) > most:
		return fmt.Errorf("the answer is larger than %d bytes", most)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %s", resp.StatusCode, raw)
	}
	return json.Unmarshal(raw, out)
}

// withOptions calls with the client, over its default transport if none is given.
func withOptions(opts ...agentmessaging.Option) opener {
	return func(b *testing.B, transport http.RoundTripper, baseURL string) subject {
		all := opts
		if transport != nil {
			all = append(all, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		}
		c, err := agentmessaging.NewClient(baseURL, key, all...)
		require.NoError(b, err)
		send := func(ctx context.Context) error {
			_, err := c.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: text})
			return err
		}
		read := func(ctx context.Context) error {
			_, err := c.GetAgent(ctx, agentID)
			return err
		}
		return subject{send, read}
	}
}

// answers is a transport and a server that has both answers in memory. With refuse, every
// other answer is a 429 with a Retry-After of 0.
type answers struct {
	refuse bool
	turn   atomic.Int64
}

func (a *answers) of(req *http.Request) (status int, body string) {
	switch {
	case a.refuse && a.turn.Add(1)%2 == 1:
		return http.StatusTooManyRequests, refusal
	case req.Method == http.MethodGet:
		return http.StatusOK, found
	}
	return http.StatusOK, reply
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	status, body := a.of(req)
	header := http.Header{"Content-Type": {"application/json"}}
	if status != http.StatusOK {
		header["Retry-After"] = []string{"0"}
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, body := a.of(r)
	_, _ = io.WriteString(w, body)
}

// ways are the ways from a subject to a server. In memory the time is that of the subject and
// net/http alone. The other ways add a server in the same process.
var ways = map[string]func(b *testing.B) (http.RoundTripper, string){
	"memory":   func(*testing.B) (http.RoundTripper, string) { return new(answers), memory },
	"refusing": func(*testing.B) (http.RoundTripper, string) { return &answers{refuse: true}, memory },
	"http1":    func(b *testing.B) (http.RoundTripper, string) { return serve(b, false) },
	"http2":    func(b *testing.B) (http.RoundTripper, string) { return serve(b, true) },
}

// serve starts a server, and returns a transport to it that keeps a connection for each caller.
func serve(b *testing.B, http2 bool) (*http.Transport, string) {
	server := httptest.NewUnstartedServer(new(answers))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log connections that were opened and not needed
	if server.EnableHTTP2 = http2; http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	b.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost = 1000
	return transport, server.URL
}

// BenchmarkCall measures one call after another.
func BenchmarkCall(b *testing.B) {
	for _, over := range []string{"memory", "http1", "http2"} {
		compare(b, "over="+over+"/call=post", over, byHand, withOptions(), func(b *testing.B, s subject) { repeat(b, s.send) })
		compare(b, "over="+over+"/call=get", over, byHand, withOptions(), func(b *testing.B, s subject) { repeat(b, s.read) })
	}
}

func repeat(b *testing.B, call func(context.Context) error) {
	ctx := b.Context()
	require.NoError(b, call(ctx))
	b.ReportAllocs()
	for b.Loop() {
		if err := call(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallers measures a POST of 64 goroutines that share a client: the processor time
// of the whole process, the server included.
func BenchmarkCallers(b *testing.B) {
	for _, over := range []string{"http1", "http2"} {
		compare(b, "over="+over, over, byHand, withOptions(), func(b *testing.B, s subject) { parallel(b, s.send) })
	}
}

// parallel calls from 64 goroutines, each under its own context, because all calls under one
// context share its lock.
func parallel(b *testing.B, call func(context.Context) error) {
	const callers = 64
	b.SetParallelism(callers / max(1, min(callers, runtime.GOMAXPROCS(0))))
	require.NoError(b, call(b.Context()))
	begun := processorTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		for pb.Next() {
			if err := call(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(processorTime()-begun)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor time of this process so far, in all threads.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkRefused measures a GET that is refused once: one call of the client with its
// cool-down, and two calls by hand. A minute lies between two calls. Without it, the cool-down
// would also hold back the first request of every other call.
func BenchmarkRefused(b *testing.B) {
	twice := func(b *testing.B, transport http.RoundTripper, baseURL string) subject {
		read := byHand(b, transport, baseURL).read
		return subject{read: func(ctx context.Context) error {
			_ = read(ctx) // the 429
			return read(ctx)
		}}
	}
	clock := new(jumping)
	compare(b, "call=get", "refusing", twice, withOptions(agentmessaging.WithClock(clock)), func(b *testing.B, s subject) {
		repeat(b, func(ctx context.Context) error { return cmp.Or(clock.Sleep(ctx, time.Minute), s.read(ctx)) })
	})
}

// jumping is a clock whose waits take no time.
type jumping struct{ ahead time.Duration }

func (j *jumping) Now() time.Time { return time.Now().Add(j.ahead) }

func (j *jumping) Sleep(_ context.Context, d time.Duration) error { j.ahead += d; return nil }

// BenchmarkWith measures a POST in memory with one option; the base has none.
func BenchmarkWith(b *testing.B) {
	p, err := pacer.New([]pacer.Limit{{Max: 1 << 30, Window: time.Second}})
	require.NoError(b, err)
	ignore := agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return nil })
	for on, client := range map[string]opener{
		"call-info":      withCallInfo,
		"observer":       withOptions(agentmessaging.WithObserver(ignore)),
		"logger-info":    withOptions(agentmessaging.WithLogger(slog.New(discard(slog.LevelInfo)))),
		"logger-debug":   withOptions(agentmessaging.WithLogger(slog.New(discard(slog.LevelDebug)))),
		"otel-unsampled": telemetry(b, sdktrace.NeverSample(), noopmetric.NewMeterProvider()),
		"otel-batched":   telemetry(b, sdktrace.AlwaysSample(), noopmetric.NewMeterProvider()),
		"otel-metrics":   telemetry(b, sdktrace.AlwaysSample(), metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))),
		"pacer":          withOptions(agentmessaging.WithLimiter(p)),
	} {
		compare(b, "on="+on, "memory", withOptions(), client, func(b *testing.B, s subject) { repeat(b, s.send) })
	}
}

// withCallInfo calls with the client, each time with a CallInfo.
func withCallInfo(b *testing.B, transport http.RoundTripper, baseURL string) subject {
	send := withOptions()(b, transport, baseURL).send
	return subject{send: func(ctx context.Context) error {
		return send(agentmessaging.WithCallInfo(ctx, new(agentmessaging.CallInfo)))
	}}
}

// telemetry is the observer as the README of otelagentmessaging recommends it, with an
// exporter that drops everything.
func telemetry(b *testing.B, sampler sdktrace.Sampler, meters otelmetric.MeterProvider) opener {
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(tracers), otelagentmessaging.WithMeterProvider(meters))
	require.NoError(b, err)
	return withOptions(agentmessaging.WithObserver(observer))
}

// discard is a slog handler that drops records. slog does not even make a record below the
// handler's level.
type discard slog.Level

func (d discard) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.Level(d) }
func (d discard) Handle(context.Context, slog.Record) error    { return nil }
func (d discard) WithAttrs([]slog.Attr) slog.Handler           { return d }
func (d discard) WithGroup(string) slog.Handler                { return d }
