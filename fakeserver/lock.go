package fakeserver

import "sync"

// guard is the one lock of a fake. Its rules share it.
type guard struct{ mu sync.Mutex }

// lock takes the lock until the end of the function that calls it:
//
//	defer s.lock().Unlock()
//
// A function that needs the lock for a part of its work calls another function for
// that part. While the lock is held, nothing may wait, read or write a body, or call
// anything of the test. A panic for a mistake of the test releases it. A function whose
// name ends in Locked needs the lock held.
func (g *guard) lock() *sync.Mutex {
	g.mu.Lock()
	return &g.mu
}
