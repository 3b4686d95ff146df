package service

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// State is the memory of the service: accounts, agents and counted calls. It shares no memory
// that changes with another State. A State has no lock. The caller must hold a lock around each
// call, and while it uses a pointer that a method has returned.
type State struct {
	behavior        *Behavior                        // never changes
	endpoints       map[*spec.Endpoint]endpointRules // by behavior; never changes
	template        limit                            // the fields that all limits share; State.limit completes a copy
	maxima          [spec.LimitCount]int             // of calls, in the order of spec.Limits; 0 means the plan's
	exchanges       int                              // how many of the newest are kept of each conversation
	vault           *vault                           // nil until a provider key is stored
	keys            []*Key                           // in the order of issue
	byDigest        map[Digest]*Key
	agents          map[string]*Agent     // by identifier
	lastAgentNumber int                   // the number of the last agent
	ips             map[netip.Addr]*Usage // of client addresses
	BYOKDown        bool                  // the store of provider keys is not available
}

// New returns the state of a service without keys. maxima are in the order of
// spec.Limits, and 0 leaves the maximum to the plan of each key. exchanges is how many of
// the newest exchanges of each conversation are kept.
func New(behavior *Behavior, maxima [spec.LimitCount]int, exchanges int) *State {
	burst, bucket := Bucket(behavior.Windows)
	return &State{
		behavior: behavior, endpoints: endpointTable(behavior), maxima: maxima, exchanges: exchanges,
		template: limit{counting: behavior.Windows, bucket: bucket, burst: burst},
		byDigest: map[Digest]*Key{}, agents: map[string]*Agent{}, ips: map[netip.Addr]*Usage{},
	}
}

// Digest identifies an API key without its text. So the state holds no key, also in the
// file that WriteState writes.
type Digest [sha256.Size]byte

// DigestOf computes the digest of a key's text.
func DigestOf(key string) Digest { return sha256.Sum256([]byte(key)) }

// Key is an account: interface 2.4 and 5 scope everything by API key. Records and
// messages show its label. The text of the key is not stored.
type Key struct {
	Label     string    `json:"label"` // key_000001
	Plan      string    `json:"plan"`
	Dashboard bool      `json:"dashboard"`
	Revoked   bool      `json:"revoked"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	IssuedAt  time.Time `json:"issued_at"`
	Address   string    `json:"called_from"` // "" before the first call with an active plan
	Warm      bool      `json:"warm"`        // the next message has no cold start
	BYOK      *BYOK     `json:"byok,omitempty"`
	sealed    []byte    // the provider key of BYOK, encrypted; a state file does not have it
	Cleared   time.Time `json:"byok_cleared_at,omitzero"` // when BYOK was last cleared
	Usage     *Usage    `json:"counts"`
}

// Numbered returns prefix, an underscore, and n in at least six digits, such as
// agent_000001. The interface shows no form for the names of agents, keys and traces.
func Numbered(prefix string, n int) string {
	digits := strconv.Itoa(n)
	return prefix + "_" + "000000"[min(len(digits), 6):] + digits
}

// Issue makes a key, labelled by the order of issue. State knows only the digest of the
// key. A key is never removed, so a label always means the same key.
func (s *State) Issue(digest Digest, plan string, dashboard bool, now time.Time) {
	s.addKey(digest, &Key{
		Label: Numbered("key", len(s.keys)+1), Plan: plan, Dashboard: dashboard, IssuedAt: now, Usage: new(Usage),
	})
}

// addKey puts a key into the state, new or read from a file.
func (s *State) addKey(digest Digest, k *Key) {
	s.byDigest[digest] = k
	s.keys = append(s.keys, k)
}

// Key finds a key, even a revoked one; nil if the service did not issue it.
func (s *State) Key(digest Digest) *Key { return s.byDigest[digest] }

// Keys returns all keys in the order of issue.
func (s *State) Keys() []*Key { return s.keys }

// KeyLabeled finds the key with a label and returns its number, from 1. Both are zero
// if there is none. The number is in the label, so this costs the same for any number of
// keys.
func (s *State) KeyLabeled(label string) (k *Key, number int) {
	number, _ = strconv.Atoi(strings.TrimPrefix(label, "key_"))
	if number < 1 || number > len(s.keys) || s.keys[number-1].Label != label {
		return nil, 0
	}
	return s.keys[number-1], number
}

// BYOK is a stored BYOK configuration: interface 2.4, and the label, which no answer
// returns. A configuration never changes, because setting BYOK again replaces it. So its
// pointer may be used without the lock.
type BYOK struct {
	Provider    string    `json:"provider"`
	BaseURL     string    `json:"base_url,omitempty"` // "" when not given
	Model       string    `json:"model,omitempty"`    // "" when not given
	Label       string    `json:"label,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// StoreBYOK stores an encrypted provider key for an API key, with its configuration, to
// which it adds the fingerprint.
func (s *State) StoreBYOK(k *Key, providerKey string, c BYOK) {
	if s.vault == nil { // made late, since a vault costs as much as the rest of a fake
		s.vault = newVault()
	}
	c.Fingerprint = s.vault.fingerprint(providerKey)
	k.BYOK, k.sealed = &c, s.vault.seal(providerKey)
}

// Agent has the members of interface 2.2 and 2.3. It does not hold the provider key of
// its creation, which is stored for the API key, encrypted, or not stored at all.
type Agent struct {
	ID           string     `json:"agent_id"`
	Number       int        `json:"number"` // in the order of creation
	Status       string     `json:"status"` // active, as the interface shows no transition
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Owner        string     `json:"key"` // the label of the key that created it
	OwnKey       bool       `json:"own_key,omitempty"`
	SystemPrompt string     `json:"system_prompt,omitempty"`
	CustomerRef  string     `json:"customer_ref,omitempty"`
	Metadata     string     `json:"metadata,omitempty"` // compact JSON; "" when not given
	SMS          *SMS       `json:"sms,omitempty"`
	LLM          LLM        `json:"llm"`
	Exchanges    []Exchange `json:"exchanges"`
}

// LLM has the members of interface 2.3 without the provider key.
type LLM struct {
	Mode     string `json:"mode"`
	Tier     string `json:"tier"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`
	Label    string `json:"label,omitempty"`
}

// SMS is an agent's SMS channel: interface 2.2 and 3. It is replaced and never
// changed.
type SMS struct {
	Mode        string `json:"mode,omitempty"`
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"`
}

// Exchange is a message and the reply to it. It never changes.
type Exchange struct {
	Text      string    `json:"text"`
	UserRef   string    `json:"user_ref,omitempty"`
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings,omitempty"`
	Time      time.Time `json:"time"`
	TraceID   string    `json:"trace_id,omitempty"`
}

// Agent finds an agent, whichever key created it; nil if there is none.
func (s *State) Agent(id string) *Agent { return s.agents[id] }

// Agents returns all agents in the order of creation.
func (s *State) Agents() []*Agent {
	all := slices.AppendSeq([]*Agent{}, maps.Values(s.agents))
	slices.SortFunc(all, func(a, b *Agent) int { return a.Number - b.Number })
	return all
}

// RemoveAgent deletes an agent and its conversation. No later agent gets its number.
func (s *State) RemoveAgent(a *Agent) { delete(s.agents, a.ID) }

// AddAgent fills the empty fields of a, and stores it as an agent of key k. It sets the
// next identifier, the times, the owner, and the defaults of interface 2.3. An identifier
// that a has already must not be taken. The result is the stored agent itself.
func (s *State) AddAgent(k *Key, a Agent, now time.Time) *Agent {
	s.lastAgentNumber++
	for s.agents[Numbered("agent", s.lastAgentNumber)] != nil { // a test has used this identifier for an agent
		s.lastAgentNumber++
	}
	a.Number = s.lastAgentNumber
	a.ID = cmp.Or(a.ID, Numbered("agent", a.Number))
	a.Owner = k.Label
	a.Status = cmp.Or(a.Status, spec.Active)
	a.CreatedAt = cmp.Or(a.CreatedAt, now)
	a.UpdatedAt = cmp.Or(a.UpdatedAt, a.CreatedAt)
	a.LLM.Mode, a.LLM.Tier = cmp.Or(a.LLM.Mode, spec.ModeHosted), cmp.Or(a.LLM.Tier, spec.TierFast)
	if a.SMS != nil && a.SMS.Status == "" {
		phone := a.SMS.PhoneNumber
		s.openChannel(&a, a.SMS.Mode)
		a.SMS.PhoneNumber = cmp.Or(phone, a.SMS.PhoneNumber)
	}
	s.agents[a.ID] = &a
	return &a
}

// AddExchange adds an exchange, and drops the oldest if there are too many. Exchanges are
// in the order in which they were answered, which may differ from the order of their
// times.
func (s *State) AddExchange(a *Agent, e Exchange) {
	a.Exchanges = append(a.Exchanges, e)
	if over := len(a.Exchanges) - s.exchanges; over > 0 {
		a.Exchanges = a.Exchanges[over:]
	}
}

// openChannel gives an agent an SMS channel, at creation or later. The channel replaces
// an earlier one. Behavior says which status each mode leads to, since section 3 shows no
// transitions. An active channel gets one of the hundred phone numbers that are reserved
// for fiction.
func (s *State) openChannel(a *Agent, mode string) {
	a.SMS = &SMS{Mode: mode, Status: s.behavior.SMSStatus[mode]}
	if a.SMS.Status == spec.Active {
		a.SMS.PhoneNumber = fmt.Sprintf("+120255501%02d", a.Number%100)
	}
}

// limit returns limit i of spec.Limits for a key with a plan. Its maximum comes from WithLimit, or
// else from the plan (interface 8.2). ofKey and ofAddress are what the key and the address have
// spent. Exhaust closes even a limit per address for the key, whatever address the key calls from.
func (s *State) limit(i int, plan string, ofKey, ofAddress *Usage) limit {
	// A key on the free plan has limits too, which Server.Limits shows. Its calls never get
	// here, because authenticate refuses them.
	l := s.template
	l.row = &spec.Limits[i]
	l.max = cmp.Or(s.maxima[i], l.row.Max[spec.PlanIndex(plan)])
	l.usage, l.keyClosedUntil = ofKey, ofKey.Ledgers[i].ExhaustedUntil
	if l.row.PerIP {
		l.usage = ofAddress
	}
	l.Ledger = &l.usage.Ledgers[i]
	return l
}

// Exhaust closes limit i for a key for one window from now, unless it is closed already.
// It counts no calls, so Used does not change.
func (s *State) Exhaust(k *Key, i int, now time.Time) {
	if l := &k.Usage.Ledgers[i]; !l.ExhaustedUntil.After(now) {
		l.ExhaustedUntil = now.Add(spec.Limits[i].Window)
	}
	k.Usage.Last = later(k.Usage.Last, now)
}

// LimitStates describes the limits of a key, and the limits of an address if ip is valid,
// as a call would meet them now. It spends nothing, and changes nothing: a key that is
// used under two clocks is still reported at its next call.
func (s *State) LimitStates(k *Key, ip netip.Addr, now time.Time) (states []LimitState) {
	ofKey, ofAddress := usageIfSameClock(k.Usage, now, longestKeyWindow), usageIfSameClock(s.ips[ip], now, longestAddressWindow)
	for i, l := range spec.Limits {
		if !l.PerIP || ip.IsValid() {
			states = append(states, s.limit(i, k.Plan, ofKey, ofAddress).stateAt(now))
		}
	}
	return states
}

// Saved is a state as a file holds it. It has no digests and no provider keys, because a
// file must not give access to an account.
type Saved struct {
	LastAgentNumber int            `json:"agents"` // the number of the last agent
	BYOKDown        bool           `json:"byok_unavailable"`
	Keys            []*Key         `json:"keys"`
	Addresses       []SavedAddress `json:"addresses"`
	Agents          []*Agent       `json:"agent_list"`
}

// SavedAddress is a client address and what was counted for it.
type SavedAddress struct {
	Address netip.Addr `json:"address"`
	Usage   *Usage     `json:"counts"`
}

// Save returns the state as a file holds it. The result shares the memory of the state,
// so it is valid until the next call.
func (s *State) Save() Saved {
	saved := Saved{LastAgentNumber: s.lastAgentNumber, BYOKDown: s.BYOKDown, Keys: s.keys, Addresses: []SavedAddress{}, Agents: s.Agents()}
	for _, ip := range slices.SortedFunc(maps.Keys(s.ips), netip.Addr.Compare) {
		saved.Addresses = append(saved.Addresses, SavedAddress{ip, s.ips[ip]})
	}
	return saved
}

// Load makes a new State from saved, with the Behavior and the bounds of s. It does not
// change s. digest returns the digest of the n-th key, from 1. Limits start empty if they
// were used under another clock than the clock of now.
func (s *State) Load(saved Saved, now time.Time, digest func(n int) Digest) *State {
	c := New(s.behavior, s.maxima, s.exchanges)
	// The new state takes over the pointers of saved, which nothing else uses.
	c.lastAgentNumber, c.BYOKDown = saved.LastAgentNumber, saved.BYOKDown
	for i, k := range saved.Keys {
		k.Usage = usageIfSameClock(k.Usage, now, longestKeyWindow)
		c.addKey(digest(i+1), k)
	}
	for _, a := range saved.Addresses {
		c.ips[a.Address] = usageIfSameClock(a.Usage, now, longestAddressWindow)
	}
	for _, a := range saved.Agents {
		a.Exchanges = a.Exchanges[max(0, len(a.Exchanges)-s.exchanges):] // the fake that wrote them may have kept more
		c.agents[a.ID] = a
	}
	return c
}

// vault encrypts provider keys, because the service stores them encrypted and never
// returns them (interface 2.4). Nothing decrypts a provider key, since the fake calls no
// provider. The vault's key is random and only in memory.
type vault struct {
	aead   cipher.AEAD
	macKey []byte
}

// newVault makes a vault with a new key for AES-256-GCM and another for fingerprints.
func newVault() *vault {
	secret := make([]byte, 64)
	_, _ = rand.Read(secret)                       // never fails; it would end the program
	block, _ := aes.NewCipher(secret[:32])         // AES-256; fails only for another length of the key
	aead, _ := cipher.NewGCMWithRandomNonce(block) // never fails for AES
	return &vault{aead: aead, macKey: secret[32:]}
}

// seal returns a random nonce, followed by the encrypted plaintext.
func (v *vault) seal(plaintext string) []byte { return v.aead.Seal(nil, nil, []byte(plaintext), nil) }

// fingerprintBytes gives a fingerprint 16 hexadecimal digits: enough to tell
// keys apart, too few to rebuild one.
const fingerprintBytes = 8

// fingerprint returns a keyed hash, so that nobody outside can confirm a guessed key. The
// same provider key has the same fingerprint within one State (interface 2.4: for
// debugging).
func (v *vault) fingerprint(plaintext string) string {
	mac := hmac.New(sha256.New, v.macKey)
	mac.Write([]byte(plaintext))
	return hex.EncodeToString(mac.Sum(nil)[:fingerprintBytes])
}
