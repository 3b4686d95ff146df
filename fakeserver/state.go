package fakeserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// The start of a state file. A change that an older fake would misread needs a new
// version.
const (
	stateFormat  = "agentmessaging-fake-state"
	stateVersion = 1
)

// sumMember begins the last member of a state file, which holds the sum of all bytes
// before its comma. It appears only once, because its quotes would be escaped elsewhere.
const sumMember = `,"sha256":`

// stateFile is the state in a file.
type stateFile struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Advanced int64  `json:"advanced_ns"`
	Traces   int    `json:"traces"` // identifiers given so far
	service.Saved
}

// sumOf returns the end of a state file, from sumMember on.
func sumOf(state []byte) string { return fmt.Sprintf("%s\"%x\"}", sumMember, sha256.Sum256(state)) }

// WriteState writes the state of the service to w as one JSON document, so that
// another fake can go on from it with ReadState: API keys, agents, conversations,
// BYOK configurations, limits, the time that Advance and Sleep have added to the
// clock, and the number of trace identifiers. Scripts, injected faults and recorded
// calls are left out.
//
// The document holds the texts of messages and prompts and the addresses of clients. It
// holds the labels of API keys and not the keys. Of a provider key it holds only the
// label and the metadata of interface 2.4. A text that repeats a key shows the key. A
// base_url is written as it was given, with its password if it has one. A checksum at the
// end shows ReadState whether the document is whole. An error of w is wrapped and
// returned.
func (s *Server) WriteState(w io.Writer) error {
	state, err := s.encodeState()
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", state, sumOf(state))
	}
	if err != nil {
		return fmt.Errorf("fakeserver: WriteState: %w", err)
	}
	return nil
}

// encodeState returns a state file up to the sum. It encodes the state while it holds the
// lock, since a copy of the state would take as long.
func (s *Server) encodeState() ([]byte, error) {
	defer s.lock().Unlock()
	state, err := strictjson.Encode(stateFile{
		Format: stateFormat, Version: stateVersion,
		Advanced: s.offset.Load(), Traces: s.generation.traces, Saved: s.generation.service.Save(),
	})
	return bytes.TrimSuffix(state, []byte("}")), err
}

// ReadState replaces the state of the service with one that WriteState wrote. Scripts,
// injected faults and recorded calls stay. A call that the service has already decided
// changes the old state. A call that a fault still delays meets the new state.
//
// The clock moves forward to at least the advance that was written; it never goes back.
// The document has no keys: the key labelled key_000002 gets the text that the first
// IssueKey of this fake returns, which depends on WithKey. If the decision "windows" of
// this fake differs from the writer's, all limits start empty, and only limits that
// Exhaust closed stay closed. Limits also start empty if their newest call was later than
// this fake's time by more than a day, or by more than a minute for limits per address.
// That happens in a synctest bubble that reads a file from outside.
//
// A document that WriteState did not write, that was cut or edited, or that has
// another version is an error. The state is then unchanged.
func (s *Server) ReadState(r io.Reader) error {
	f, err := decodeState(r)
	if err != nil {
		return fmt.Errorf("fakeserver: ReadState: %w", err)
	}
	clock := s.config.clock().UTC() // before the lock is taken, because the clock may be a callback of the test
	defer s.lock().Unlock()
	s.moveToLocked(f.Advanced)
	now := clock.Add(time.Duration(s.offset.Load()))
	s.generation.service = s.generation.service.Load(f.Saved, now, func(n int) service.Digest { return service.DigestOf(s.config.keyText(n)) })
	s.generation.traces = max(s.generation.traces, f.Traces)
	return nil
}

// decodeState reads a state file and checks that it is whole. The checks come in the
// order of the most helpful message: a file of another program is not reported as
// damaged.
func decodeState(r io.Reader) (*stateFile, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	f := new(stateFile)
	wrongType := json.Unmarshal(raw, f) // a value of a wrong type stays zero
	switch {
	case !json.Valid(raw):
		return nil, fmt.Errorf("not the state of a fake, or only a part of one: it is not one whole JSON document (%d bytes)", len(raw))
	case f.Format != stateFormat:
		return nil, errors.New("not the state of a fake: its format is not " + stateFormat)
	case f.Version != stateVersion:
		return nil, fmt.Errorf("the state has version %d; this fake reads version %d", f.Version, stateVersion)
	}
	// Nothing but white space may follow the sum: a member there would replace one that the
	// sum covers.
	state, _, _ := bytes.Cut(raw, []byte(sumMember))
	if string(bytes.TrimSpace(raw[len(state):])) != sumOf(state) {
		return nil, errors.New("the state is damaged, or was edited: its sha256 does not match")
	}
	if wrongType != nil || slices.Contains(f.Keys, nil) || slices.Contains(f.Agents, nil) { // and the sum was computed again
		return nil, errors.New("the state was edited: a value has a type that WriteState does not write")
	}
	return f, nil
}
