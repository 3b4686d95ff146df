package control

import (
	"cmp"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Settings are what can be chosen for one world. The zero values mean plan
// preview, the limits of each key's plan, and fixed windows.
type Settings struct {
	Plan    string `json:"plan" check:"plan"`
	Limits  string `json:"limits" check:"limits"`
	Windows string `json:"windows" check:"windows"`
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
	LimitNames  = []string{limitsOfPlan, spec.PreviewPlan, spec.ProPlan, spec.BYOKPlan, limitsOff}
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
	return Settings{cmp.Or(o.Plan, base.Plan), cmp.Or(o.Limits, base.Limits), cmp.Or(o.Windows, base.Windows)}
}

// fakeOptions are the options of a world's fake.
func (s *Server) fakeOptions(name string, o Settings) []fakeserver.Option {
	opts := []fakeserver.Option{
		fakeserver.WithPlan(fakeserver.Plan(o.Plan)), fakeserver.WithColdStart(s.options.ColdStart),
		fakeserver.WithMessageTexts(), fakeserver.WithCallLimit(s.options.Calls),
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
		opts = append(opts, fakeserver.WithDecision("windows", sliding))
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
