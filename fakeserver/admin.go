package fakeserver

import (
	"fmt"
	"sort"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
)

// Package fakeadmin cannot import this package, because this package imports fakeadmin.
// So this package gives fakeadmin the function that opens a fake.
func init() { fakeadmin.Open = func(fake any) any { return admin{fake.(*Server)} } }

// admin is a fakeadmin.Admin, which documents the methods. It is not exported, because
// tests do not need it. agentmessaging-fake reaches it through package fakeadmin.
type admin struct{ s *Server }

var _ fakeadmin.Admin[Call] = admin{}

func (a admin) DroppedCalls() int { return a.s.droppedCalls() }

func (a admin) LastSeq() int {
	defer a.s.lock().Unlock()
	return a.s.answered
}

// CallsAfter finds the first call by binary search, since the log is in the order of Seq.
func (a admin) CallsAfter(seq, n int) []Call {
	defer a.s.lock().Unlock()
	kept := a.s.generation.log.kept
	later := kept[sort.Search(len(kept), func(i int) bool { return kept[i].record.Seq > seq }):]
	return snapshots(later[:min(n, len(later))])
}

func (a admin) KeepExchanges(n int) {
	a.s.config.exchanges = n
	a.s.Reset()
}

func (a admin) ExchangeCount(agentID string) int {
	defer a.s.lock().Unlock()
	if agent := a.s.generation.service.Agent(agentID); agent != nil {
		return len(agent.Exchanges)
	}
	return 0
}

func (a admin) Keys() (keys []fakeadmin.Key) {
	defer a.s.lock().Unlock()
	for _, k := range a.s.generation.service.Keys() {
		keys = append(keys, shownKey(k, len(keys)+1))
	}
	return keys
}

func shownKey(k *service.Key, number int) fakeadmin.Key {
	return fakeadmin.Key{
		Label: k.Label, Plan: k.Plan, Dashboard: k.Dashboard, Revoked: k.Revoked, IssuedAt: k.IssuedAt, Address: k.Address,
		Default: number == 1,
	}
}

// KeyLabeled computes the key's text from the key's number, since no text is stored.
func (a admin) KeyLabeled(label string) (key fakeadmin.Key, text string, ok bool) {
	defer a.s.lock().Unlock()
	if k, number := a.s.generation.service.KeyLabeled(label); k != nil {
		return shownKey(k, number), a.s.config.keyText(number), true
	}
	return fakeadmin.Key{}, "", false
}

// Restart sets the clock back by the time that Advance and Sleep have added, and then
// resets the fake, so that the new state begins at the right time.
func (a admin) Restart() { a.rewindClock(); a.s.Reset() }

// rewindClock holds the lock, which guards writes of offset.
func (a admin) rewindClock() {
	defer a.s.lock().Unlock()
	a.s.offset.Store(0)
}

// WhyUnused works on a copy of the rule, since other calls may match the rule meanwhile.
func (a admin) WhyUnused(made any) string {
	r := made.(interface{ snapshot() rule }).snapshot()
	return fmt.Sprintf("calls that it matched: %d; %s", r.matched, r.nearMiss(&a.s.config, a.s.kept()))
}

func (a admin) ForgetCalls() {
	defer a.s.lock().Unlock()
	a.s.generation.log.kept, a.s.generation.log.total = nil, 0
}

func (a admin) Advanced() time.Duration { return time.Duration(a.s.offset.Load()) }
