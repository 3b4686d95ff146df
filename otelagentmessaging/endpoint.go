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
	name, request string // names of spans
	kind          trace.SpanStartOption

	ofServer  []attribute.KeyValue
	ofRequest []attribute.KeyValue
	ofSpan    []attribute.KeyValue // of the call's span, from the start
	ofCalls   []attribute.KeyValue // of the metrics of this package
	// of the metric of agent operations; nil where the method is none
	ofOperations []attribute.KeyValue
	ofRequests   []attribute.KeyValue // of the metric of requests

	// The same for what succeeds.
	called, operated, requested []metric.RecordOption
}

var clientKind, internalKind = trace.WithSpanKind(trace.SpanKindClient), trace.WithSpanKind(trace.SpanKindInternal)

// newEndpoint makes spans of kind INTERNAL where the transport makes those of
// kind CLIENT, but for the agent operations, whose convention asks for CLIENT.
func newEndpoint(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	x := &endpoint{
		name: "agentmessaging." + e.Name, request: e.Method + " " + e.Path, kind: clientKind,
		ofServer:  server(base),
		ofRequest: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)},
	}
	x.ofCalls = append(x.ofServer[:2:2], keyMethod.String(e.Name))
	x.ofSpan = x.ofCalls
	if operation := operation(e.Name); operation != nil {
		x.name = operation[0].Value.AsString()
		x.ofOperations = append(x.ofServer[:2:2], operation...)
		x.ofSpan = append(x.ofCalls[:3:3], operation...)
		x.operated = recorded(x.ofOperations)
	} else if noHTTP {
		x.kind = internalKind
	}
	x.ofRequests = append(slices.Concat(x.ofServer, x.ofRequest), semconv.URLScheme(base.Scheme))
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
