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
	// client create_agent
	// client invoke_agent
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
	// client create_agent
	//    client HTTP POST
	// client invoke_agent
	//    client HTTP POST
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

// printSpans lists the spans of each call below it. They end before it.
func printSpans(spans tracetest.SpanStubs) {
	for _, call := range spans {
		if call.Parent.IsValid() {
			continue
		}
		fmt.Println(call.SpanKind, call.Name)
		for _, s := range spans {
			if s.Parent.Equal(call.SpanContext) {
				fmt.Println("  ", s.SpanKind, s.Name)
			}
		}
	}
}
