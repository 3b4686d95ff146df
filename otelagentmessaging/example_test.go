package otelagentmessaging_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // in a program, one that sends the spans somewhere
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk(http.DefaultTransport, agentmessaging.WithObserver(observer)))
	printSpans(exporter.GetSpans())
	// Output:
	// <nil>
	// client create_agent, has a parent: false
	// client invoke_agent, has a parent: false
}

// The transport makes the HTTP spans, and sends traceparent.
func ExampleWithoutHTTP() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := otelagentmessaging.NewObserver(
		otelagentmessaging.WithTracerProvider(provider), otelagentmessaging.WithoutHTTP())
	if err != nil {
		fmt.Println(err)
		return
	}
	transport := otelhttp.NewTransport(http.DefaultTransport, otelhttp.WithTracerProvider(provider))
	fmt.Println(talk(transport, agentmessaging.WithObserver(observer)))
	printSpans(exporter.GetSpans())
	// Output:
	// <nil>
	// client HTTP POST, has a parent: true
	// client create_agent, has a parent: false
	// client HTTP POST, has a parent: true
	// client invoke_agent, has a parent: false
}

// talk creates an agent of a fake and sends it a message.
func talk(transport http.RoundTripper, observer agentmessaging.Option) error {
	fake, err := fakeserver.Open()
	if err != nil {
		return err
	}
	server, ctx := httptest.NewServer(fake), context.Background()
	defer server.Close()
	client, err := agentmessaging.NewClient(server.URL, fake.Key(), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), observer)
	if err != nil {
		return err
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	return err
}

// printSpans lists the spans as they end: a call's is the last of its own.
func printSpans(spans tracetest.SpanStubs) {
	for _, s := range spans {
		fmt.Printf("%s %s, has a parent: %t\n", s.SpanKind, s.Name, s.Parent.IsValid())
	}
}
