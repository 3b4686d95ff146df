package main

import (
	"context"
	"errors"
	"net"
	"time"
)

var errShut = errors.New("connections are refused already")

// refuse refuses connections for a while, as the system does where no program
// listens: the one failure that no fault acts out over a socket, since a fault
// needs a connection that was accepted. Connections that wait for a request are
// closed, so that clients need new ones.
func (p *program) refuse(long time.Duration) error {
	if !p.shut.CompareAndSwap(false, true) {
		return errShut
	}
	p.pause <- long
	err := p.listener.Close()
	p.server.SetKeepAlivesEnabled(false)
	p.server.SetKeepAlivesEnabled(true)
	return err
}

// accept serves until the server or ctx ends, and listens anew, at the same
// address, after refuse has closed the listener.
func (p *program) accept(ctx context.Context) error {
	for {
		err := p.server.Serve(p.listener)
		if !p.shut.Load() {
			return err
		}
		select {
		case <-time.After(<-p.pause):
		case <-ctx.Done():
			return nil
		}
		if p.listener, err = net.Listen("tcp", p.listener.Addr().String()); err != nil {
			return err
		}
		p.shut.Store(false)
	}
}
