package pacer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// TestStoreFails: the processes go on with their shares, and return. Each logs
// one record when the store fails, and one when it is back.
func TestStoreFails(t *testing.T) {
	for name, fail := range map[string]func(*loadsim.Store, bool){"dead": (*loadsim.Store).Kill, "hung": (*loadsim.Store).Hang} {
		synctest.Test(t, func(t *testing.T) {
			s, log := fleet(4)
			s.Meanwhile = func(_ context.Context, w *loadsim.World) {
				time.Sleep(2 * time.Minute)
				fail(s.Store, true)
				time.Sleep(2 * time.Minute)
				assert.NoError(t, w.Fleet[0].SetLimits(perMinute(59)))
				state := w.Fleet[0].State()
				assert.Equal(t, 4, state.Processes)
				assert.InDelta(t, 110, time.Since(state.StoreDown).Seconds(), 11)
				fail(s.Store, false)
				time.Sleep(5 * time.Second)
				for _, p := range w.Fleet {
					assert.True(t, p.State().StoreDown.IsZero(), "back within 5 s")
				}
			}
			m := loadsim.Run(s).Measure(0, s.Span)
			assert.LessOrEqual(t, m.Refused, 1, "the fleet follows on the shares")
			assert.GreaterOrEqual(t, m.Used, 0.96)
			assert.Equal(t, 4, count(log, "store does not answer"))
			assert.Equal(t, 4, count(log, "store answers again"))
			assert.Equal(t, name == "dead", count(log, "what to do about that") > 0, "its words are whole")
			assert.Zero(t, count(log, loadsim.Key))
		})
	}
}

// TestStoreLosesItsValue: a process writes its state to the store again.
func TestStoreLosesItsValue(t *testing.T) {
	for name, lose := range map[string]func(value []byte) []byte{
		"flushed": func([]byte) []byte { return nil },
		"foreign": func([]byte) []byte { return []byte("OK") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, log := fleet(2)
			s.Meanwhile = func(context.Context, *loadsim.World) {
				time.Sleep(2 * time.Minute)
				s.Store.Values(func(values map[string]loadsim.Entry) {
					for key, e := range values {
						if e.Value = lose(e.Value); e.Value == nil {
							e = loadsim.Entry{}
						}
						values[key] = e
					}
				})
			}
			s.Span = 4 * time.Minute
			m := loadsim.Run(s).Measure(0, s.Span)
			assert.Zero(t, m.Refused, name)
			assert.GreaterOrEqual(t, m.Used, 0.98, name)
			assert.Equal(t, 1, count(log, "begins the shared state afresh"), name)
		})
	}
}

// TestStoreIsToldAgain what was learned, and how much of a long limit is used.
func TestStoreIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		p := sharing(t, append(perMinute(60), pacer.Limit{Key: "day", Max: 1000, Window: 24 * time.Hour}), store)
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", 15*time.Second))
		synctest.Wait()
		before := p.State().Limits
		store.Values(func(values map[string]loadsim.Entry) { clear(values) })
		acquire(t, p, patient())
		after := p.State().Limits
		assert.Less(t, after[0].Level, 50.0)
		assert.Equal(t, before[0].Level, after[0].Level)
		assert.Equal(t, before[1].Used+1, after[1].Used)
	})
}

// panicking is a store whose client has a bug.
type panicking struct{ pacer.Store }

func (panicking) Load(context.Context, string) ([]byte, string, time.Time, error) { panic("bug") }

// TestStoreThatPanics is one that does not answer.
func TestStoreThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, option := logging()
		p := sharing(t, perMinute(60), panicking{}, option)
		acquire(t, p, patient())
		acquire(t, p, patient())
		assert.Equal(t, 1, count(log, "does not answer; working on a share of the limits"))
		assert.Equal(t, 1, count(log, "a part of the program panicked: bug"))
	})
}
