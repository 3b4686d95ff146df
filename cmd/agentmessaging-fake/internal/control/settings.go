package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// PlanNames are the plans of interface 8.2.
var PlanNames = planNames()

func planNames() (all []string) {
	for _, p := range spec.Plans {
		all = append(all, p.Name)
	}
	return all
}

func (o *Options) fakeOptions() ([]fakeserver.Option, error) {
	opts := []fakeserver.Option{
		fakeserver.WithColdStart(o.ColdStart), fakeserver.WithMessageTexts(), fakeserver.WithCallLimit(o.Calls),
	}
	if o.Plan != "" {
		opts = append(opts, fakeserver.WithPlan(fakeserver.Plan(o.Plan)))
	}
	if o.Key != "" {
		opts = append(opts, fakeserver.WithKey(o.Key))
	}
	if o.Like != nil {
		opts = append(opts, fakeserver.Like(o.Like))
	}
	decisions, err := DecisionOptions(o.Decisions)
	if err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	limits, err := LimitOptions(o.Limits)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return slices.Concat(opts, decisions, limits), nil
}

// LimitOptions reads the limits of all keys: "plan" or "", which leaves each key
// those of its plan; "off"; the name of a plan; or calls in each window, such as
// "key_minute=5,warmup_key_hour=1", which leaves the others as they are.
func LimitOptions(text string) (opts []fakeserver.Option, _ error) {
	i := slices.IndexFunc(spec.Plans, func(p spec.Plan) bool { return p.Name == text })
	for n, l := range spec.Limits {
		switch {
		case text == "off":
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(l.Key), noLimit))
		case i >= 0:
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(l.Key), spec.Plans[i].Max(n)))
		}
	}
	if text == "" || text == "plan" || opts != nil {
		return opts, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, calls, _ := strings.Cut(strings.TrimSpace(pair), "=")
		n, err := strconv.Atoi(calls)
		if !slices.Contains(limitNames(), name) || err != nil || n < 1 {
			return nil, fmt.Errorf("must be plan, off, one of %s, or calls in a window such as key_minute=5 with one of %s",
				listed(PlanNames), listed(limitNames()))
		}
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(name), n))
	}
	return opts, nil
}

func limitNames() (all []string) {
	for _, l := range spec.Limits {
		all = append(all, string(l.Key))
	}
	return all
}

// DecisionOptions reads answers to open questions of the interface, such as
// "windows=sliding,metadata_cap=8000". GET decisions lists the questions.
func DecisionOptions(text string) (opts []fakeserver.Option, _ error) {
	if text == "" {
		return nil, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		id, answer, _ := strings.Cut(strings.TrimSpace(pair), "=")
		value := any(answer)
		if json.Valid([]byte(answer)) {
			value = json.RawMessage(answer)
		}
		opts = append(opts, fakeserver.WithDecision(id, value))
	}
	fake, err := fakeserver.Open(opts...)
	if err != nil {
		return nil, fmt.Errorf("must be answers such as windows=sliding,metadata_cap=8000: %w", err)
	}
	return opts, fake.Close()
}
