package control

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// clock is GET clock.
func (w *world) clock(*request) (any, error) {
	return struct {
		Now      time.Time `json:"now"`
		Advanced string    `json:"advanced"`
	}{w.fake.Now(), w.fake.Admin().Advanced().String()}, nil
}

type step struct {
	Duration string `json:"duration" check:"required advance"`
}

// advance is POST clock/advance.
func (w *world) advance(body step) (any, error) {
	d := parsed(body.Duration)
	if d > maxAdvance-w.fake.Admin().Advanced() {
		return nil, badRequest("duration", "the clock goes at most %v forward in all", maxAdvance)
	}
	w.fake.Advance(d)
	return w.clock(nil)
}

const maxSnapshots = 100

// snapshot is one that was taken and not yet deleted.
type snapshot struct {
	ID      string    `json:"id"`
	TakenAt time.Time `json:"taken_at"`
	taken   *fakeserver.Snapshot
}

// listSnapshots is GET snapshots.
func (w *world) listSnapshots(*request) (any, error) {
	return map[string]any{"snapshots": append([]snapshot{}, w.snapshots...)}, nil
}

// takeSnapshot is POST snapshots.
func (w *world) takeSnapshot(*request) (any, error) {
	if len(w.snapshots) >= maxSnapshots {
		return nil, conflict("there are %d snapshots already, and no more are kept; DELETE one first", maxSnapshots)
	}
	w.taken++
	taken := snapshot{numbered("snapshot", w.taken), w.fake.Now(), w.fake.Snapshot()}
	w.snapshots = append(w.snapshots, taken)
	return taken, nil
}

func (w *world) snapshotOf(r *request) (int, error) {
	i := slices.IndexFunc(w.snapshots, func(s snapshot) bool { return s.ID == r.param("id") })
	if i < 0 {
		return i, notFound("no snapshot of this world has this id")
	}
	return i, nil
}

// restore is POST snapshots/{id}/restore.
func (w *world) restore(r *request) (any, error) {
	i, err := w.snapshotOf(r)
	if err == nil {
		w.fake.Restore(w.snapshots[i].taken)
	}
	return nil, err
}

// deleteSnapshot is DELETE snapshots/{id}.
func (w *world) deleteSnapshot(r *request) (any, error) {
	i, err := w.snapshotOf(r)
	if err == nil {
		w.snapshots = slices.Delete(w.snapshots, i, i+1)
	}
	return nil, err
}
