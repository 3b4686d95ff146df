package fakeserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Snapshot is the state of the service at one moment: keys and plans, agents
// and conversations, BYOK configurations, limits, SetBYOKAvailable, and the
// next numbers of agents and keys. It never changes. Provider keys are
// encrypted in it as in the fake.
type Snapshot struct {
	server *Server
	file   *stateFile
}

// Format prints only a name, with every verb: a snapshot holds texts that must
// not get into a log.
func (Snapshot) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Snapshot")) }

// Snapshot copies the state of the service, for Restore. Scripts, injected
// faults, recorded calls and the clock belong to the test and are not copied.
// Neither is the count of trace identifiers, since each names one recorded
// call.
func (s *Server) Snapshot() *Snapshot {
	return look(s, func(w *world) *Snapshot { return &Snapshot{s, w.file()} })
}

// Restore brings the service back to the state of a snapshot, any number of
// times. The clock goes on, so a limit that was open then may have closed. A
// call that is under way ends on the state that it began on, which is then
// gone. A snapshot of another fake panics: its provider keys are encrypted
// under another key.
func (s *Server) Restore(snapshot *Snapshot) {
	if snapshot == nil || snapshot.server != s {
		misuse("Restore", "the snapshot is not one that this fake made")
	}
	fresh := snapshot.file.state(&s.config)
	s.locked(func(w *world) { w.state = fresh })
}

// The start of a state file. A change that an older fake would misread needs
// another version.
const (
	stateFormat  = "agentmessaging-fake-state"
	stateVersion = 1
)

// maxStateFile bounds the file that ReadState reads: 1 GiB.
const maxStateFile = 1 << 30

// WriteState writes the state of the service to w as JSON, with the clock's
// advance and the count of trace identifiers, so that another fake can go on
// from it with ReadState. Scripts, injected faults and recorded calls are left
// out.
//
// The file holds texts of messages and prompts, and no key. An API key is there
// by its label, from which a fake makes its text. Of a provider key there is
// the metadata of interface 2.4. WriteState returns the error of w.
func (s *Server) WriteState(w io.Writer) error {
	f := look(s, (*world).file)
	f.Format, f.Version, f.Advanced = stateFormat, stateVersion, time.Duration(s.offset.Load())
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("fakeserver: WriteState: %w", err)
	}
	return nil
}

// ReadState brings the service to a state that WriteState wrote, as Restore
// does: scripts, injected faults and recorded calls stay, and a call that is
// under way ends on the state that it began on. The clock moves at least as far
// as it had been advanced; it never goes back. API keys get the texts that this
// fake makes for their labels, so another WithKey means other texts.
//
// ReadState refuses anything that is not such a file, is damaged, or breaks a
// rule of the service. The error says where, and the state is unchanged.
func (s *Server) ReadState(r io.Reader) error {
	f, err := decodeState(r)
	if err != nil {
		return fmt.Errorf("fakeserver: ReadState: %w", err)
	}
	if err := f.check(&s.config); err != nil {
		return fmt.Errorf("fakeserver: ReadState: the state is damaged: %w", err)
	}
	fresh := f.state(&s.config)
	s.locked(func(w *world) {
		w.state = fresh
		w.traces = max(w.traces, f.Traces)
	})
	s.advanceTo(f.Advanced)
	return nil
}

// decodeState reads a file and checks its form.
func decodeState(r io.Reader) (*stateFile, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxStateFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxStateFile {
		return nil, fmt.Errorf("more than %d bytes", maxStateFile)
	}
	f := new(stateFile)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(f); { // it reads on behind an unknown member
	case !json.Valid(raw):
		return nil, errors.New("not one JSON document, so no state of a fake, or not all of one")
	case f.Format != stateFormat:
		return nil, errors.New("not the state of a fake: its format is not " + stateFormat)
	case f.Version != stateVersion:
		return nil, fmt.Errorf("the state has version %d; this fake reads version %d", f.Version, stateVersion)
	case err != nil:
		return nil, fmt.Errorf("the state is damaged: %w", err)
	}
	return f, nil
}
