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
// common. It is made once, since calls that succeed differ in little else.
type endpoint struct {
	name, request string                  // names of spans
	start         []trace.SpanStartOption // of the call's span

	ofRequest    []attribute.KeyValue // of a span that stands for a request
	ofCalls      []attribute.KeyValue // of the metrics of this package
	ofOperations []attribute.KeyValue // of the metric of agent operations; nil where the method is none
	ofRequests   []attribute.KeyValue // of the metric of requests

	// The same for what succeeds.
	called, operated, requested []metric.RecordOption
}

// newEndpoint makes spans of kind INTERNAL where the transport makes those of
// kind CLIENT, but for the agent operations, whose convention asks for CLIENT.
func newEndpoint(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	of := server(base)
	x := &endpoint{
		name: "agentmessaging." + e.Name, request: e.Method + " " + e.Path,
		ofRequest: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)},
		ofCalls:   slices.Concat(of, []attribute.KeyValue{keyMethod.String(e.Name)}),
	}
	kind := trace.SpanKindClient
	operation := operation(e.Name)
	if operation != nil {
		x.name = operation[0].Value.AsString()
		x.ofOperations = slices.Concat(of, operation)
		x.operated = recorded(x.ofOperations)
	} else if noHTTP {
		kind = trace.SpanKindInternal
	}
	x.start = []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(slices.Concat(x.ofCalls, operation)...)}
	x.ofRequests = slices.Concat(of, x.ofRequest, []attribute.KeyValue{semconv.URLScheme(base.Scheme)})
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

func (x *endpoints) of(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	key := endpointKey{e.Name, base.Scheme, base.Host}
	known := x.known.Load()
	if found := (*known)[key]; found != nil {
		return found
	}
	made := newEndpoint(e, base, noHTTP)
	more := map[endpointKey]*endpoint{key: made}
	maps.Copy(more, *known)
	x.known.CompareAndSwap(known, &more) // whoever loses makes it again next time
	return made
}
