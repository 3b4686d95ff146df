package fakeserver

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KeyInfo is what can be seen of an API key without its text.
type KeyInfo struct {
	Label     string // key_000001, as in Call.Key
	Plan      Plan
	Dashboard bool // issued through the dashboard (interface 5)
	Revoked   bool
	IssuedAt  time.Time // by the fake's clock; New and Reset issue the default key
	Address   string    // the IP address that it called from last; "" before the first call with an active plan
}

// Keys returns all API keys in the order of issue: first the default key, then
// those of IssueKey. Revoked ones are there too.
func (s *Server) Keys() []KeyInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Collect(maps.Values(s.world.keys))
	slices.SortFunc(keys, func(a, b *apiKey) int { return cmp.Compare(a.number, b.number) })
	infos := make([]KeyInfo, len(keys))
	for i, k := range keys {
		infos[i] = k.info()
	}
	return infos
}

func (k *apiKey) info() KeyInfo {
	return KeyInfo{
		Label: k.label, Plan: Plan(k.plan.Name), Dashboard: k.dashboard, Revoked: k.revoked,
		IssuedAt: k.issued, Address: addressText(k.from),
	}
}

func addressText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// KeyWithLabel returns the text of the API key with this label, and whether
// there is one: for a program that shows labels and must act on keys.
func (s *Server) KeyWithLabel(label string) (key string, ok bool) {
	digits, _ := strings.CutPrefix(label, "key_")
	n, err := strconv.Atoi(digits)
	if err != nil || numbered("key", n) != label {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 1 || n > len(s.world.keys) {
		return "", false
	}
	return s.config.keyText(n), true
}
