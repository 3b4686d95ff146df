package control

import "time"

type snapshotView struct {
	ID      string    `json:"id"`
	TakenAt time.Time `json:"taken_at"`
}

// listSnapshots is GET snapshots.
func (w *world) listSnapshots(*request) (any, error) { return w.snapshots.shown("snapshots") }

// takeSnapshot is POST snapshots.
func (w *world) takeSnapshot(*request) (any, error) {
	if err := w.snapshots.full(); err != nil {
		return nil, err
	}
	at, taken := w.fake.Now(), w.fake.Snapshot()
	return w.snapshots.add(item{
		view:    func(id string) any { return snapshotView{id, at} },
		remove:  func() {},
		restore: func() { w.fake.Restore(taken) },
	}), nil
}

// restore is POST snapshots/{id}/restore.
func (w *world) restore(r *request) (any, error) {
	i, err := w.snapshots.find(r)
	if err == nil {
		w.snapshots.list[i].restore()
	}
	return nil, err
}

// deleteSnapshot is DELETE snapshots/{id}.
func (w *world) deleteSnapshot(r *request) (any, error) { return w.snapshots.drop(r) }
