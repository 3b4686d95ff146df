package control

import (
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Settings are what can be chosen for one world. The zero values mean plan
// preview, the limits of each key's plan, and fixed windows.
type Settings struct {
	Plan    string `json:"plan"`
	Limits  string `json:"limits"`
	Windows string `json:"windows"`
}

// Values of Settings besides the plans.
const (
	limitsOfPlan = "plan"
	limitsOff    = "off"
	fixed        = "fixed"
	sliding      = "sliding"
)

// PlanNames, LimitNames and WindowNames are the values of Settings.
var (
	PlanNames   = planNames()
	LimitNames  = []string{limitsOfPlan, "preview", "pro", "byok", limitsOff}
	WindowNames = []string{fixed, sliding}
)

func planNames() (all []string) {
	for _, p := range spec.Plans {
		all = append(all, p.Name)
	}
	return all
}

// over fills what a world does not say.
func (o Settings) over(base Settings) Settings {
	return Settings{or(o.Plan, base.Plan), or(o.Limits, base.Limits), or(o.Windows, base.Windows)}
}

func (o Settings) flaw() *refusal {
	return first(oneOf("plan", o.Plan, PlanNames), oneOf("limits", o.Limits, LimitNames), oneOf("windows", o.Windows, WindowNames))
}

// fakeOptions are those of the fake of a world.
func (s *Server) fakeOptions(name string, o Settings) []fakeserver.Option {
	opts := []fakeserver.Option{
		fakeserver.WithPlan(fakeserver.Plan(o.Plan)), fakeserver.WithColdStart(s.options.ColdStart),
		fakeserver.WithMessageTexts(), fakeserver.WithMetadataCap(metadataCap),
		fakeserver.WithCallLimit(s.options.Calls), fakeserver.WithBodyLimit(bodyLimit),
		fakeserver.WithConversationLimit(maxExchanges),
	}
	if s.options.Like != nil {
		opts = append(opts, fakeserver.Like(s.options.Like))
	}
	switch {
	case name != defaultWorld:
		opts = append(opts, fakeserver.WithKey(keyPrefix+name))
	case s.options.Key != "":
		opts = append(opts, fakeserver.WithKey(s.options.Key))
	}
	if o.Windows == sliding {
		opts = append(opts, fakeserver.WithSlidingWindows())
	}
	return append(opts, limitOptions(o.Limits)...)
}

func limitOptions(limits string) (opts []fakeserver.Option) {
	i := slices.IndexFunc(spec.Plans, func(p spec.Plan) bool { return p.Name == limits })
	for n, l := range spec.Limits {
		switch {
		case limits == limitsOff:
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(l.Key), noLimit))
		case i >= 0:
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(l.Key), spec.Plans[i].Max(n)))
		}
	}
	return opts
}
