package otelagentmessaging_test

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

// talk creates an agent and sends it a message.
func talk(client *agentmessaging.Client) error {
	ctx := context.Background()
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	return err
}

// printSpans lists each below its parent, which ends after it.
func printSpans(spans tracetest.SpanStubs) {
	for _, parent := range spans {
		if parent.Parent.IsValid() {
			continue
		}
		fmt.Println(parent.SpanKind, parent.Name)
		for _, child := range spans {
			if child.Parent.SpanID() == parent.SpanContext.SpanID() {
				fmt.Println("  ", child.SpanKind, child.Name)
			}
		}
	}
}

func Example() {
	exporter := tracetest.NewInMemoryExporter() // in a program, one that sends the spans somewhere
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	fake, err := fakeserver.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithObserver(observer))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk(client))
	printSpans(exporter.GetSpans())
	// Output:
	// <nil>
	// client create_agent
	//    client POST /v1/agents
	// client invoke_agent
	//    client POST /v1/agents/{agent_id}/messages
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
	fake, err := fakeserver.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fake.Close()
	transport := otelhttp.NewTransport(fake.HTTPClient(nil).Transport, otelhttp.WithTracerProvider(provider))
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), agentmessaging.WithObserver(observer))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk(client))
	printSpans(exporter.GetSpans())
	// Output:
	// <nil>
	// client create_agent
	//    client HTTP POST
	// client invoke_agent
	//    client HTTP POST
}

// Without an observer, otelhttp alone knows requests, but no calls.
func Example_otelhttpAlone() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	fake, err := fakeserver.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fake.Close()
	transport := otelhttp.NewTransport(fake.HTTPClient(nil).Transport, otelhttp.WithTracerProvider(provider))
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(talk(client))
	printSpans(exporter.GetSpans())
	// Output:
	// <nil>
	// client HTTP POST
	// client HTTP POST
}
