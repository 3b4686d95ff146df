package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// Watcher is an http.RoundTripper that learns from the answers that pass through
// it. [Watch] makes one. It is safe for concurrent use.
type Watcher struct {
	transport http.RoundTripper
	seed      maphash.Seed

	mu     sync.Mutex // guards what follows
	today  string     // the day of the last answer
	o      Observation
	passed map[string]int // answers by endpoint
	keys   map[uint64]*watchedKey
	agents map[uint64]watchedAgent
}

// watchedKey is the part of an API key's state that its calls show.
type watchedKey struct {
	byok  byokState
	opens map[string]time.Time // the time at which each endpoint opens again, by Retry-After
}

// watchedAgent is an agent whose creation the Watcher saw.
type watchedAgent struct {
	owner uint64
	byok  bool // the agent uses the provider key that its owner has stored
}

// byokState is the state of a key's BYOK configuration, as far as its calls show it.
type byokState int

const (
	byokUnknown byokState = iota
	byokNone
	byokSet
	byokUnclear // none was set before a creation sent a provider key, which the service may have stored
)

// Bounds on the memory of a Watcher.
const (
	maxRemembered = 10_000   // keys, agents
	maxSights     = 300      // in Observation.Traffic
	maxRead       = 64 << 10 // bytes of a body
)

// Watch returns a transport, also for production, that passes calls on to another
// transport and learns from the answers how the service decides. A nil transport
// means http.DefaultTransport.
//
//	watcher := observe.Watch(http.DefaultTransport)
//	client, err := agentmessaging.NewClient(baseURL, key,
//		agentmessaging.WithHTTPClient(&http.Client{Transport: watcher}))
//
// Save its observation now and then:
//
//	err = watcher.Observation().WriteFile("observed.json")
//
// It can answer 11 of the questions that Run asks, depending on the calls that
// pass: status, error_names, reason, times, metadata_cap (only a lower bound, the
// largest metadata that was accepted), sms_status, agent_of_another_key,
// clear_nothing, creation_stores_key, byok_cleared and retry_after. It also counts
// statuses, values of error and limit_key, header names, members that the document does
// not have, and answers that it could not read because of a bug of this package.
//
// It never fails or changes a call. Its observations hold no text, no key, no id and no
// hash of them. If an answer repeats a key or a part of one, only the answer's status is
// counted. The same holds for the answer to a creation or a PUT whose request was not read
// whole. In memory, it keeps keys and agents as hashes with a random seed of the process.
// It decodes the bodies of all errors, but not of all successes. Of messages, read agents
// and the status it decodes the first 32 and then every 256th.
func Watch(transport http.RoundTripper) *Watcher {
	w := &Watcher{
		transport: cmp.Or(transport, http.DefaultTransport), seed: maphash.MakeSeed(),
		passed: map[string]int{}, keys: map[uint64]*watchedKey{}, agents: map[uint64]watchedAgent{},
	}
	w.o.init()
	return w
}

// Observation returns a copy of the findings so far. It may be called at any time.
func (w *Watcher) Observation() *Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	var o Observation
	text, _ := json.Marshal(w.o) // neither this nor reading it back fails: observe writes the same to files
	_ = json.Unmarshal(text, &o)
	return &o
}

// CloseIdleConnections closes the idle connections of the transport, if it can.
// http.Client.CloseIdleConnections calls it.
func (w *Watcher) CloseIdleConnections() {
	if closer, ok := w.transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// RoundTrip sends the call with the transport. The Watcher learns from the answer
// when its body has been read or closed.
func (w *Watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	c, req := w.noteRequest(req)
	res, err := w.transport.RoundTrip(req)
	if c != nil && err == nil && res != nil && res.Body != nil {
		w.readAnswer(c, res)
	}
	return res, err
}

// noteRequest records a request, and returns the request to send in its place. It does
// not record a call that is not of an endpoint.
func (w *Watcher) noteRequest(req *http.Request) (*watchedCall, *http.Request) {
	call, agent, ok := rawcall.Find(req.Method, cmp.Or(req.URL, new(url.URL)).EscapedPath()) // without a URL, the transport returns an error
	if !ok {
		return nil, req
	}
	authorization := req.Header.Get("Authorization")
	tokens := slices.DeleteFunc(strings.Fields(authorization), func(word string) bool { return strings.EqualFold(word, "Bearer") })
	c := &watchedCall{Exchange: rawcall.Exchange{Call: call}, key: w.hash(authorization), agent: w.hash(agent), tokens: tokens}
	if call.Name != rawcall.SendMessage.Name { // the text of a message answers no question
		req = c.watchBody(req)
	}
	return c, req
}

// readAnswer learns from an answer. If it needs the body, it replaces the body by a tap,
// which copies the bytes that the caller reads. It does not replace the body of a 101,
// because callers also write to that. Header and body are kept only if they repeat no
// secret of the call.
func (w *Watcher) readAnswer(c *watchedCall, res *http.Response) {
	c.Status, c.at = res.StatusCode, time.Now()
	if _, writes := res.Body.(io.Writer); writes || !w.samples(c) {
		w.learn(c)
		return
	}
	res.Body = &tap{ReadCloser: res.Body, length: res.ContentLength, done: func(body []byte) {
		if sent := c.sent.Load(); sent != nil {
			c.Call.Body = string(*sent)
		}
		x := c.Answered(body)
		x.Header = res.Header
		if secrets, known := c.secrets(); known && !rawcall.ShowsPart(x.Shown(), secrets...) {
			c.Exchange = x
		}
		w.learn(c)
	}}
}

// secrets returns the API key and the provider key of a call. They are not known if the
// call may have sent a provider key in a body that was not copied, or cannot be read.
func (c *watchedCall) secrets() (all []string, known bool) {
	var body struct { // of PUT /v1/byok, or of a creation
		Key string `json:"api_key"`
		LLM struct {
			Key string `json:"api_key"`
		}
	}
	sent := c.sent.Load()
	known = c.Name != rawcall.CreateAgent.Name && c.Name != rawcall.SetBYOK.Name || sent != nil && json.Unmarshal(*sent, &body) == nil
	return append(c.tokens, body.Key, body.LLM.Key), known
}

// hash identifies a key or an agent in memory.
func (w *Watcher) hash(text string) uint64 { return maphash.String(w.seed, text) }

// samples decides whether the body of an answer is decoded. Decoding every body would
// cost a busy program more than the Watcher would learn.
func (w *Watcher) samples(c *watchedCall) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.passed[c.Name]
	w.passed[c.Name]++
	often := c.Name == rawcall.SendMessage.Name || c.Name == rawcall.ReadAgent.Name || c.Name == rawcall.GetStatus.Name
	return c.Status != http.StatusOK || !often || n < 32 || n%256 == 0
}

// watchBody returns a request whose body is copied while the transport reads it. Reading
// it here would be too early: a client could no longer tell a failed dial from a request
// that was sent. A long body is not copied.
func (c *watchedCall) watchBody(req *http.Request) *http.Request {
	if req.Body == nil || req.ContentLength <= 0 || req.ContentLength > maxRead {
		return req
	}
	watched := req.WithContext(req.Context())
	watched.Body = &tap{ReadCloser: req.Body, length: req.ContentLength, done: func(body []byte) { c.sent.Store(&body) }}
	return watched
}

// tap copies a body while it is read. It hands the copy over once, when the body was read
// whole or closed. If the body was not read whole, or is too long, the copy is nil.
type tap struct {
	io.ReadCloser
	length int64      // length of the whole body; -1: not known
	mu     sync.Mutex // guards text: over HTTP/2, a transport may close a body while it reads it
	text   bytes.Buffer
	once   sync.Once
	done   func(body []byte)
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.text.Len() < maxRead {
		t.text.Write(p[:n])
	}
	if err == io.EOF || int64(t.text.Len()) == t.length { // a transport may stop reading before io.EOF
		t.end(true)
	}
	return n, err
}

func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(int64(t.text.Len()) == t.length)
	return err
}

// end hands the copy over, if that has not happened yet.
func (t *tap) end(whole bool) {
	t.once.Do(func() {
		if whole && t.text.Len() < maxRead {
			t.done(t.text.Bytes())
		} else {
			t.done(nil)
		}
	})
}

// watchedCall is a call that passes through the Watcher. Its Call.Body is the request
// body, for endpoints whose answers mean nothing without it.
type watchedCall struct {
	rawcall.Exchange
	sent       atomic.Pointer[[]byte] // the transport may read the body on another goroutine
	key, agent uint64
	tokens     []string // the words of the credential, without its scheme
	at         time.Time
}

// learn learns from an answer. It recovers from every panic, because neither a strange
// answer nor a bug of this package may fail the call. Traffic shows that it happened.
func (w *Watcher) learn(c *watchedCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.today = today(c.at)
	defer func() {
		if recover() != nil {
			w.countSight("an answer that the Watcher could not read")
		}
	}()
	if len(w.keys) > maxRemembered || len(w.agents) > maxRemembered {
		w.keys, w.agents = map[uint64]*watchedKey{}, map[uint64]watchedAgent{}
	}
	key := w.keys[c.key]
	if key == nil {
		key = &watchedKey{opens: map[string]time.Time{}}
		w.keys[c.key] = key
	}
	answer := c.Method + " " + c.Path + " " + strconv.Itoa(c.Status)
	w.countSight(answer)
	if c.Status != http.StatusOK && !slices.Contains(c.Errors, c.Status) {
		w.countSight("not documented: " + answer)
	}
	if c.Body != nil && undocumented(c.Exchange) != "" {
		w.countSight("not documented: a body of " + answer)
		return // a proxy may have answered
	}
	if c.Body != nil {
		w.countMembers(c, " of "+answer)
		w.learnMetadata(c)
		for _, q := range questions {
			if q.read != nil {
				w.keepAnswer(c, q.id, q.read(c.Exchange))
			}
		}
	}
	w.learnStates(c, key)
	w.learnWaits(c, key)
}

// countSight counts a sight that answers no question.
func (w *Watcher) countSight(what string) {
	s, known := w.o.Traffic[what]
	if known || len(w.o.Traffic) < maxSights {
		w.o.Traffic[what] = Sight{s.Count + 1, w.today}
	}
}

// keepAnswer keeps an answer, or adds members to one. A different answer replaces the
// previous one.
func (w *Watcher) keepAnswer(c *watchedCall, id string, answer any) {
	if answer == nil {
		return
	}
	f := w.o.Decisions[id]
	value := rawcall.JSONOf(merge(membersOf(f.Answer), answer))
	if f.Answer != nil && !sameJSON(f.Answer, value) {
		f.Count = 0
	}
	w.o.Decisions[id] = Finding{Answer: value, Evidence: evidenceOf(c.Exchange, ""), Seen: w.today, Count: f.Count + 1}
}

// countMembers counts undocumented members, the names of headers, and the values of
// errors, limits and statuses.
func (w *Watcher) countMembers(c *watchedCall, of string) {
	object, _ := c.Value.(map[string]any)
	shape, _ := c.Documented()
	for name := range object {
		if identifier.MatchString(name) && !strings.Contains(", "+string(shape), ", "+name+" ") {
			w.countSight("member " + name + of)
		}
	}
	for name := range c.Header {
		if identifier.MatchString(name) {
			w.countSight("header " + name)
		}
	}
	for _, path := range []string{"error", "limit_key", "status", "sms.status"} {
		if value := labelAt(c.Exchange, path); value != nil {
			w.countSight(fmt.Sprint(path, " ", value, of))
		}
	}
}

// learnMetadata learns the size of accepted metadata. It skips metadata with characters
// that JSON can write in more than one way, because their length is not known.
func (w *Watcher) learnMetadata(c *watchedCall) {
	var sent struct{ Metadata json.RawMessage }
	var compacted bytes.Buffer
	switch {
	case c.Name != rawcall.CreateAgent.Name, c.Status != http.StatusOK, json.Unmarshal([]byte(c.Call.Body), &sent) != nil,
		json.Compact(&compacted, sent.Metadata) != nil, bytes.ContainsFunc(compacted.Bytes(), func(r rune) bool { return r == '\\' || r > '~' }):
		return
	}
	if f := w.o.Decisions["metadata_cap"]; compacted.Len() >= f.AtLeast {
		w.o.Decisions["metadata_cap"] = Finding{AtLeast: compacted.Len(), Seen: w.today, Count: f.Count + 1, Evidence: evidenceOf(c.Exchange, "")}
	}
}

// learnStates learns from an answer about a key and an agent whose state earlier calls of
// the process have set.
func (w *Watcher) learnStates(c *watchedCall, key *watchedKey) {
	ok, missing := c.Status == http.StatusOK, c.Status == http.StatusNotFound
	agent, known := w.agents[c.agent]
	switch c.Name {
	case rawcall.SetBYOK.Name:
		key.byok = stateAfter(ok, byokSet)
	case rawcall.GetBYOK.Name:
		if ok && c.Body != nil {
			w.learnStored(c, key, c.At("byok") != nil)
		}
	case rawcall.ClearBYOK.Name:
		if key.byok == byokNone && (ok || missing) {
			w.keepAnswer(c, "clear_nothing", c.Status)
		}
		key.byok = stateAfter(ok || missing, byokNone)
	case rawcall.CreateAgent.Name:
		keyed := strings.Contains(c.Call.Body, `"api_key"`)
		if id, _ := c.At("agent_id").(string); ok && id != "" {
			w.agents[w.hash(id)] = watchedAgent{c.key, strings.Contains(c.Call.Body, `"byok"`) && !keyed}
		}
		if keyed {
			key.byok = stateAfter(ok && key.byok == byokNone, byokUnclear)
		}
	case rawcall.ReadAgent.Name:
		if known && agent.owner != c.key && (ok || missing) {
			w.keepAnswer(c, "agent_of_another_key", c.Status)
		}
	case rawcall.SendMessage.Name:
		if known && agent.owner == c.key && agent.byok && key.byok == byokNone && (ok || missing || c.Status == 400 && w.anotherError(c)) {
			w.keepAnswer(c, "byok_cleared", c.Status)
		}
	}
}

// learnStored learns from an answer that says whether the key has a BYOK configuration.
func (w *Watcher) learnStored(c *watchedCall, key *watchedKey, stored bool) {
	if key.byok == byokUnclear {
		w.keepAnswer(c, "creation_stores_key", stored)
	}
	key.byok = byokNone
	if stored {
		key.byok = byokSet
	}
}

// stateAfter returns the state after a call. Unless the answer shows that the call
// succeeded, the state is unknown.
func stateAfter(wentThrough bool, state byokState) byokState {
	if wentThrough {
		return state
	}
	return byokUnknown
}

// anotherError reports whether an error has another name than the error for a wrong body.
func (w *Watcher) anotherError(c *watchedCall) bool {
	wrongBody := membersOf(w.o.Decisions["error_names"].Answer)[fakenames.BadRequest]
	return wrongBody != nil && wrongBody != c.At("error")
}

// learnWaits learns whether a call passes right after the wait that Retry-After names.
func (w *Watcher) learnWaits(c *watchedCall, key *watchedKey) {
	if c.Status != http.StatusTooManyRequests {
		// Only a success within a second after the wait proves something, because a wrong
		// Retry-After is too short by at least a whole second.
		if since := c.at.Sub(key.opens[c.Name]); c.Status == http.StatusOK && since >= 0 && since < time.Second {
			w.keepAnswer(c, "retry_after", true)
		}
		delete(key.opens, c.Name)
		return
	}
	if wait, _ := c.RetryAfter(); wait > 2*time.Second { // shorter waits may be right by chance
		key.opens[c.Name] = c.at.Add(wait)
	}
}
