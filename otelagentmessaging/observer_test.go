package otelagentmessaging_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

const (
	requestDuration = "http.client.request.duration"
	callDuration    = "agentmessaging.client.call.duration"
)

func TestOptionsRefuseNil(t *testing.T) {
	for name, opt := range map[string]otelagentmessaging.Option{
		"opts":               nil,
		"WithTracerProvider": otelagentmessaging.WithTracerProvider(nil),
		"WithMeterProvider":  otelagentmessaging.WithMeterProvider((*metric.MeterProvider)(nil)),
	} {
		_, err := otelagentmessaging.NewObserver(opt)
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid, name)
		assert.ErrorContains(t, err, "agentmessaging: "+name+": ")
	}
}

// global is what the global providers record. They can be set only once in a process.
var global = newTelemetry()

// Programs may set the global providers after they make the observer.
func TestTheGlobalProvidersAreTheDefault(t *testing.T) {
	observer, err := otelagentmessaging.NewObserver()
	require.NoError(t, err)
	global.spans.Reset()
	otel.SetTracerProvider(global.tracer)
	otel.SetMeterProvider(global.meter)
	require.NoError(t, status(t.Context(), nil, newClient(t, fakeserver.New(t), agentmessaging.WithObserver(observer))))
	spans := global.spans.GetSpans()
	require.Len(t, spans, 1)
	assert.Contains(t, strings.Join(global.points(t), ""), callDuration)
	scope := spans[0].InstrumentationScope
	assert.Equal(t, otelagentmessaging.ScopeName, scope.Name)
	assert.Equal(t, agentmessaging.Version, scope.Version)
	assert.Equal(t, "https://opentelemetry.io/schemas/1.41.0", scope.SchemaURL)
}

// TestTwoObserversOfOneClient checks that each observer finds its call, whatever the other
// has put into the context.
func TestTwoObserversOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, fake := newTelemetry(), newTelemetry(), fakeserver.New(t)
		require.NoError(t, limitedOnce(send)(t.Context(), fake, newClient(t, fake, first.observer(t), second.observer(t))))
		a, b := first.spans.GetSpans(), second.spans.GetSpans()
		assert.Equal(t, trace.SpanContext{}, a[2].Parent)
		assert.Equal(t, a[2].SpanContext, b[2].Parent, "below the first's call")
		for i := range 2 {
			assert.Equal(t, a[2].SpanContext, a[i].Parent, "span %d", i)
			assert.Equal(t, b[2].SpanContext, b[i].Parent, "span %d", i)
		}
		assert.Equal(t, first.points(t), second.points(t))
	})
}

// TestOtelhttpBelowTheObserver checks that nothing is doubled: the observer records the
// calls, and otelhttp the requests, in which it sends traceparent.
func TestOtelhttpBelowTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fake := newTelemetry(), fakeserver.New(t)
		transport := otelhttp.NewTransport(fake.HTTPClient(t).Transport,
			otelhttp.WithTracerProvider(r.tracer), otelhttp.WithMeterProvider(r.meter), otelhttp.WithPropagators(propagation.TraceContext{}))
		client := newClient(t, fake, r.observer(t, otelagentmessaging.WithoutHTTP()), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, inTurn(limitedOnce(send), status)(t.Context(), fake, client))

		spans := r.spans.GetSpans()
		require.Len(t, spans, 5)
		for i, call := range []int{2, 2, 4} {
			request := spans[[]int{0, 1, 3}[i]]
			assert.Equal(t, spans[call].SpanContext, request.Parent, "request %d", i+1)
			assert.Contains(t, fake.Calls()[i].Header.Get("traceparent"), request.SpanContext.SpanID().String(), "request %d", i+1)
			assert.NotRegexp(t, "(http|url)\\.", attrsText(spans[call].Attributes), "request %d", i+1)
		}
		assert.Len(t, spans[2].Events, 3)
		assert.Equal(t, trace.SpanKindClient, spans[2].SpanKind)
		assert.Equal(t, trace.SpanKindInternal, spans[4].SpanKind)
		assert.Equal(t, 3, strings.Count(r.story(t), requestDuration))
		assert.NotContains(t, r.story(t), "url.template", "the metrics of requests are otelhttp's")
	})
}

// An unsampled call has all its metrics. Its transport sees the span, so that one with its
// own instruments continues the trace.
func TestUnsampledCall(t *testing.T) {
	r, fake := newTelemetry(sdktrace.WithSampler(sdktrace.NeverSample())), fakeserver.New(t)
	base, seen := fake.HTTPClient(t).Transport, trace.SpanContext{}
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t), through(func(req *http.Request) (*http.Response, error) {
		seen = trace.SpanContextFromContext(req.Context())
		return base.RoundTrip(req)
	}))))
	assert.True(t, seen.IsValid())
	assert.Len(t, r.metrics(t), 3)
}

const canaryKey = "key-canary-4711"

// echo is an answer whose members repeat the key and a message, or have words of a proxy.
const echo = `{"ok": true, "error": "Bearer ` + canaryKey + `", "reason": "message-canary", "limit_key": "other words-canary", "trace_id": "` + canaryKey + `",
	"reply_text": "reply-canary", "warnings": ["warning-canary"], "agent_id": "agent-` + canaryKey + `", "message-canary": "` + canaryKey + `"}`

// TestTelemetryHoldsNoSecret has a service that repeats the key and a message in every answer.
func TestTelemetryHoldsNoSecret(t *testing.T) {
	r := newTelemetry()
	story{"echo", inTurn(with(fakeserver.Answer(200, echo), send), with(fakeserver.Answer(400, echo), read),
		with(fakeserver.Answer(503, echo), status), with(fakeserver.Answer(429, echo), send)), []agentmessaging.Option{retries(1)}}.run(t, r)
	require.Contains(t, r.story(t), "invoke_agent")
	assert.NotContains(t, r.story(t), "canary")
}

// TestOnlyIdentifiersOfTheServiceAreRecorded checks that a span has the service's words only
// if they are names, not sentences.
func TestOnlyIdentifiersOfTheServiceAreRecorded(t *testing.T) {
	longest := strings.Repeat("x", 128)
	for word, recorded := range map[string]bool{
		"trace_000001": true, "azAZ09_-.:/": true, longest: true,
		longest + "x": false, "two words": false, "line\n": false, "ä": false, "": false, "[redacted]": false,
	} {
		r, body := newTelemetry(), fmt.Sprintf(`{"ok": true, "service": "s", "version": "v", "mode": "m", "trace_id": %q}`, word)
		story{call: with(fakeserver.RawAnswer(200, "application/json", body), status)}.run(t, r)
		assert.Equal(t, recorded, strings.Contains(r.story(t), " agentmessaging.trace_id="+word), "%q", word)
	}
}

// TestServerAddress checks ports, also those that the scheme implies, and a prefix in the
// address, with one observer for several servers.
func TestServerAddress(t *testing.T) {
	r, fake := newTelemetry(), fakeserver.New(t, fakeserver.WithUnknownRoutes())
	observer, direct := r.observer(t), agentmessaging.WithHTTPClient(&http.Client{Transport: fake.Direct()})
	for base, want := range map[string]string{
		"https://service.example/prefix": "server.address=service.example server.port=443",
		"https://service.example:8443":   "server.address=service.example server.port=8443",
		"http://localhost":               "server.address=localhost server.port=80",
		"http://[::1]:80":                "server.address=::1 server.port=80",
	} {
		r.spans.Reset()
		client, err := agentmessaging.NewClient(base, fake.Key(), observer, direct, retries(1))
		require.NoError(t, err)
		_ = status(t.Context(), fake, client)
		assert.Contains(t, attrsText(r.spans.GetSpans()[0].Attributes), want+" url.full="+base+"/v1/status url.template=/v1/status")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// through is WithHTTPClient for a transport.
func through(f roundTripper) agentmessaging.Option {
	return agentmessaging.WithHTTPClient(&http.Client{Transport: f})
}

var update = flag.Bool("update", false, "rewrite "+storiesFile)

// storiesFile shows the telemetry of each story: the spans with their durations, in virtual
// time, and the metrics.
const storiesFile = "testdata/stories.txt"

type story struct {
	name string
	call call
	opts []agentmessaging.Option
}

var hurried = []agentmessaging.Option{agentmessaging.WithTimeout(5 * time.Second)}

var stories = []story{
	{"a message", send, nil},
	{"a 429, after which the cool-down parks the call", limitedOnce(send), nil},
	{"a 429 that is not retried, and a caller who meets its cool-down", inTurn(limitedOnce(send), send), []agentmessaging.Option{retries(1)}},
	{"a limit that is spent for a day, and a caller whom its cool-down refuses", inTurn(with(fakeserver.RateLimited("86400"), send), send), nil},
	{"a journal that is full", func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		return send(agentmessaging.WithBeforeSend(ctx, func(context.Context, int) error { return errors.New("error-canary") }), fake, client)
	}, nil},
	{"a reply that is lost", with(fakeserver.LoseReply(fakeserver.ResetConnection()), send), nil},
	{"a slow 429", limitedOnce(with(fakeserver.Latency(2*time.Second), status)), nil},
	{"statuses that the interface does not have, of which only the last is an error of the request", inTurn(
		with(fakeserver.Answer(299, ""), read), with(fakeserver.Answer(300, ""), read),
		with(fakeserver.Answer(399, ""), read), with(fakeserver.Answer(400, ""), read)), []agentmessaging.Option{retries(1)}},
	{"an answer that is cut", with(fakeserver.TruncateReply(5), status), []agentmessaging.Option{retries(1)}},
	{"an answer that takes too long", with(fakeserver.DripReply(1, time.Second), status), hurried},
	{"a connection that is refused", read, failing(&net.OpError{Op: "dial", Err: errors.New("error-canary")})},
	{"a connection that takes too long", read, failing(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})},
	{"a connection that is given up", read, failing(fmt.Errorf("%w: %w", context.Canceled, &net.OpError{Op: "dial", Err: net.ErrClosed}))},
	{"a certificate that is not accepted", read, failing(&tls.CertificateVerificationError{Err: errors.New("error-canary")})},
	{"a transport that panics", func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		defer func() { _ = recover() }()
		return send(ctx, fake, client)
	}, []agentmessaging.Option{through(func(*http.Request) (*http.Response, error) { panic("canary") })}},
	{"a deadline that passes", with(fakeserver.Hang(), read), hurried},
	{"calls that are cancelled, the second before it is repeated, and a call that is lost before it is refused", inTurn(
		with(fakeserver.Hang(), cancelled), with(fakeserver.Answer(503, ""), cancelled), with(fakeserver.RateLimited("60"), with(fakeserver.CloseEarly(), read))),
		[]agentmessaging.Option{agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 3 * time.Second, MaxWait: 3 * time.Second})}},
	{"an observer that drops the context of the call", send, []agentmessaging.Option{agentmessaging.WithObserver(agentmessaging.ObserverFunc(
		func(context.Context, agentmessaging.Event) context.Context { return context.Background() }))}},
	{"every method, once", every, nil},
}

// run runs the story in a synctest bubble, and records its telemetry in r.
func (s story) run(t *testing.T, r *telemetry) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithKey(canaryKey))
		_ = s.call(t.Context(), fake, newClient(t, fake, append(s.opts, r.observer(t))...)) // the telemetry has the error: error.type
	})
}

// TestStories compares the telemetry of the stories with the file. It has no secret, no text
// and no error's words, which all have a canary. The tables of the README must have every name
// in it, and no other.
func TestStories(t *testing.T) {
	var all strings.Builder
	inREADME := map[string]map[string]bool{"attributes": {}, "events": {}, "metrics": {}, "buckets": {}, "errors": {}}
	for _, s := range stories {
		r := newTelemetry()
		s.run(t, r)
		fmt.Fprintf(&all, "## %s\n\n%s\n", s.name, cmp.Or(r.story(t), "nothing\n"))
		r.addRows(t, inREADME)
	}
	assert.False(t, strings.Contains(all.String(), "canary"), "a text or a secret is recorded")
	if *update {
		require.NoError(t, os.WriteFile(storiesFile, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(storiesFile)
	require.NoError(t, err)
	assert.Equal(t, strings.Split(string(want), "\n"), strings.Split(all.String(), "\n"), "read the diff, then go test -run TestStories -update")
	for table, cells := range map[string]int{"attributes": 2, "events": 2, "metrics": 3, "buckets": 2, "errors": 1} {
		assert.ElementsMatch(t, slices.Collect(maps.Keys(inREADME[table])), rows(t, table, cells), table)
	}
}

// addRows adds the rows that the README's tables need for the recorded telemetry.
func (r *telemetry) addRows(t *testing.T, tables map[string]map[string]bool) {
	types := strings.NewReplacer("STRING", "string", "INT64", "int", "FLOAT64", "double")
	for _, s := range r.spans.GetSpans() {
		for _, a := range s.Attributes {
			tables["attributes"][string(a.Key)+": "+types.Replace(a.Value.Type().String())] = true
			if text := a.Value.String(); a.Key == "error.type" && strings.Trim(text, "0123456789") != "" {
				tables["errors"][text] = true
			}
		}
		for _, e := range s.Events {
			var keys []string
			for _, a := range e.Attributes {
				keys = append(keys, string(a.Key))
			}
			tables["events"][e.Name+": "+strings.Join(keys, ", ")] = true
		}
	}
	for name, m := range r.metrics(t) {
		assert.NotEmpty(t, m.Description, name)
		kind := "counter"
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
			kind = "histogram"
			bounds := strings.ReplaceAll(fmt.Sprint(data.DataPoints[0].Bounds), " ", ", ")
			tables["buckets"][name+": "+strings.Trim(bounds, "[]")] = true
		}
		tables["metrics"][name+": "+kind+": "+m.Unit] = true
	}
}

type call = func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error

// every calls each method once, with texts that no telemetry may have.
func every(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, _ = client.Status(ctx)
	_, _ = client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary", Label: "label-canary", Model: "model-canary",
	})
	_, _ = client.GetBYOK(ctx)
	_, _ = client.WarmUp(ctx, agentmessaging.LLMModeHosted)
	_, _ = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "prompt-canary", CustomerRef: "customer-canary", Metadata: map[string]string{"key": "metadata-canary"},
		LLM: agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "other-provider-canary"},
	})
	_, _ = client.GetAgent(ctx, "agent_000001")
	_, _ = client.EnableSMS(ctx, "agent_000001", agentmessaging.SMSModeSandbox)
	_, _ = client.SendMessage(ctx, "agent_000001", agentmessaging.MessageParams{Text: "message-canary", UserRef: "user-canary"})
	return client.ClearBYOK(ctx)
}

// send makes an agent, which leaves no telemetry, and sends it a message.
func send(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
	id := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	_, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: "message-canary"})
	return err
}

func read(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, err := client.GetAgent(ctx, "agent_000001")
	return err
}

// cancelled is read until its caller leaves, and once more after that.
func cancelled(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
	ctx, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(time.Second/10, func() { cancel(errors.New("cause-canary")) })
	return inTurn(read, read)(ctx, fake, client)
}

func status(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, err := client.Status(ctx)
	return err
}

// with returns a call whose first attempt meets a fault.
func with(fault fakeserver.Fault, then call) call {
	return func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		fake.Inject(fault).Times(1)
		return then(ctx, fake, client)
	}
}

func limitedOnce(then call) call { return with(fakeserver.RateLimited("3"), then) }

// inTurn returns a call that makes several calls.
func inTurn(calls ...call) call {
	return func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) (err error) {
		for _, call := range calls {
			err = errors.Join(err, call(ctx, fake, client))
		}
		return err
	}
}

// failing returns options for one attempt, over a transport that fails.
func failing(err error) []agentmessaging.Option {
	return []agentmessaging.Option{retries(1), through(func(req *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(req.Context()).GetConn("") // as net/http does before it dials
		return nil, err
	})}
}

// rows returns the first cells of each row of a marked table of the README, without
// their quotes.
func rows(t *testing.T, table string, cells int) (rows []string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(strings.ReplaceAll(string(page), "`", ""), "<!-- "+table+":begin -->\n")
	require.True(t, found, table)
	lines, _, _ := strings.Cut(after, "\n<!-- "+table+":end -->")
	for _, line := range strings.Split(lines, "\n")[2:] {
		row := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, strings.Join(row[:cells], ": "))
	}
	return rows
}

// telemetry is what one observer has recorded.
type telemetry struct {
	spans  *tracetest.InMemoryExporter
	starts starts
	tracer *sdktrace.TracerProvider
	reader *metric.ManualReader
	meter  *metric.MeterProvider
}

// starts exports spans, and records with how many attributes each began: samplers see only
// these.
type starts struct {
	sdktrace.SpanProcessor
	attributes map[trace.SpanID]int
}

// OnStart implements sdktrace.SpanProcessor.
func (s starts) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	s.attributes[span.SpanContext().SpanID()] = len(span.Attributes())
}

func newTelemetry(opts ...sdktrace.TracerProviderOption) *telemetry {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	starts := starts{sdktrace.NewSimpleSpanProcessor(spans), map[trace.SpanID]int{}}
	return &telemetry{
		spans:  spans,
		starts: starts,
		tracer: sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(starts))...),
		reader: reader,
		meter:  metric.NewMeterProvider(metric.WithReader(reader)),
	}
}

// observer returns an option of a client that records to the telemetry.
func (r *telemetry) observer(t testing.TB, opts ...otelagentmessaging.Option) agentmessaging.Option {
	providers := []otelagentmessaging.Option{otelagentmessaging.WithTracerProvider(r.tracer), otelagentmessaging.WithMeterProvider(r.meter)}
	observer, err := otelagentmessaging.NewObserver(append(providers, opts...)...)
	require.NoError(t, err)
	return agentmessaging.WithObserver(observer)
}

// retries allows a number of attempts. Its MaxWait of 3 s leaves no room for jitter after a
// Retry-After of 3 s.
func retries(attempts int) agentmessaging.Option {
	return agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: attempts, MaxWait: 3 * time.Second})
}

func newClient(t testing.TB, fake *fakeserver.Server, opts ...agentmessaging.Option) *agentmessaging.Client {
	opts = append([]agentmessaging.Option{agentmessaging.WithHTTPClient(fake.HTTPClient(t)), retries(3)}, opts...)
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), opts...)
	require.NoError(t, err)
	return client
}

// attrsText returns the attributes, sorted by name, each after a space.
func attrsText(attrs []attribute.KeyValue) string {
	set := attribute.NewSet(slices.Clone(attrs)...) // NewSet sorts what it is given
	return strings.TrimRight(" "+strings.ReplaceAll(set.Encoded(attribute.DefaultEncoder()), ",", " "), " ")
}

// story prints each span below its parent, with its events, and then the points of the
// metrics.
func (r *telemetry) story(t testing.TB) string {
	var b strings.Builder
	r.below(&b, trace.SpanID{}, "")
	return strings.ReplaceAll(b.String()+strings.Join(r.points(t), ""), "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid", "service.example")
}

// below prints the children of a span, with the attributes that a sampler sees, and the
// others after a slash.
func (r *telemetry) below(b *strings.Builder, parent trace.SpanID, indent string) {
	for i, s := range r.spans.GetSpans() {
		if s.Parent.SpanID() != parent {
			continue
		}
		fmt.Fprintf(b, "%s%s #%d, %s, %s", indent, s.Name, i, s.SpanKind, s.EndTime.Sub(s.StartTime))
		if s.Status.Code == codes.Error {
			fmt.Fprintf(b, ", failed%s", s.Status.Description)
		}
		first := r.starts.attributes[s.SpanContext.SpanID()]
		fmt.Fprintf(b, ":%s /%s\n", attrsText(s.Attributes[:first]), attrsText(s.Attributes[first:]))
		for _, e := range s.Events {
			fmt.Fprintf(b, "%s  * %s:%s\n", indent, e.Name, attrsText(e.Attributes))
		}
		r.below(b, s.SpanContext.SpanID(), indent+"  ")
	}
}

// metrics returns the recorded metrics by name.
func (r *telemetry) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(context.Background(), &data))
	all := map[string]metricdata.Metrics{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// points returns a line for each point of each metric, sorted: the sum of a counter, or
// the number and the sum of a histogram, and the span to which its exemplar leads.
func (r *telemetry) points(t testing.TB) (lines []string) {
	spans := map[trace.SpanID]int{}
	for i, s := range r.spans.GetSpans() {
		spans[s.SpanContext.SpanID()] = i
	}
	for name, m := range r.metrics(t) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s%s: %d\n", name, attrsText(p.Attributes.ToSlice()), p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				line := fmt.Sprintf("%s%s: %d, %v s", name, attrsText(p.Attributes.ToSlice()), p.Count, p.Sum)
				for _, e := range p.Exemplars {
					line += fmt.Sprintf(" #%d", spans[trace.SpanID(e.SpanID)])
				}
				lines = append(lines, line+"\n")
			}
		}
	}
	slices.Sort(lines)
	return lines
}
