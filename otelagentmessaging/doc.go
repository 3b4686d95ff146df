// Package otelagentmessaging turns the events of an agentmessaging client's calls into
// OpenTelemetry spans and metrics.
//
//	observer, err := otelagentmessaging.NewObserver()
//	if err != nil {
//		return err
//	}
//	client, err := agentmessaging.NewClient(baseURL, apiKey, agentmessaging.WithObserver(observer))
//
// Without options it uses the global providers. One observer serves any number
// of clients and calls at once.
//
// # Spans
//
// Every call has a span, a child of the span in the call's context. It covers the whole
// call, including retries and waits. SendMessage is the convention's invoke_agent and
// CreateAgent its create_agent; the other methods have names such as
// agentmessaging.GetAgent. Retries, waits for the limiter and cool-downs are events of
// this span.
//
// If a call makes one request, the call's span is the request's HTTP span too.
// If it makes several, each request has an HTTP span below the call's, with
// a name such as "POST /v1/agents". All are of kind CLIENT.
//
// A call whose arguments are refused (agentmessaging.ErrInvalid) has no span, because
// nothing was called and the caller has the error.
//
// # Metrics
//
// The package records the conventions' http.client.request.duration for every request,
// and gen_ai.client.operation.duration for SendMessage and CreateAgent. Three more metrics
// are for calls, retries and waits for limits. The README of the module lists every name,
// unit, bucket and attribute.
//
// # What is never recorded
//
// The package records no API key or provider key, no message, reply, prompt or other
// content, no error text and no header. Identifiers (the agent's, its URL, the service's
// trace_id and limit_key) are on spans only, because each has too many values for a
// metric. A span's status has no description: error.type is the kind of the failure, and
// the error that the method returns has the details.
//
// # Trace context
//
// An observer cannot set a header, so it adds no traceparent to requests. If the service,
// or a gateway in front of it, should get a traceparent, use otelhttp as the client's
// transport, and [WithoutHTTP]. Then this package leaves the HTTP spans and metrics to
// otelhttp, so that none is recorded twice.
//
// The names come from the semantic conventions 1.41.0, the last release that had both
// the HTTP conventions, which are stable, and the GenAI conventions, which are in
// development.
package otelagentmessaging
