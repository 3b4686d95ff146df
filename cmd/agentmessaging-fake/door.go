package main

import (
	"errors"
	"net"
	"sync"
	"time"
)

// door is a listener that can be shut for a while. The system then refuses
// connections, as it does where no program listens: the one failure that
// no fault acts out over a socket, since a fault needs a connection that was accepted.
type door struct {
	mu       sync.Mutex // guards what follows
	listener net.Listener
	opening  chan struct{} // is closed when the door opens; nil while it is open
	reopened error         // why it could not open
}

var errShut = errors.New("connections are refused already")

func (d *door) state() (l net.Listener, opening chan struct{}, reopened error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listener, d.opening, d.reopened
}

// Accept waits while the door is shut.
func (d *door) Accept() (net.Conn, error) {
	for {
		l, _, _ := d.state()
		conn, err := l.Accept()
		if err == nil {
			return conn, nil
		}
		now, opening, reopened := d.state()
		switch {
		case reopened != nil:
			return nil, reopened
		case opening != nil:
			<-opening
		case now == l:
			return nil, err
		}
	}
}

// Addr is the same before and after the door was shut.
func (d *door) Addr() net.Addr {
	l, _, _ := d.state()
	return l.Addr()
}

// Close closes the door for good.
func (d *door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening != nil {
		close(d.opening)
		d.opening = nil
	}
	return d.listener.Close()
}

// shut refuses connections for a while. Those that there are stay.
func (d *door) shut(long time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening != nil {
		return errShut
	}
	d.opening = make(chan struct{})
	time.AfterFunc(long, d.open)
	return d.listener.Close()
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening == nil { // it was closed meanwhile
		return
	}
	l, err := net.Listen("tcp", d.listener.Addr().String())
	if err == nil {
		d.listener = l
	}
	d.reopened = err
	close(d.opening)
	d.opening = nil
}
