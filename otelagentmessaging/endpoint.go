package otelagentmessaging

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// An endpoint of a server has all that the telemetry of its calls has in
// common. It is made once, since calls that go through differ in little else.
type endpoint struct {
	span, request string // names of spans
	kind          trace.SpanStartOption

	ofSpan    []attribute.KeyValue // of the call's span, from the start
	ofRequest []attribute.KeyValue // of a request's
	ofCalls   []attribute.KeyValue // of the metrics of this package
	// of the metric of agent operations; nil where the method is none
	ofOperations []attribute.KeyValue
	ofRequests   []attribute.KeyValue // of the metric of requests

	// The same for what succeeds.
	called, operated, requested []metric.RecordOption
}

var clientKind, internalKind = trace.WithSpanKind(trace.SpanKindClient), trace.WithSpanKind(trace.SpanKindInternal)

func newEndpoint(e agentmessaging.Endpoint, base *url.URL) *endpoint {
	server := server(base)
	x := &endpoint{
		span: "agentmessaging." + e.Name, request: e.Method + " " + e.Path, kind: internalKind,
		ofCalls: append(server[:2:2], keyMethod.String(e.Name)),
		ofRequest: append(server[:2:2],
			semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)),
		ofRequests: append(server[:2:2],
			semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path), semconv.URLScheme(base.Scheme)),
	}
	x.ofSpan = x.ofCalls
	if name, ok := operation(e.Name); ok {
		x.span, x.kind = name.Value.AsString(), clientKind
		x.ofOperations = append(server[:2:2], name, semconv.GenAIProviderNameKey.String(providerName))
		x.ofSpan = append(x.ofOperations[:4:4], keyMethod.String(e.Name))
		x.operated = recorded(x.ofOperations)
	}
	x.called = recorded(x.ofCalls)
	x.requested = recorded(x.ofRequests, semconv.HTTPResponseStatusCode(200))
	return x
}

// recorded are the attributes of a measurement, and more.
func recorded(attrs []attribute.KeyValue, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(slices.Concat(attrs, more)...))}
}

// server is where the client's address points.
func server(u *url.URL) []attribute.KeyValue {
	port := 443
	if u.Scheme == "http" {
		port = 80
	}
	if given, err := strconv.Atoi(u.Port()); err == nil {
		port = given
	}
	return []attribute.KeyValue{semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
}

// endpoints are those that were called. They are read without a lock.
type endpoints struct {
	known atomic.Pointer[map[endpointKey]*endpoint]
}

type endpointKey struct{ name, scheme, host string }

func (x *endpoints) of(e agentmessaging.Endpoint, base *url.URL) *endpoint {
	key := endpointKey{e.Name, base.Scheme, base.Host}
	known := x.known.Load()
	if known != nil && (*known)[key] != nil {
		return (*known)[key]
	}
	made := newEndpoint(e, base)
	more := map[endpointKey]*endpoint{key: made}
	if known != nil {
		maps.Copy(more, *known)
	}
	x.known.CompareAndSwap(known, &more) // whoever loses makes it again next time
	return made
}
