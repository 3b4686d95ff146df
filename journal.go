package agentmessaging

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// journal is what this process has sent, oldest first: what a coordinator has
// to hear that was away or has lost its state.
type journal struct {
	keep time.Duration // the longest window
	sent []sent
}

type sent struct {
	id     uint64
	at     time.Duration
	spends quota.Set
	heard  bool // by the coordinator
}

func longestWindow(limits []quota.Limit) time.Duration {
	var longest time.Duration
	for _, l := range limits {
		longest = max(longest, l.Window)
	}
	return longest
}

func (j *journal) add(now time.Duration, step quota.Step, heard bool) {
	j.trim(now)
	j.sent = append(j.sent, sent{id: step.ID, at: now, spends: step.Spends, heard: heard})
}

// trim forgets what is in no window any more.
func (j *journal) trim(now time.Duration) {
	old := 0
	for old < len(j.sent) && j.sent[old].at < now-j.keep {
		old++
	}
	j.sent = j.sent[old:]
}

// all are the grants of the journal.
func (j *journal) all(now time.Duration) []quota.Grant {
	return j.grants(now, func(sent) bool { return true })
}

// unheard are those that the coordinator has not heard of.
func (j *journal) unheard(now time.Duration) []quota.Grant {
	return j.grants(now, func(s sent) bool { return !s.heard })
}

func (j *journal) grants(now time.Duration, wanted func(sent) bool) []quota.Grant {
	j.trim(now)
	var grants []quota.Grant
	for _, s := range j.sent {
		if wanted(s) {
			grants = append(grants, quota.Grant{ID: s.id, Age: now - s.at, Spends: s.spends})
		}
	}
	return grants
}

// mark notes that the coordinator has heard of the grants.
func (j *journal) mark(grants []quota.Grant) {
	if len(grants) == 0 {
		return
	}
	heard := make(map[uint64]bool, len(grants))
	for _, g := range grants {
		heard[g.ID] = true
	}
	for i, s := range j.sent {
		j.sent[i].heard = s.heard || heard[s.id]
	}
}

// unmark notes that it has forgotten them.
func (j *journal) unmark() {
	for i := range j.sent {
		j.sent[i].heard = false
	}
}

// index looks from the end, where those are that are asked for; -1 is none.
func (j *journal) index(id uint64) int {
	for i := len(j.sent) - 1; i >= 0; i-- {
		if j.sent[i].id == id {
			return i
		}
	}
	return -1
}

func (j *journal) has(id uint64) bool { return j.index(id) >= 0 }

func (j *journal) remove(id uint64) {
	if i := j.index(id); i >= 0 {
		j.sent = slices.Delete(j.sent, i, i+1)
	}
}
