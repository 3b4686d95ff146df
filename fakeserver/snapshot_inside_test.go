package fakeserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed writes down everything that is reachable from v, maps in order.
// Unlike a deep comparison, it notices a change of what two values share.
func printed(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		if v.Type() == reflect.TypeFor[*time.Location]() {
			return "location"
		}
		return printed(v.Elem())
	case reflect.Struct:
		return joined(v.NumField(), func(i int) string { return v.Type().Field(i).Name + ":" + printed(v.Field(i)) })
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%x", v)
		}
		return joined(v.Len(), func(i int) string { return printed(v.Index(i)) })
	case reflect.Map:
		var rows []string
		for it := v.MapRange(); it.Next(); {
			rows = append(rows, printed(it.Key())+"="+printed(it.Value()))
		}
		slices.Sort(rows)
		return strings.Join(rows, "\n")
	default:
		return fmt.Sprint(v)
	}
}

func joined(n int, item func(int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return "{" + strings.Join(items, " ") + "}"
}

func printedState(s *Snapshot) string { return printed(reflect.ValueOf(s.state)) }

// actor does random things to a fake.
type actor struct {
	*Server
	random *rand.Rand
	keys   []string
}

func (a *actor) key() string { return a.keys[a.random.IntN(len(a.keys))] }

// owned makes a call about an agent, with the key that it belongs to.
func (a *actor) owned(agent *agent, method, path, body string) {
	a.with(keyOf(agent), method, "/v1/agents/"+agent.ID+path, body)
}

func (a *actor) call(method, path, body string) { a.with(a.key(), method, path, body) }

func (a *actor) with(key, method, path, body string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1000", a.random.IntN(5))
	r.Header.Set("Authorization", "Bearer "+key)
	a.ServeHTTP(httptest.NewRecorder(), r)
}

func (a *actor) act() {
	agents := a.world.ordered
	some := agents[a.random.IntN(len(agents))]
	deeds := []func(){
		func() { a.call("POST", "/v1/agents", `{"metadata":{"a":1},"sms":{"mode":"sandbox"}}`) },
		func() { a.call("POST", "/v1/agents", `{"llm":{"mode":"byok","provider":"openai","api_key":"sk-x"}}`) },
		func() { a.owned(some, "POST", "/messages", `{"text":"hello"}`) },
		func() { a.owned(some, "POST", "/messages", `{"text":"hello again"}`) },
		func() { a.owned(some, "POST", "/channels/sms", `{"mode":"managed"}`) },
		func() { a.owned(some, "GET", "", "") },
		func() { a.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-y","model":"m"}`) },
		func() { a.call("DELETE", "/v1/byok", "") },
		func() { a.call("POST", "/v1/warmup", "{}") },
		func() { a.keys = append(a.keys, a.IssueKey(KeyOptions{NotDashboard: true})) },
		func() { a.SetPlan(a.key(), PlanPro) },
		func() { a.RevokeKey(a.IssueKey(KeyOptions{})) },
		func() { a.Exhaust(a.key(), LimitAgentCreateKeyDay) },
		func() { a.SetBYOKAvailable(a.random.IntN(2) == 0) },
		func() { a.SetSMS(some.ID, "pending", "+1") },
		func() { a.AddAgent(a.key(), Agent{Metadata: json.RawMessage(`{"b":2}`), SMS: &SMS{Mode: "managed"}}) },
		func() { a.AddExchanges(some.ID, Exchange{Text: "hi", Warnings: []string{"w"}}) },
		func() { a.StoreBYOK(a.key(), BYOKOptions{Provider: "openai", APIKey: "sk-z"}) },
		func() { a.Advance(time.Duration(a.random.IntN(40)) * time.Second) },
	}
	deeds[a.random.IntN(len(deeds))]()
}

func (a *actor) acts(n int) {
	for range n {
		a.act()
	}
}

// After 1,000 operations of every kind, Restore leads back to exactly the
// state of the snapshot, however often, and no operation reaches the snapshot.
func TestSnapshotAndRestore(t *testing.T) {
	for seed, opts := range [][]Option{nil, {WithSlidingWindows(), WithConversationLimit(2)}} {
		s := New(t, append(opts, WithLimit(LimitIPMinute, 100_000), WithLimit(LimitKeyDay, 100_000))...)
		a := &actor{Server: s, random: rand.New(rand.NewPCG(uint64(seed), 0)), keys: []string{s.Key(), s.IssueKey(KeyOptions{})}}
		s.AddAgent(s.Key(), Agent{})
		a.acts(300)
		snapshot := s.Snapshot()
		before := printedState(snapshot)
		require.Contains(t, before, "hello again")
		keys, offset := slices.Clone(a.keys), s.offset.Load()
		for range 2 {
			a.acts(1000)
			require.NotEqual(t, before, printedState(s.Snapshot()), "something happened")
			require.Equal(t, before, printedState(snapshot), "and not to the snapshot")
			s.Restore(snapshot)
			a.keys = slices.Clone(keys)
			fresh := s.Snapshot()
			assert.True(t, reflect.DeepEqual(snapshot, fresh))
			require.Equal(t, before, printedState(fresh))
		}
		assert.Greater(t, s.offset.Load(), offset, "the clock goes on")
		for _, a := range s.world.ordered {
			assert.Same(t, s.world.agents[a.ID], a)
			assert.Same(t, s.world.keys[digestOf(keyOf(a))], a.owner)
		}
	}
}

// keyOf is the text of the key that an agent belongs to.
func keyOf(a *agent) string { return strings.Replace(a.owner.label, "key", keyKind, 1) }

func TestSnapshotLeavesTheTestsOwnAlone(t *testing.T) {
	s := New(t)
	a := s.AddAgent(s.Key(), Agent{})
	snapshot := s.Snapshot()
	script := s.OnMessage().Reply("scripted")
	send := func() {
		r := httptest.NewRequest("POST", "/v1/agents/"+a.ID+"/messages", strings.NewReader(`{"text":"hello"}`))
		r.Header.Set("Authorization", "Bearer "+s.Key())
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	send()
	s.Restore(snapshot)
	assert.Empty(t, s.Conversation(a.ID))
	send()
	assert.Equal(t, 2, script.Hits())
	assert.Equal(t, "scripted", s.Conversation(a.ID)[0].ReplyText)
	calls := s.Calls()
	require.Len(t, calls, 2)
	assert.NotEqual(t, calls[0].TraceID, calls[1].TraceID, "an identifier names one call")
}

func TestSnapshotMisuseAndPrinting(t *testing.T) {
	s, other := New(t), New(t)
	snapshot := s.Snapshot()
	assert.PanicsWithValue(t, "fakeserver: Restore: the snapshot is not one that this fake made", func() { other.Restore(snapshot) })
	assert.PanicsWithValue(t, "fakeserver: Restore: the snapshot is not one that this fake made", func() { s.Restore(nil) })
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.Equal(t, "fakeserver.Snapshot fakeserver.Snapshot", fmt.Sprintf(verb+" "+verb, snapshot, *snapshot))
	}
}

// A ring keeps what a list that is cut keeps.
func TestRingAgreesWithAList(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 7, Unlimited} {
		var r ring[int]
		var list []int
		for i := range 50 {
			before, was := r.clone(), slices.Clone(list)
			r.add(i, limit)
			list = append(list, i)
			if len(list) > limit {
				list = list[len(list)-limit:]
			}
			require.Equal(t, len(list), len(r.all()))
			require.True(t, slices.Equal(list, r.all()))
			require.True(t, slices.Equal(was, before.all()), "a clone keeps what it had")
			require.Equal(t, i+1, len(r.kept)+r.dropped)
		}
	}
}

// Snapshots and restores among concurrent calls: under the race detector, and
// without a call that sees half of a state.
func TestRestoreAmongCalls(t *testing.T) {
	s := New(t, WithLimit(LimitKeyMinute, 100_000), WithLimit(LimitKeyDay, 100_000), WithLimit(LimitIPMinute, 100_000))
	s.AddAgent(s.Key(), Agent{})
	snapshot := s.Snapshot()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			a := &actor{Server: s, random: rand.New(rand.NewPCG(uint64(i), 0)), keys: []string{s.Key()}}
			for range 100 {
				a.with(s.Key(), "POST", "/v1/agents/agent_000001/messages", `{"text":"hello"}`)
				s.Restore(snapshot)
				s.Restore(s.Snapshot())
			}
		})
	}
	all.Wait()
	assert.Len(t, s.Calls(Where(func(c Call) bool { return c.Status == 200 })), 400)
}

// What Exhaust shuts behind a snapshot is open again behind Restore.
func TestSnapshotKeepsItsOwnShutLimits(t *testing.T) {
	s := New(t)
	s.Exhaust(s.Key(), LimitWarmUpKeyHour)
	before := s.Snapshot()
	s.Exhaust(s.Key(), LimitKeyDay)
	s.Restore(before)
	for _, limit := range s.Limits(s.Key()) {
		assert.Equal(t, limit.Key == LimitWarmUpKeyHour, !limit.Opens.IsZero(), limit.Key)
	}
}
