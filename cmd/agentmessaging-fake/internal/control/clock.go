package control

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// maxAdvance is how far the clock goes in all: JSON holds years to 9999, and a
// time.Duration 292 of them.
const maxAdvance = 100 * 365 * 24 * time.Hour

// clock is GET clock.
func (w *world) clock(*request) (answer, *refusal) {
	return ok(struct {
		Now      time.Time `json:"now"`
		Advanced string    `json:"advanced"`
	}{w.fake.Now(), w.fake.Admin().Advanced().String()})
}

// advance is POST clock/advance.
func (w *world) advance(r *request) (answer, *refusal) {
	body, refused := decode[struct {
		Duration string `json:"duration" check:"required"`
	}](r.body)
	if refused != nil {
		return answer{}, refused
	}
	d, refused := durationIn("duration", body.Duration, maxAdvance)
	if refused == nil && d > maxAdvance-w.fake.Admin().Advanced() {
		refused = badRequest("duration", "the clock goes at most %v forward in all", maxAdvance)
	}
	if refused != nil {
		return answer{}, refused
	}
	w.fake.Advance(d)
	w.hub.changed(changedClock)
	return w.clock(r)
}

const maxSnapshots = 100

// snapshot is one that was taken and not yet deleted.
type snapshot struct {
	ID      string    `json:"id"`
	TakenAt time.Time `json:"taken_at"`
	taken   *fakeserver.Snapshot
}

// listSnapshots is GET snapshots.
func (w *world) listSnapshots(*request) (answer, *refusal) {
	return ok(map[string]any{"snapshots": append([]snapshot{}, w.snapshots...)})
}

// takeSnapshot is POST snapshots.
func (w *world) takeSnapshot(*request) (answer, *refusal) {
	if len(w.snapshots) >= maxSnapshots {
		return answer{}, conflict("there are %d snapshots already, and no more are kept; DELETE those that are done", maxSnapshots)
	}
	w.taken++
	taken := snapshot{numbered("snapshot", w.taken), w.fake.Now(), w.fake.Snapshot()}
	w.snapshots = append(w.snapshots, taken)
	w.hub.changed(changedSnapshots)
	return created(taken)
}

func (w *world) snapshotOf(r *request) (int, *refusal) {
	i := slices.IndexFunc(w.snapshots, func(s snapshot) bool { return s.ID == r.param("id") })
	if i < 0 {
		return i, notFound("no snapshot of this world has this id")
	}
	return i, nil
}

// restore is POST snapshots/{id}/restore.
func (w *world) restore(r *request) (answer, *refusal) {
	i, refused := w.snapshotOf(r)
	if refused != nil {
		return answer{}, refused
	}
	w.fake.Restore(w.snapshots[i].taken)
	for _, what := range []string{changedKeys, changedAgents, changedBYOK, changedLimits} {
		w.hub.changed(what)
	}
	return done()
}

// deleteSnapshot is DELETE snapshots/{id}.
func (w *world) deleteSnapshot(r *request) (answer, *refusal) {
	i, refused := w.snapshotOf(r)
	if refused != nil {
		return answer{}, refused
	}
	w.snapshots = slices.Delete(w.snapshots, i, i+1)
	w.hub.changed(changedSnapshots)
	return done()
}
