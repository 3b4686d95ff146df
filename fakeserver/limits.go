package fakeserver

import (
	"cmp"
	"net/http"
	"strconv"
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
	LimitKeyMinute           = "key_minute"             // requests of a key in a minute: 60
	LimitIPMinute            = "ip_minute"              // requests from an address in a minute: 120
	LimitKeyDay              = "key_day"                // requests of a key in a day: 1,000
	LimitAgentCreateKeyDay   = "agent_create_key_day"   // agents created by a key in a day: 50
	LimitAgentCreateIPMinute = "agent_create_ip_minute" // agents created from an address in a minute: 10
	LimitBYOKSetKeyHour      = "byok_set_key_hour"      // provider keys set by a key in an hour: 5
	LimitWarmUpKeyHour       = "warmup_key_hour"        // warm-ups of a key in an hour: 3
)

// limitCount is the number of limits in interface 8.1.
const limitCount = 7

func limitIndex(key spec.LimitKey) int {
	for i := range spec.Limits {
		if spec.Limits[i].Key == key {
			return i
		}
	}
	return -1
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
	PlanPreview Plan = "preview" // active, with the preview limits of interface 8.1
	PlanFree    Plan = "free"    // inactive: every call is answered 402
	PlanPro     Plan = "pro"     // active, with the Pro limits of interface 8.2
	PlanBYOK    Plan = "byok"    // active, with the BYOK limits of interface 8.2
)

// spec returns the plan's row of interface 8.2.
func (p Plan) spec(method string) spec.Plan {
	row, known := p.find()
	if !known {
		misuse(method, "unknown plan %q; the plans are %s", string(p), planNames)
	}
	return row
}

const planNames = "preview, free, pro and byok"

func (p Plan) find() (row spec.Plan, known bool) {
	for _, row := range spec.Plans {
		if row.Name == string(cmp.Or(p, PlanPreview)) {
			return row, true
		}
	}
	return spec.Plan{}, false
}

// counts are the windows of one API key, or of one client address. A key counts
// nothing in the windows of limits per address, and an address nothing in those
// per key.
type counts struct {
	windows [limitCount]window // in the order of spec.Limits
	last    time.Time          // the time of the newest counted call
}

func newCounts(sliding bool) *counts {
	c := new(counts)
	for i := range c.windows {
		c.windows[i].length, c.windows[i].sliding = spec.Limits[i].Window, sliding
	}
	return c
}

// behind reports whether now comes from another clock: a bubble starts in the
// year 2000. A day is the longest window, and a test does not set its clock back
// by more.
func (c *counts) behind(now time.Time) bool { return c.last.After(now.Add(spec.Day)) }

func (c *counts) touch(now time.Time) {
	if now.After(c.last) {
		c.last = now
	}
}

// closed reports whether no call counts any more.
func (c *counts) closed(now time.Time) bool {
	for i := range c.windows {
		if c.windows[i].ends(now).After(now) {
			return false
		}
	}
	return true
}

// exhaust closes limit i until the key's open window ends, or for a whole
// window from now.
func (c *counts) exhaust(i int, now time.Time) {
	w := &c.windows[i]
	c.touch(now)
	switch ends := w.ends(now); {
	case w.shut.After(now):
	case ends.After(now):
		w.shut = ends
	default:
		w.shut = now.Add(w.length)
	}
}

// budget holds the windows and maxima that one call has to fit into.
type budget struct {
	key, ip *counts
	maxima  [limitCount]int
	now     time.Time
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

// spending says which limits a call spends.
type spending [limitCount]bool

// cost says which limits may refuse a call, and which limits it spends.
type cost struct{ asks, spends spending }

// costs returns the cost of a call, with the flaw that it has; nil means none.
// By the fake's own decisions a call spends the request limits with any flaw,
// and the limits of its operation only without one.
func (d *decided) costs(e *spec.Endpoint, flaw *failure, setsBYOK bool) (c cost) {
	succeeds, limited := flaw == nil, e.Counts(spec.Requests, false)
	badBody := flaw != nil && flaw.status == http.StatusBadRequest
	for i, l := range spec.Limits {
		switch {
		case l.Counts == spec.Requests && !limited:
			c.spends[i] = d.requestsSpend["status"]
		case l.Counts == spec.Requests:
			c.asks[i] = succeeds || d.limitComesBefore(flaw)
			c.spends[i] = succeeds || d.spendsThough(flaw)
		case e.Counts(l.Counts, setsBYOK):
			c.asks[i] = succeeds || badBody && !d.bodyBeforeOperation
			c.spends[i] = succeeds || badBody && d.operationsSpend
		}
	}
	return c
}

// limitComesBefore reports whether a spent limit on requests refuses a call
// before its flaw does.
func (d *decided) limitComesBefore(flaw *failure) bool {
	switch flaw.status {
	case http.StatusBadRequest:
		return d.limitBeforeBody
	case http.StatusForbidden:
		return d.limitBeforePermission
	}
	return true
}

// spendsThough reports whether a call with a flaw spends a request.
func (d *decided) spendsThough(flaw *failure) bool {
	spends, asked := d.requestsSpend[strconv.Itoa(flaw.status)]
	return spends || !asked
}

// spend takes the cost of a call from its limits, or returns the 429 that
// refuses it and takes nothing. It looks at the limits of the operation even
// when a request limit refuses: after the wait that the 429 names, the same
// call must pass.
func (b *budget) spend(c cost, d *decided) *failure {
	if refused := b.refusal(c.asks, d); refused != nil {
		return refused
	}
	for i, spent := range c.spends {
		if spent {
			b.take(i)
		}
	}
	return nil
}

// take counts a call against spec.Limits[i].
func (b *budget) take(i int) {
	counts := b.counts(i)
	counts.windows[i].take(b.now)
	counts.touch(b.now)
}

// refusal returns the 429 for the exhausted limit that opens last, and nil if
// none is exhausted. Of limits that open at the same time it names the first in
// the order of interface 8.1.
func (b *budget) refusal(asks spending, d *decided) *failure {
	var named spec.LimitKey
	latest := b.now
	for i, asked := range asks {
		if !asked {
			continue
		}
		if opens := b.opens(i); opens.After(latest) && (named == "" || d.namesTheLastToOpen) {
			named, latest = spec.Limits[i].Key, opens
		}
	}
	if named == "" {
		return nil
	}
	wait := waitSeconds(b.now, latest)
	if !d.exactRetryAfter {
		wait--
	}
	return rateLimited(named, wait)
}
