package otelagentmessaging

import (
	"net/url"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// An endpoint has the names, options and attributes that all its calls to one server share. They
// are made at the first of these calls, so that a call that succeeds costs little.
type endpoint struct {
	callSpan, requestSpan string                  // names
	startOptions          []trace.SpanStartOption // options for the call's span

	requestAttributes []attribute.KeyValue // for a span that covers one request
	callMetric        []attribute.KeyValue // for this package's metrics
	operationMetric   []attribute.KeyValue // for the metric of agent operations; nil: the method is not an operation
	requestMetric     []attribute.KeyValue // for the metric of requests

	// The same as options, for a call, operation or request that succeeds.
	callSuccess, operationSuccess, requestSuccess []metric.RecordOption
}

// newEndpoint returns the endpoint of a server. The spans of calls are of kind CLIENT.
// With noHTTP the transport makes CLIENT spans, so the spans of calls are INTERNAL. Agent
// operations are always CLIENT, because their convention asks for it.
func newEndpoint(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	x := &endpoint{
		callSpan: "agentmessaging." + e.Name, requestSpan: e.Method + " " + e.Path,
		requestAttributes: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)},
		callMetric:        append(server(base), keyMethod.String(e.Name)),
	}
	kind, attrs := trace.SpanKindClient, x.callMetric
	if operation, ok := operations[e.Name]; ok {
		x.callSpan = operation.Value.AsString()
		x.operationMetric = append(server(base), operation, provider)
		x.operationSuccess = recorded(x.operationMetric)
		attrs = slices.Concat(attrs, []attribute.KeyValue{operation, provider})
	} else if noHTTP {
		kind = trace.SpanKindInternal
	}
	x.startOptions = []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attrs...)}
	x.requestMetric = append(append(server(base), x.requestAttributes...), semconv.URLScheme(base.Scheme))
	x.callSuccess = recorded(x.callMetric)
	x.requestSuccess = recorded(x.requestMetric, semconv.HTTPResponseStatusCode(200))
	return x
}

// recorded returns attributes as an option of a measurement.
func recorded(attrs []attribute.KeyValue, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(slices.Concat(attrs, more)...))}
}

// server returns the attributes for the server's address in u.
func server(u *url.URL) []attribute.KeyValue {
	port, err := strconv.Atoi(u.Port())
	if err != nil { // the address leaves the port to its scheme
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
}
