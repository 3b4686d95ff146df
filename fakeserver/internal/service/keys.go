package service

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Digest identifies an API key without its text, so that the state shows no key.
type Digest [sha256.Size]byte

// DigestOf computes the digest of a key's text.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

// Key is an account: interface 2.4 and 5 scope everything by API key.
type Key struct {
	Label     string    `json:"label"` // key_000001
	Plan      string    `json:"plan"`
	Dashboard bool      `json:"dashboard"`
	Revoked   bool      `json:"revoked"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	IssuedAt  time.Time `json:"issued_at"`
	Address   string    `json:"called_from"` // "" before the first call with an active plan
	Warm      bool      `json:"warm"`        // no cold start any more
	BYOK      *BYOK     `json:"byok,omitempty"`
	Cleared   time.Time `json:"byok_cleared_at,omitzero"` // when BYOK was last cleared
	Counts    *Counts   `json:"counts"`
}

// Numbered is kind, an underscore, and n in at least six digits.
func Numbered(kind string, n int) string {
	digits := strconv.Itoa(n)
	return kind + "_" + "000000"[min(len(digits), 6):] + digits
}

// Issue makes a key. Only its digest is known here.
func (s *State) Issue(digest Digest, plan string, dashboard bool, now time.Time) *Key {
	k := &Key{
		Label: Numbered("key", len(s.keys)+1), Plan: plan, Dashboard: dashboard, IssuedAt: now, Counts: new(Counts),
	}
	s.addKey(digest, k)
	return k
}

func (s *State) addKey(digest Digest, k *Key) {
	s.byDigest[digest] = k
	s.keys = append(s.keys, k)
}

// Key finds a key, also one that is revoked; nil if the service issued none.
func (s *State) Key(digest Digest) *Key { return s.byDigest[digest] }

// Keys are all keys in the order of issue.
func (s *State) Keys() []*Key { return s.keys }

// SetRevoked makes a key invalid, or valid again with all that it had.
func (k *Key) SetRevoked(revoked bool, now time.Time) { k.Revoked, k.RevokedAt = revoked, now }

// authenticate is interface 5: 401 and 402. A path or method that no endpoint has
// is refused with them.
func (c *call) authenticate() *Refusal {
	k := c.state.byDigest[c.req.Token]
	valid := k != nil && !k.Revoked
	switch {
	case c.req.Unrouted != nil && (valid || c.state.by.PathBeforeKey):
		return c.req.Unrouted
	case !c.req.HasToken:
		return Refuse(NoToken) // 5.4
	case k == nil:
		return Refuse(UnknownKey) // 5.4
	case !valid:
		r := Refuse(RevokedKey)
		r.Key, r.Since = k.Label, k.RevokedAt
		return r
	}
	if plan, _ := spec.PlanNamed(k.Plan); !plan.Active {
		r := Refuse(PaymentRequired) // 5.4
		r.Key = k.Label
		return r
	}
	if c.key = k; c.req.IP.IsValid() {
		k.Address = c.req.IP.String()
	}
	return nil
}
