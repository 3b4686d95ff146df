package fakeserver

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// The state as WriteState writes it. These structs are apart from those of the
// fake, so that the fake can change without the file.

type stateFile struct {
	Format        string        `json:"format"`
	Version       int           `json:"version"`
	Advanced      time.Duration `json:"advanced_ns"`
	Traces        int           `json:"traces"` // identifiers given so far
	Numbers       int           `json:"agents"` // the number of the last agent
	BYOKAvailable bool          `json:"byok_available"`
	Keys          []keyFile     `json:"keys"` // in the order of issue
	Addresses     []addressFile `json:"addresses"`
	Agents        []agentFile   `json:"agent_list"`
}

// keyFile has the label and never the text.
type keyFile struct {
	Label     string     `json:"label"`
	Plan      string     `json:"plan"`
	Dashboard bool       `json:"dashboard"`
	Revoked   bool       `json:"revoked"`
	Warm      bool       `json:"warm"`
	IssuedAt  time.Time  `json:"issued_at"`
	Address   netip.Addr `json:"called_from"`
	BYOK      *byokFile  `json:"byok,omitempty"`
	countsFile
}

type byokFile struct {
	Provider    string    `json:"provider"`
	BaseURL     *string   `json:"base_url,omitempty"`
	Model       *string   `json:"model,omitempty"`
	Label       string    `json:"label,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
}

type addressFile struct {
	Address netip.Addr `json:"address"`
	countsFile
}

type countsFile struct {
	Windows []windowFile `json:"windows,omitempty"`
	Last    time.Time    `json:"last"`
}

// windowFile is one window that counts calls or is closed. Fixed and sliding
// windows have the same form.
type windowFile struct {
	Limit string    `json:"limit_key"`
	Calls []tally   `json:"calls,omitempty"`
	Shut  time.Time `json:"shut_until,omitzero"` // by Exhaust
}

// tally is a number of calls at one time.
type tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

type agentFile struct {
	ID           string          `json:"agent_id"`
	Number       int             `json:"number"`
	Status       string          `json:"status"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	Key          string          `json:"key"`
	SystemPrompt string          `json:"system_prompt,omitempty"`
	CustomerRef  string          `json:"customer_ref,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	SMS          *smsFile        `json:"sms,omitempty"`
	LLM          llmFile         `json:"llm"`
	Exchanges    []exchangeFile  `json:"exchanges"`
	Dropped      int             `json:"exchanges_dropped"`
	OwnKey       bool            `json:"own_key,omitempty"` // of its creation, not stored for others
}

type smsFile struct {
	Mode        string `json:"mode,omitempty"`
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"`
}

type llmFile struct {
	Mode     string `json:"mode"`
	Tier     string `json:"tier"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`
	Label    string `json:"label,omitempty"`
}

type exchangeFile struct {
	Text      string    `json:"text"`
	UserRef   string    `json:"user_ref,omitempty"`
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings,omitempty"`
	Time      time.Time `json:"time"`
	TraceID   string    `json:"trace_id,omitempty"`
}

// wire describes the state for a file. It shares memory with st, which is a
// copy already.
func (st *state) wire() stateFile {
	f := stateFile{Numbers: st.numbers, BYOKAvailable: !st.byokUnavailable}
	for _, k := range st.keysInOrder() {
		f.Keys = append(f.Keys, k.wire())
	}
	for _, ip := range slices.SortedFunc(maps.Keys(st.ips), netip.Addr.Compare) {
		f.Addresses = append(f.Addresses, addressFile{ip, st.ips[ip].wire()})
	}
	for _, a := range st.ordered {
		f.Agents = append(f.Agents, a.wire())
	}
	return f
}

func (k *apiKey) wire() keyFile {
	f := keyFile{
		Label: k.label, Plan: k.plan.Name, Dashboard: k.dashboard, Revoked: k.revoked, Warm: k.warm,
		IssuedAt: k.issued, Address: k.from, countsFile: k.counts.wire(),
	}
	if c := k.byok; c != nil {
		f.BYOK = &byokFile{c.provider, c.baseURL, c.model, c.label, c.fingerprint, c.updatedAt}
	}
	return f
}

func (c *counts) wire() countsFile {
	f := countsFile{Last: c.last}
	for i, l := range spec.Limits {
		w := windowFile{Limit: string(l.Key), Calls: tallies(c.windows[i])}
		if c.shut != nil {
			w.Shut = c.shut[i]
		}
		if w.Calls != nil || !w.Shut.IsZero() {
			f.Windows = append(f.Windows, w)
		}
	}
	return f
}

// tallies lists the calls that a window counts.
func tallies(w window) (all []tally) {
	switch w := w.(type) {
	case *fixedWindow:
		if w.count > 0 {
			all = []tally{{w.start, w.count}}
		}
	case *slidingWindow:
		for _, at := range w.log[max(0, len(w.log)-maxTallied):] {
			if last := len(all) - 1; last >= 0 && all[last].At.Equal(at) {
				all[last].Calls++
			} else {
				all = append(all, tally{at, 1})
			}
		}
	}
	return all
}

func (a *agent) wire() agentFile {
	f := agentFile{
		ID: a.ID, Number: a.number, Status: a.Status, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Key: a.Key,
		SystemPrompt: a.SystemPrompt, CustomerRef: a.CustomerRef, Metadata: a.Metadata, LLM: llmFile(a.LLM),
		Exchanges: []exchangeFile{}, Dropped: a.exchanges.dropped, OwnKey: a.ownKey,
	}
	if a.SMS != nil {
		f.SMS = (*smsFile)(a.SMS)
	}
	for _, e := range a.exchanges.all() {
		f.Exchanges = append(f.Exchanges, exchangeFile(e))
	}
	return f
}
