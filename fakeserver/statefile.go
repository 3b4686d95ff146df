package fakeserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// The start of a state file. A change that an older fake would misread needs
// another version.
const (
	stateFormat  = "agentmessaging-fake-state"
	stateVersion = 1
)

// ReadState brings the service to a state that WriteState wrote, as Restore
// does: scripts, injected faults and recorded calls stay, and a call that is
// under way ends on the state that it began on. The clock moves at least as far
// as it had been advanced; it never goes back. API keys get the texts that this
// fake makes for their labels, so another WithKey means other texts.
//
// ReadState refuses anything that is not such a file, is damaged, or breaks a
// rule of the service. The error says where, and the state is unchanged.
func (s *Server) ReadState(r io.Reader) error {
	f, err := decodeState(r)
	if err != nil {
		return fmt.Errorf("fakeserver: ReadState: %w", err)
	}
	if err := f.check(&s.config); err != nil {
		return fmt.Errorf("fakeserver: ReadState: the state is damaged: %w", err)
	}
	fresh := f.state(&s.config)
	s.locked(func(w *world) {
		w.state = fresh
		w.traces = max(w.traces, f.Traces)
	})
	s.move(func(time.Duration) time.Duration { return f.Advanced }) // never back
	return nil
}

func decodeState(r io.Reader) (*stateFile, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	f := new(stateFile)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(f); { // it reads on behind an unknown member
	case !json.Valid(raw):
		return nil, errors.New("not one JSON document, so no state of a fake, or not all of one")
	case f.Format != stateFormat:
		return nil, errors.New("not the state of a fake: its format is not " + stateFormat)
	case f.Version != stateVersion:
		return nil, fmt.Errorf("the state has version %d; this fake reads version %d", f.Version, stateVersion)
	case err != nil:
		return nil, fmt.Errorf("the state is damaged: %w", err)
	}
	return f, nil
}

// check says what is damaged in a file: anything that the rest of the fake
// relies on.
func (f *stateFile) check(c *config) error {
	if f.Advanced < 0 || f.Traces < 0 || f.Numbers < 0 || len(f.Keys) == 0 {
		return errors.New("advanced_ns, traces and agents are at least 0, and there is a key")
	}
	labels, addresses, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, k := range f.Keys {
		if err := cmp.Or(k.check(numbered("key", i+1)), once(labels, "label", k.Label)); err != nil {
			return fmt.Errorf("keys[%d].%w", i, err)
		}
	}
	for i, a := range f.Addresses {
		if err := cmp.Or(a.check(true), once(addresses, "address", a.Address.String())); err != nil {
			return fmt.Errorf("addresses[%d].%w", i, err)
		}
	}
	for i, a := range f.Agents {
		if err := cmp.Or(a.check(c, labels), once(ids, "agent_id", a.ID)); err != nil {
			return fmt.Errorf("agent_list[%d].%w", i, err)
		}
	}
	return nil
}

// once notes a value that may be there once.
func once(seen map[string]bool, member, value string) error {
	if seen[value] {
		return errors.New(member + ": is there twice")
	}
	seen[value] = true
	return nil
}

func (f *keyFile) check(label string) error {
	_, known := f.Plan.find()
	_, noAddress := netip.ParseAddr(f.Address)
	switch {
	case f.Label != label:
		return errors.New("label: is not " + label)
	case !known || f.Plan == "":
		return errors.New("plan: is none of " + planNames)
	case f.IssuedAt.IsZero():
		return errors.New("issued_at: is missing")
	case f.Address != "" && noAddress != nil:
		return errors.New("called_from: is no IP address")
	case f.BYOK != nil && !spec.BYOKProvider.Allows(f.BYOK.Provider):
		return errors.New("byok.provider: is none of " + spec.BYOKProvider.Values())
	case f.BYOK != nil && f.BYOK.Fingerprint == "":
		return errors.New("byok.fingerprint: is missing")
	case f.BYOK != nil && f.BYOK.UpdatedAt.IsZero():
		return errors.New("byok.updated_at: is missing")
	}
	return f.countsFile.check(false)
}

// maxTallied bounds the calls that a file claims for one time, so that sums of
// them hold. It fits an int of 32 bits.
const maxTallied = 1 << 30

func (f *countsFile) check(perIP bool) error {
	seen := [spec.LimitCount]bool{}
	for _, w := range f.Windows {
		i := limitIndex(w.Limit)
		switch {
		case i < 0 || seen[i]:
			return errors.New("windows: a limit_key is unknown or is there twice")
		case spec.Limits[i].PerIP != perIP && len(w.Calls) > 0, perIP && !w.Shut.IsZero():
			return fmt.Errorf("windows: %s does not count here", w.Limit)
		case !ordered(w.Calls):
			return fmt.Errorf("windows: %s: calls: each has a time, in order, and there is at least 1", w.Limit)
		case len(w.Calls) > 0 && f.Last.Before(w.Calls[len(w.Calls)-1].At):
			return errors.New("last: is missing, or before a call that counts")
		}
		seen[i] = true
	}
	return nil
}

func ordered(calls []tally) bool {
	for i, t := range calls {
		if t.At.IsZero() || t.Calls < 1 || t.Calls > maxTallied || i > 0 && t.At.Before(calls[i-1].At) {
			return false
		}
	}
	return true
}

func (f *agentFile) check(c *config, labels map[string]bool) error {
	switch {
	case !labels[f.Key]:
		return errors.New("key: no key has this label")
	case f.ID == "" || f.Status == "" || f.Number < 1 || f.Dropped < 0:
		return errors.New("agent_id, status and number: one is missing")
	case f.SMS != nil && f.SMS.Status == "":
		return errors.New("sms.status: is missing")
	case f.CreatedAt.IsZero() || f.UpdatedAt.IsZero():
		return errors.New("created_at and updated_at: one is missing")
	}
	if flaw := c.agentFlaw(f.Agent); flaw != "" {
		return errors.New(flaw)
	}
	for i, e := range f.Exchanges {
		if flaw := fieldFlaw("text", spec.MessageText, e.Text); flaw != "" {
			return fmt.Errorf("exchanges[%d].%s", i, flaw)
		}
		if e.Time.IsZero() {
			return fmt.Errorf("exchanges[%d].time: is missing", i)
		}
	}
	return nil
}
