package fakeserver

import "sync"

// serverLock guards a Server and its rules. memnet.Host has its own lock.
type serverLock struct{ mu sync.Mutex }

// lock takes the lock until the end of the function that calls it:
//
//	defer s.lock().Unlock()
//
// A function that needs the lock for a part of its work calls another function for that part.
// While it holds the lock, a function must not wait, read or write a body, or call a callback
// of the test. A panic for a mistake of the test releases the lock, since the Unlock is
// deferred. A function whose name ends in Locked must be called with the lock held.
func (l *serverLock) lock() *sync.Mutex {
	l.mu.Lock()
	return &l.mu
}
