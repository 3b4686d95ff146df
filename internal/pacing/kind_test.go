package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// daily is a machine whose day of 20 calls is spent within the first 10 s.
func daily(t *testing.T) *machine {
	m := newMachine(t, Tuning{}, limitOf("d", 20, 24*time.Hour))
	m.take(10)
	m.now += 10 * second
	m.take(10)
	return m
}

// probed is daily whose probe of an hour later is under way.
func probed(t *testing.T) *machine {
	m := daily(t)
	m.now += hour
	answer := m.ask(100)
	assert.True(t, answer.Granted && answer.Probe)
	return m
}

// TestProbe: one call at a time may find out what kind of window it is.
func TestProbe(t *testing.T) {
	m := probed(t)
	again := m.ask(100)
	assert.True(t, again.Granted && again.Probe, "its answer was lost")
	m.wantWait(time.Second, m.ask(101))
	m.now += probeLife - 1
	m.wantWait(time.Second, m.ask(101))
	m.now++
	answer := m.ask(101)
	assert.True(t, answer.Granted && answer.Probe, "the first one was lost")
}

func TestProbeThatWasNeverSentIsRepeated(t *testing.T) {
	m := probed(t)
	m.tell(quota.Unused, 100)
	m.tell(quota.Accepted, 0) // nobody's
	assert.Len(t, m.limit().log, 20)
	assert.True(t, m.ask(101).Probe)
}

func TestNoProbe(t *testing.T) {
	t.Run("while cooling down", func(t *testing.T) {
		m := daily(t)
		m.refuse(1<<32|1, "d", 20*time.Hour)
		assert.False(t, m.ask(100).Granted)
	})
	t.Run("while cooling down, of a kind that was refuted", func(t *testing.T) {
		m := probed(t)
		m.refuse(100, "d", 5*time.Hour)
		m.now += 6 * hour
		m.refuse(9, "d", 7*time.Hour)
		assert.Equal(t, unknown, m.limit().kind)
		m.fill(20)
		m.wantWait(24*time.Hour+400*time.Millisecond, m.ask(101))
	})
	t.Run("where a short window is in the way too", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("m", 10, time.Minute), limitOf("d", 10, 24*time.Hour))
		m.take(10)
		assert.False(t, m.ask(100).Granted)
		m.now += 2 * minute
		assert.True(t, m.ask(100).Probe)
	})
	t.Run("out of turn", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("m", 1, time.Minute), limitOf("d", 1, 24*time.Hour))
		m.ask(1)
		m.ask(2)
		assert.False(t, m.askFor(3, 1).Granted)
	})
	t.Run("for a call within the limit", func(t *testing.T) { assert.False(t, daily(t).isProbe(quota.Step{})) })
	t.Run("where the kind is known", func(t *testing.T) {
		m := probed(t)
		m.refuse(100, "d", 23*time.Hour)
		assert.NotEqual(t, unknown, m.limit().kind)
		m.now += 22 * hour
		assert.False(t, m.ask(101).Granted)
	})
}

// TestAcceptedProbe: what came before it counts no more.
func TestAcceptedProbe(t *testing.T) {
	m := probed(t)
	m.now += second
	m.tell(quota.Accepted, 7) // another one
	m.tell(quota.Accepted, 0)
	assert.Len(t, m.limit().log, 21)
	m.tell(quota.Accepted, 100)
	assert.Equal(t, []uint64{100}, idsOf(m.limit().log))
	assert.Equal(t, 19, m.take(19))
	m.tell(quota.Accepted, 0)
	assert.Len(t, m.limit().log, 20, "there is no such call")
	assert.True(t, m.ask(101).Probe, "the kind is still not known")
}

// TestKindIsLearned from the wait that the probe's refusal asks for.
func TestKindIsLearned(t *testing.T) {
	oldest := 23*time.Hour - 10*time.Second
	near := 24*time.Hour/500 + 2*time.Second
	for _, tt := range []struct {
		retryAfter time.Duration
		want       kind
	}{
		{oldest, sliding},
		{oldest + near, sliding},
		{oldest - near, sliding},
		{oldest + near + time.Microsecond, fixed},
		{oldest - near - time.Microsecond, fixed},
		{5 * time.Hour, fixed},
		{24 * time.Hour / 20 * 2, fixed},
		{24*time.Hour/20 + 2*time.Second + time.Microsecond, fixed},
		{24*time.Hour/20 + 2*time.Second, paced}, // the next call comes free, rounded up and late
		{24 * time.Hour / 20, paced},
		{time.Second, paced},
	} {
		m := probed(t)
		m.refuse(100, "d", tt.retryAfter)
		assert.Equal(t, tt.want, m.limit().kind, "%v", tt.retryAfter)
	}
}

func TestSlidingWindow(t *testing.T) {
	m := probed(t)
	m.refuse(100, "d", 23*time.Hour-10*time.Second)
	m.now = epoch + day + 400_000
	assert.Equal(t, 9, m.take(10)) // the probe counts
	m.now += 10 * second
	assert.Equal(t, 10, m.take(11))
}

// TestFixedWindow ends when the refusal said, and every day from then on.
func TestFixedWindow(t *testing.T) {
	m := probed(t)
	end := m.now + 5*hour
	m.refuse(100, "d", 5*time.Hour)
	m.wantWait(5*time.Hour+400*time.Millisecond, m.ask(101))
	m.tell(quota.Unused, 101)
	m.now = end + guard - 1
	m.wantWait(time.Millisecond, m.ask(101)) // also for one who comes between end and guard
	m.now++
	assert.True(t, m.ask(101).Granted)
	assert.Equal(t, 19, m.take(20))
	m.wantWait(24*time.Hour, m.ask(201))
	m.wantWait(24*time.Hour, m.ask(202))
	m.tell(quota.Unused, 201)
	m.tell(quota.Unused, 202)
	m.now = end + 3*day + guard
	assert.Equal(t, 20, m.take(21))
}

func TestFixedWindowCountsRounds(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("d", 5, 24*time.Hour))
	m.take(5)
	m.refuse(1, "d", 10*time.Hour)
	for id := range uint64(5) {
		m.wantWait(10*time.Hour+400*time.Millisecond, m.ask(100+id))
	}
	m.wantWait(34*time.Hour+400*time.Millisecond, m.ask(105))
}

// TestFixedWindowIsRefuted by a refusal before half of it is used.
func TestFixedWindowIsRefuted(t *testing.T) {
	for _, tt := range []struct {
		own  int
		want kind
	}{{9, unknown}, {10, fixed}} {
		m := probed(t)
		m.refuse(100, "d", 5*time.Hour)
		m.now += 5*hour + 400_000
		m.take(tt.own)
		m.now += hour
		m.refuse(9, "d", 7*time.Hour)
		assert.Equal(t, tt.want, m.limit().kind)
	}
}

// TestRefusalsOfOneMistakeTeachOnce: those that were under way say the same.
func TestRefusalsOfOneMistakeTeachOnce(t *testing.T) {
	for _, tt := range []struct {
		retryAfter time.Duration
		want       kind
	}{{5 * time.Hour, fixed}, {time.Minute, paced}} {
		m := newMachine(t, Tuning{}, limitOf("d", 20, 24*time.Hour))
		m.take(4)
		for range 4 {
			m.now += second
			m.refuse(9, "d", tt.retryAfter)
			assert.Equal(t, tt.want, m.limit().kind)
			assert.Equal(t, 1.0, m.limit().pace)
		}
	}
}

// TestEndOfAFixedWindowIsNoPace, although the wait is short.
func TestEndOfAFixedWindowIsNoPace(t *testing.T) {
	m := probed(t)
	m.refuse(100, "d", 5*time.Hour)
	m.now += 5*hour - second
	m.refuse(9, "d", time.Second)
	assert.Equal(t, fixed, m.limit().kind)
}

// TestPacedWindow: one call for each even distance and the guard, and slower by
// 5 % after each further refusal, but not slower than one in a window.
func TestPacedWindow(t *testing.T) {
	even := 24 * time.Hour / 20
	distance := even + 400*time.Millisecond
	m := probed(t)
	m.refuse(100, "d", time.Minute)
	assert.Equal(t, 21, m.limit().burst)
	m.wantWait(distance, m.ask(101))
	m.now += distance.Microseconds()
	assert.True(t, m.ask(101).Granted)
	m.wantWait(distance, m.ask(102))
	m.refuse(101, "d", time.Minute)
	later := even*105/100 + 400*time.Millisecond
	m.wantWait(later, m.ask(102))
	assert.Equal(t, later, m.ask(102).Gap)
	m.now += later.Microseconds() - 1
	m.refuse(101, "d", time.Minute)
	assert.Equal(t, slower, m.limit().pace)
	for range 100 {
		m.now += day
		m.refuse(101, "d", time.Minute)
	}
	assert.Equal(t, 20.0, m.limit().pace)
	m.refuse(101, "d", 10*time.Hour)
	assert.Equal(t, fixed, m.limit().kind, "it was not paced after all")
}

// TestPacedWindowKeepsNoGuardWhereThereIsNone.
func TestPacedWindowKeepsNoGuardWhereThereIsNone(t *testing.T) {
	m := newMachine(t, Tuning{NoGuard: true}, limitOf("d", 20, 24*time.Hour))
	m.take(20)
	m.refuse(9, "d", time.Minute)
	m.wantWait(24*time.Hour/20, m.ask(100))
}

// TestPacedWindowSlowsDown also where the wait is longer than the one that
// teaches the kind: up to two even distances.
func TestPacedWindowSlowsDown(t *testing.T) {
	for _, tt := range []struct {
		retryAfter time.Duration
		kind       kind
		pace       float64
	}{
		{24 * time.Hour / 20 * 2, paced, 1.05},
		{24*time.Hour/20*2 + time.Microsecond, fixed, 1},
	} {
		m := probed(t)
		m.refuse(100, "d", time.Minute)
		m.now += 2 * hour
		m.refuse(101, "d", tt.retryAfter)
		assert.Equal(t, tt.kind, m.limit().kind, "%v", tt.retryAfter)
		assert.Equal(t, tt.pace, m.limit().pace, "%v", tt.retryAfter)
	}
}

// TestPacedWindowSavesUp as many as had gone when it refused, also in a crowd.
func TestPacedWindowSavesUp(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("d", 20, 24*time.Hour), limitOf("m", 1, time.Minute))
	for id := range uint64(5) {
		m.askFor(id, 0)
	}
	m.refuse(9, "d", time.Minute)
	m.now += 10 * day
	m.askFor(10, 1)
	assert.False(t, m.ask(11).Granted) // it waits for the minute
	for id := range uint64(6) {
		assert.Equal(t, id < 5, m.askFor(20+id, 0).Granted, "%d", id)
	}
}

// TestProbeIsOfTheFullLimit, and not of another one that it just fills.
func TestProbeIsOfTheFullLimit(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("d", 2, 24*time.Hour), limitOf("e", 3, 24*time.Hour))
	m.take(2)
	assert.True(t, m.ask(100).Probe)
	assert.EqualValues(t, 100, m.limit().probe)
	assert.Zero(t, m.State.limits[1].probe)
}

func TestBlame(t *testing.T) {
	limits := []quota.Limit{limitOf("m", 60, time.Minute), limitOf("i", 120, time.Minute), limitOf("d", 1000, 24*time.Hour)}
	for _, tt := range []struct {
		name       string
		key        string
		spends     quota.Set
		retryAfter time.Duration
		want       int
	}{
		{"by its name", "i", 7, time.Hour, 1},
		{"the fullest", "", 7, time.Second, 0},
		{"the fullest that was spent", "other", 6, time.Second, 1},
		{"a name that was not spent", "m", 6, time.Second, 1},
		{"a window that is long enough", "", 7, 62*time.Second + time.Microsecond, 2},
		{"a window and two seconds", "", 7, 62 * time.Second, 0},
		{"the longest, if none is long enough", "", 7, 25 * time.Hour, 2},
		{"the first of those that are as full", "", 3, 0, 0},
		{"the longest that was spent", "", 3, 25 * time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, Tuning{}, limits...)
			if tt.retryAfter > 0 {
				m.take(10)
			}
			m.step(quota.Step{Kind: quota.Refused, ID: 1, LimitKey: tt.key, RetryAfter: tt.retryAfter, Spends: tt.spends})
			for i, l := range m.State.limits {
				assert.Equal(t, i == tt.want, l.cool > 0, "%d", i)
			}
		})
	}
}

// TestLongWindowIsBlamedWhenItIsFull: what is learned of one lasts, so a short
// window is suspected first, however little of it was used.
func TestLongWindowIsBlamedWhenItIsFull(t *testing.T) {
	for used, want := range map[int]int{0: 0, 48: 0, 49: 1, 50: 1} {
		m := newMachine(t, Tuning{}, limitOf("m", 60, time.Minute), limitOf("d", 50, 24*time.Hour))
		var grants []quota.Grant
		for id := range used {
			grants = append(grants, quota.Grant{ID: uint64(100 + id), Age: time.Hour, Spends: 2})
		}
		m.step(quota.Step{Kind: quota.Replay, Grants: grants})
		m.step(quota.Step{Kind: quota.Refused, ID: 1, LimitKey: "unknown", RetryAfter: time.Second, Spends: 3})
		assert.Equal(t, []bool{want == 0, want == 1}, []bool{m.State.limits[0].cool > 0, m.State.limits[1].cool > 0}, "%d of 50", used)
	}
}

// TestNoNameIsNoName: a 429 that names no limit is not that of one without a name.
func TestNoNameIsNoName(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("", 1000, 24*time.Hour), limitOf("", 60, time.Minute))
	m.take(5)
	m.refuse(1, "", 20*time.Second)
	assert.Zero(t, m.State.limits[0].cool)
	assert.Equal(t, unknown, m.State.limits[0].kind)
	assert.Positive(t, m.State.limits[1].cool)
}

// TestSeenNamesNarrowTheBlame: a name stands for what all of its calls spent.
func TestSeenNamesNarrowTheBlame(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("m", 60, time.Minute), limitOf("c", 600, time.Minute), limitOf("d", 900, time.Minute))
	m.take(10)
	refuse := func(spends ...int) {
		m.step(quota.Step{Kind: quota.Refused, ID: 1, LimitKey: "name", RetryAfter: time.Second, Spends: quota.SetOf(spends...)})
	}
	refuse(1, 2)
	assert.Equal(t, quota.SetOf(1, 2), m.seen["name"])
	refuse(0, 2)
	assert.Equal(t, quota.SetOf(2), m.seen["name"])
	assert.Positive(t, m.State.limits[2].cool)
	assert.Zero(t, m.State.limits[0].cool)
	refuse(0) // contradicts what was seen
	assert.Equal(t, quota.SetOf(2), m.seen["name"])
	assert.Positive(t, m.State.limits[0].cool)
	m.refuse(1, "", time.Second)
	assert.Len(t, m.seen, 1)
}

// TestSeenNamesAreBounded: they are foreign text.
func TestSeenNamesAreBounded(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("m", 60, time.Minute), limitOf("d", 900, time.Hour))
	for n := range 1000 {
		m.refuse(1, string(rune('A'+n)), time.Second)
	}
	assert.Len(t, m.seen, maxSeen)
}
