package control

import (
	"cmp"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Settings are the plan of the first key, the limits and how they are counted.
// The zero values mean plan preview, the limits of each key's plan, and fixed
// windows.
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

// filled has the defaults where nothing is said.
func (o Settings) filled() Settings {
	return Settings{cmp.Or(o.Plan, string(fakeserver.PlanPreview)), cmp.Or(o.Limits, limitsOfPlan), cmp.Or(o.Windows, fixed)}
}

func (o *Options) fakeOptions() []fakeserver.Option {
	settings := o.Settings.filled()
	opts := []fakeserver.Option{
		fakeserver.WithPlan(fakeserver.Plan(settings.Plan)), fakeserver.WithColdStart(o.ColdStart),
		fakeserver.WithMessageTexts(), fakeserver.WithCallLimit(o.Calls),
	}
	if o.Like != nil {
		opts = append(opts, fakeserver.Like(o.Like))
	}
	if o.Key != "" {
		opts = append(opts, fakeserver.WithKey(o.Key))
	}
	if settings.Windows == sliding {
		opts = append(opts, fakeserver.WithDecision("windows", sliding))
	}
	return append(opts, limitOptions(settings.Limits)...)
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
