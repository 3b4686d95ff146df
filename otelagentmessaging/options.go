package otelagentmessaging

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// An Option changes what [NewObserver] makes. A nil option, or an option given
// nil, is refused.
type Option func(*settings) error

type settings struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	noHTTP  bool
}

// WithTracerProvider makes the spans with provider. The default is the global
// one, also where it is set after the observer was made.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(s *settings) error {
		s.tracers = provider
		return refuseNil("WithTracerProvider", provider == nil)
	}
}

// WithMeterProvider records the metrics with provider. The default is the
// global one, also where it is set after the observer was made.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return func(s *settings) error {
		s.meters = provider
		return refuseNil("WithMeterProvider", provider == nil)
	}
}

// WithoutHTTP leaves the HTTP spans and http.client.request.duration to the
// client's transport, such as one of otelhttp. Its spans are then children of
// the call's.
func WithoutHTTP() Option {
	return func(s *settings) error {
		s.noHTTP = true
		return nil
	}
}

func refuseNil(name string, isNil bool) error {
	if !isNil {
		return nil
	}
	return &agentmessaging.ValidationError{Field: name, Reason: "was given nil; leave the option out for the default"}
}
