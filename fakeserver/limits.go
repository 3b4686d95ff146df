package fakeserver

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Limit names one of the limits of interface 8.1, for Exhaust and WithLimit. It
// has its own type so that a key and a limit cannot be swapped.
type Limit string

// The limits, by their names in the limit_key of a 429. The interface shows no
// names; the fake chose these.
const (
	LimitKeyMinute           = spec.KeyMinute           // key_minute: requests of a key in a minute
	LimitIPMinute            = spec.IPMinute            // ip_minute: requests from an address in a minute
	LimitKeyDay              = spec.KeyDay              // key_day: requests of a key in a day
	LimitAgentCreateKeyDay   = spec.AgentCreateKeyDay   // agent_create_key_day: agents created by a key in a day
	LimitAgentCreateIPMinute = spec.AgentCreateIPMinute // agent_create_ip_minute: agents created from an address in a minute
	LimitBYOKSetKeyHour      = spec.BYOKSetKeyHour      // byok_set_key_hour: provider keys set by a key in an hour
	LimitWarmUpKeyHour       = spec.WarmUpKeyHour       // warmup_key_hour: warm-ups of a key in an hour
)

// limitIndex finds a limit in spec.Limits, or returns -1.
func limitIndex(key Limit) int {
	return slices.IndexFunc(spec.Limits, func(l spec.Limit) bool { return Limit(l.Key) == key })
}

func limitKeys() string {
	var names []string
	for _, l := range spec.Limits {
		names = append(names, string(l.Key))
	}
	return strings.Join(names, ", ")
}

// Plan is the developer plan of an API key: interface 5 and 8.2.
type Plan string

// The plans. The zero value means PlanPreview.
const (
	PlanPreview Plan = spec.PreviewPlan // preview: active, with the preview limits of interface 8.1
	PlanFree    Plan = spec.FreePlan    // free: inactive, so every call is answered 402
	PlanPro     Plan = spec.ProPlan     // pro: active, with the Pro limits of interface 8.2
	PlanBYOK    Plan = spec.BYOKPlan    // byok: active, with the BYOK limits of interface 8.2
)

func (p Plan) spec(method string) spec.Plan {
	row, known := p.find()
	if !known {
		misuse(method, "unknown plan %q; the plans are %s", string(p), planNames)
	}
	return row
}

const planNames = spec.PreviewPlan + ", " + spec.FreePlan + ", " + spec.ProPlan + " and " + spec.BYOKPlan

func (p Plan) find() (row spec.Plan, known bool) {
	for _, row := range spec.Plans {
		if row.Name == string(cmp.Or(p, PlanPreview)) {
			return row, true
		}
	}
	return spec.Plan{}, false
}

// budget holds the windows and maxima that one call has to fit into.
type budget struct {
	key, ip *counts
	maxima  [spec.LimitCount]int
	now     time.Time
}

// budget is what a call of a key from an address may spend. An ip that is nil
// leaves the limits per address out.
func (c *config) budget(of Plan, key, ip *counts, now time.Time) budget {
	b := budget{key: key, ip: ip, now: now}
	plan, _ := of.find()
	for i := range b.maxima {
		b.maxima[i] = cmp.Or(c.maxima[i], plan.Max(i))
	}
	return b
}

func (b *budget) counts(i int) *counts {
	if spec.Limits[i].PerIP {
		return b.ip
	}
	return b.key
}

func (b *budget) opens(i int) time.Time {
	opens := b.counts(i).windows[i].opens(b.now, b.maxima[i])
	if shut := b.key.windows[i].shut; shut.After(opens) {
		return shut
	}
	return opens
}

type spending [spec.LimitCount]bool

// cost says which limits may refuse a call, and which limits it spends.
type cost struct{ asks, spends spending }

// costs returns the cost of a call, with the flaw that it has; nil means none.
// By the fake's own decisions a call spends the request limits with any flaw,
// and the limits of its operation only without one.
func (c *choices) costs(e *spec.Endpoint, flaw *failure, setsBYOK bool) (of cost) {
	succeeds, limited := flaw == nil, e.Counts(spec.Requests, false)
	badBody := flaw.isBadRequest()
	for i, l := range spec.Limits {
		switch {
		case l.Counts == spec.Requests && !limited:
			of.spends[i] = c.requestsSpend["status"]
		case l.Counts == spec.Requests:
			of.asks[i] = succeeds || c.limitComesBefore(flaw)
			of.spends[i] = succeeds || c.spendsThough(flaw)
		case e.Counts(l.Counts, setsBYOK):
			of.asks[i] = succeeds || badBody && !c.bodyBeforeOperation
			of.spends[i] = succeeds || badBody && c.operationsSpend
		}
	}
	return of
}

// spend takes the cost of a call from its limits, or returns the 429 that
// refuses it and takes nothing. It looks at the limits of the operation even
// when a request limit refuses: after the wait that the 429 names, the same
// call must pass.
func (b *budget) spend(c cost, by *choices) *failure {
	if refused := b.refusal(c.asks, by); refused != nil {
		return refused
	}
	for i, spent := range c.spends {
		if spent {
			b.counts(i).take(i, b.now)
		}
	}
	return nil
}

// takeRequest counts a call without a key against its address.
func (c *counts) takeRequest(now time.Time) {
	for i, l := range spec.Limits {
		if l.PerIP && l.Counts == spec.Requests {
			c.take(i, now)
		}
	}
}

// refusal returns the 429 for the exhausted limit that opens last, and nil if
// none is exhausted. Of limits that open at the same time it names the first in
// the order of interface 8.1.
func (b *budget) refusal(asks spending, by *choices) *failure {
	var named spec.LimitKey
	latest := b.now
	for i, asked := range asks {
		if !asked {
			continue
		}
		if opens := b.opens(i); opens.After(latest) && (named == "" || by.namesTheLastToOpen) {
			named, latest = spec.Limits[i].Key, opens
		}
	}
	if named == "" {
		return nil
	}
	wait := waitSeconds(b.now, latest)
	if !by.exactRetryAfter {
		wait--
	}
	return rateLimited(named, wait)
}
