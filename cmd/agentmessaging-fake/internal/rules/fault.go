package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Fault is a fault as an object: its kind, and the members that the kind takes.
type Fault struct {
	fakeserver.Fault
	written json.RawMessage
}

// MarshalJSON returns the object as it was given.
func (f *Fault) MarshalJSON() ([]byte, error) { return f.written, nil }

// UnmarshalJSON makes the fault. As the functions of package fakeserver do, it
// panics with a sentence for a value that a fault cannot have.
func (f *Fault) UnmarshalJSON(raw []byte) (err error) {
	f.written = bytes.Clone(raw)
	f.Fault, err = parse(raw, false)
	return err
}

// members are those of all kinds.
type members struct {
	Kind        string
	Duration    jsonapi.Duration
	Every       jsonapi.Duration
	Status      int
	Body        string
	ContentType string `json:"content_type"`
	RetryAfter  string `json:"retry_after"`
	Bytes       int
	How         json.RawMessage
	Name        string
}

// kind says which members a kind of fault needs and which it takes too. insteadOf
// the call acts what can also lose a reply.
type kind struct {
	needs, takes string
	insteadOf    bool
	fault        func(members) fakeserver.Fault
}

const (
	loseReply = "lose_reply"
	named     = "named"
)

var kinds = map[string]kind{
	"latency":          {"duration", "", false, func(m members) fakeserver.Fault { return fakeserver.Latency(m.Duration.Duration) }},
	"answer":           {"status", "body", true, func(m members) fakeserver.Fault { return fakeserver.Answer(m.Status, m.Body) }},
	"raw_answer":       {"status", "body content_type", true, func(m members) fakeserver.Fault { return fakeserver.RawAnswer(m.Status, m.ContentType, m.Body) }},
	"rate_limited":     {"", "retry_after", true, func(m members) fakeserver.Fault { return fakeserver.RateLimited(m.RetryAfter) }},
	"hang":             {"", "", true, func(members) fakeserver.Fault { return fakeserver.Hang() }},
	"close_early":      {"", "", true, func(members) fakeserver.Fault { return fakeserver.CloseEarly() }},
	"reset_connection": {"", "", true, func(members) fakeserver.Fault { return fakeserver.ResetConnection() }},
	"truncate_reply":   {"bytes", "", false, func(m members) fakeserver.Fault { return fakeserver.TruncateReply(m.Bytes) }},
	"reset_reply":      {"bytes", "", false, func(m members) fakeserver.Fault { return fakeserver.ResetReply(m.Bytes) }},
	"drip_reply":       {"bytes", "every", false, func(m members) fakeserver.Fault { return fakeserver.DripReply(m.Bytes, m.Every.Duration) }},
	"go_away":          {"", "", false, func(members) fakeserver.Fault { return fakeserver.GoAway() }},
	loseReply:          {"how", "", false, nil},
	named:              {"name", "", false, nil},
}

// parse makes a fault of an object. A fault that loses a reply acts instead of
// the call by itself.
func parse(raw []byte, loses bool) (fakeserver.Fault, error) {
	var m members
	var given map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &m), json.Unmarshal(raw, &given)); err != nil {
		return fakeserver.Fault{}, err
	}
	allowed := slices.Sorted(maps.Keys(kinds))
	allowed = slices.DeleteFunc(allowed, func(name string) bool { return loses && !kinds[name].insteadOf })
	if !slices.Contains(allowed, m.Kind) {
		return fakeserver.Fault{}, fmt.Errorf("fault: its kind must be one of %s", strings.Join(allowed, ", "))
	}
	if err := kinds[m.Kind].check(m.Kind, given); err != nil {
		return fakeserver.Fault{}, err
	}
	switch m.Kind {
	case loseReply:
		how, err := parse(m.How, true)
		if err != nil {
			return how, fmt.Errorf("how: %w", err)
		}
		return fakeserver.LoseReply(how), nil
	case named:
		return byName(m.Name)
	}
	return kinds[m.Kind].fault(m), nil
}

func (k kind) check(name string, given map[string]json.RawMessage) error {
	needs, takes := strings.Fields(k.needs), strings.Fields("kind "+k.needs+" "+k.takes)
	for _, member := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(takes, member) {
			return fmt.Errorf("fault: %s does not take %s; it takes: %s", name, member, strings.Join(takes, ", "))
		}
	}
	for _, member := range needs {
		if given[member] == nil {
			return fmt.Errorf("fault: %s needs %s", name, member)
		}
	}
	return nil
}

// byName finds a fault of the list that the sweep has too. A connection cannot be
// refused by the one who has accepted it.
func byName(name string) (fakeserver.Fault, error) {
	found, names := faults.Named(name)
	if found.Name == "" || name == faults.Refused {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == faults.Refused })
		return fakeserver.Fault{}, fmt.Errorf("fault: its name must be one of %s", strings.Join(names, ", "))
	}
	return found.Fault, nil
}

// Fitting returns the faults that can happen to a call of an endpoint, such as
// "GET /v1/status".
func Fitting(endpoint string) ([]faults.Fault, error) {
	method, path, _ := strings.Cut(endpoint, " ")
	e := spec.Find(method, path)
	if e == nil {
		return nil, errors.New("endpoint: must be one of " + spec.EndpointNames())
	}
	return slices.DeleteFunc(faults.For(e), func(f faults.Fault) bool { return f.Name == faults.Refused }), nil
}
