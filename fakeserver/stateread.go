package fakeserver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// maxTallied bounds the calls of a sliding window that a file restores, since
// each takes memory. Fixed windows have no bound.
const maxTallied = 1 << 20

// state builds the state that a file describes, by the options of s. It checks
// everything that the rest of the fake relies on.
func (f *stateFile) state(s *Server) (*state, error) {
	if f.Advanced < 0 || f.Traces < 0 || f.Numbers < 0 || len(f.Keys) == 0 {
		return nil, errors.New("advanced_ns, traces and agents are at least 0, and there is a key")
	}
	st := newState()
	st.numbers, st.byokUnavailable = f.Numbers, !f.BYOKAvailable
	labels := map[string]*apiKey{}
	for i, k := range f.Keys {
		key, err := k.key(i+1, s.config.sliding)
		if err != nil {
			return nil, fmt.Errorf("keys[%d].%w", i, err)
		}
		st.keys[digestOf(s.config.keyText(i+1))], labels[key.label] = key, key
	}
	for i, a := range f.Addresses {
		if err := st.readAddress(a, s.config.sliding); err != nil {
			return nil, fmt.Errorf("addresses[%d].%w", i, err)
		}
	}
	for i, a := range f.Agents {
		if err := st.readAgent(a, s, labels[a.Key]); err != nil {
			return nil, fmt.Errorf("agent_list[%d].%w", i, err)
		}
	}
	return &st, nil
}

// key builds the n-th API key.
func (f *keyFile) key(n int, sliding bool) (*apiKey, error) {
	label := numbered("key", n)
	plan, known := Plan(f.Plan).find()
	switch {
	case f.Label != label:
		return nil, errors.New("label: is not " + label)
	case !known || f.Plan == "":
		return nil, errors.New("plan: is none of " + planNames)
	case f.IssuedAt.IsZero():
		return nil, errors.New("issued_at: is missing")
	}
	c, err := f.counts(false, sliding)
	if err != nil {
		return nil, err
	}
	b, err := f.BYOK.config()
	return &apiKey{
		number: n, label: label, plan: plan, dashboard: f.Dashboard, revoked: f.Revoked, warm: f.Warm,
		issued: f.IssuedAt, from: f.Address, byok: b, counts: c,
	}, err
}

// config builds a configuration without a provider key: the file has none, and
// the fake never needs it again.
func (f *byokFile) config() (*byokConfig, error) {
	switch {
	case f == nil:
		return nil, nil
	case !spec.BYOKProvider.Allows(f.Provider):
		return nil, errors.New("byok.provider: is none of " + spec.BYOKProvider.Values())
	case f.Fingerprint == "":
		return nil, errors.New("byok.fingerprint: is missing")
	case f.UpdatedAt.IsZero():
		return nil, errors.New("byok.updated_at: is missing")
	}
	return &byokConfig{
		provider: f.Provider, baseURL: f.BaseURL, model: f.Model, label: f.Label,
		fingerprint: f.Fingerprint, updatedAt: f.UpdatedAt,
	}, nil
}

func (st *state) readAddress(f addressFile, sliding bool) error {
	c, err := f.counts(true, sliding)
	if err != nil {
		return err
	}
	if st.ips[f.Address] != nil {
		return errors.New("address: stands twice")
	}
	st.ips[f.Address] = c
	return nil
}

func (f *countsFile) counts(perIP, sliding bool) (*counts, error) {
	c := newCounts(perIP, sliding)
	c.last = f.Last
	seen := [limitCount]bool{}
	for _, w := range f.Windows {
		i := limitIndex(spec.LimitKey(w.Limit))
		switch {
		case i < 0 || seen[i]:
			return nil, errors.New("windows: a limit_key is unknown or stands twice")
		case spec.Limits[i].PerIP != perIP && len(w.Calls) > 0, perIP && !w.Shut.IsZero():
			return nil, fmt.Errorf("windows: %s does not count here", w.Limit)
		}
		if n := len(w.Calls); n > 0 && f.Last.Before(w.Calls[n-1].At) {
			return nil, errors.New("last: is missing, or before a call that counts")
		}
		seen[i] = true
		if err := fill(c.windows[i], w.Calls); err != nil {
			return nil, fmt.Errorf("windows: %s: %w", w.Limit, err)
		}
		c.shutUntil(i, w.Shut)
	}
	return c, nil
}

func (c *counts) shutUntil(i int, end time.Time) {
	if end.IsZero() {
		return
	}
	if c.shut == nil {
		c.shut = new([limitCount]time.Time)
	}
	c.shut[i] = end
}

// fill puts the calls of a file into a new window. A window of the other kind
// may have counted them.
func fill(w window, calls []tally) error {
	total := 0
	for i, t := range calls {
		if t.At.IsZero() || t.Calls < 1 || t.Calls > maxTallied && len(calls) > 1 || i > 0 && t.At.Before(calls[i-1].At) {
			return errors.New("calls: each has a time, in order, and there is at least 1")
		}
		total += t.Calls
	}
	if total == 0 {
		return nil
	}
	switch w := w.(type) {
	case *fixedWindow:
		w.start, w.count = calls[0].At, total
	case *slidingWindow:
		for _, t := range slices.Backward(calls) {
			n := min(t.Calls, maxTallied-len(w.log))
			w.log = append(w.log, slices.Repeat([]time.Time{t.At}, n)...)
		}
		slices.Reverse(w.log)
	}
	return nil
}

func (st *state) readAgent(f agentFile, s *Server, owner *apiKey) error {
	a := &agent{number: f.Number, owner: owner, ownKey: f.OwnKey, Agent: Agent{
		ID: f.ID, Status: f.Status, CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt, Key: f.Key,
		SystemPrompt: f.SystemPrompt, CustomerRef: f.CustomerRef, Metadata: f.Metadata,
		SMS: (*SMS)(f.SMS), LLM: LLM(f.LLM),
	}}
	switch {
	case owner == nil:
		return errors.New("key: no key has this label")
	case f.ID == "" || f.Status == "" || f.Number < 1 || f.Dropped < 0:
		return errors.New("agent_id, status and number: one is missing")
	case st.agents[f.ID] != nil:
		return errors.New("agent_id: stands twice")
	case f.SMS != nil && f.SMS.Status == "":
		return errors.New("sms.status: is missing")
	case f.CreatedAt.IsZero() || f.UpdatedAt.IsZero():
		return errors.New("created_at and updated_at: one is missing")
	}
	if flaw := s.agentFlaw(a.Agent); flaw != "" {
		return errors.New(flaw)
	}
	a.Metadata = compacted(f.Metadata)
	a.exchanges.dropped = f.Dropped
	for i, e := range f.Exchanges {
		if flaw := fieldFlaw("text", spec.MessageText, e.Text); flaw != "" {
			return fmt.Errorf("exchanges[%d].%s", i, flaw)
		}
		if e.Time.IsZero() {
			return fmt.Errorf("exchanges[%d].time: is missing", i)
		}
		a.exchanges.add(Exchange(e), s.config.exchanges)
	}
	st.agents[a.ID], st.ordered = a, append(st.ordered, a)
	return nil
}
