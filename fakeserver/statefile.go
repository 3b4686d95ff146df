package fakeserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The start of a state file. A change that an older fake would misread needs
// another version.
const (
	stateFormat  = "agentmessaging-fake-state"
	stateVersion = 1
)

// maxStateFile bounds the file that ReadState reads and WriteState writes: 1
// GiB.
const maxStateFile = 1 << 30

// boundedWriter refuses to write more than ReadState reads.
type boundedWriter struct {
	io.Writer
	left int
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, fmt.Errorf("more than %d bytes", maxStateFile)
	}
	w.left -= len(p)
	return w.Writer.Write(p)
}

// WriteState writes the state of the service to w as JSON, with the clock's
// advance and the count of trace identifiers, so that another fake can go on
// from it with ReadState. Scripts, injected faults and recorded calls are left
// out.
//
// The file holds texts of messages and prompts, and no key. An API key is there
// by its label, from which a fake makes its text. Of a provider key there is
// the metadata of interface 2.4. WriteState returns the error of w.
func (s *Server) WriteState(w io.Writer) error {
	var st state
	var traces int
	s.locked(func(w *world) { st, traces = w.state.clone(), w.traces })
	f := st.wire()
	f.Format, f.Version = stateFormat, stateVersion
	f.Advanced, f.Traces = time.Duration(s.offset.Load()), traces
	encoder := json.NewEncoder(&boundedWriter{w, maxStateFile})
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
	st, err := f.state(s)
	if err != nil {
		return fmt.Errorf("fakeserver: ReadState: the state is damaged: %w", err)
	}
	s.locked(func(w *world) {
		w.state = *st
		w.traces = max(w.traces, f.Traces)
	})
	s.advanceTo(f.Advanced)
	return nil
}

func (s *Server) advanceTo(d time.Duration) {
	for {
		old := s.offset.Load()
		if old >= int64(d) || s.offset.CompareAndSwap(old, int64(d)) {
			return
		}
	}
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
	if err := checkFormat(raw); err != nil {
		return nil, err
	}
	f := new(stateFile)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(f); err != nil {
		return nil, fmt.Errorf("the state is damaged: %w", err)
	}
	return f, nil
}

func checkFormat(raw []byte) error {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	switch err := json.Unmarshal(raw, &head); {
	case !json.Valid(raw):
		return errors.New("not one JSON document, so no state of a fake, or not all of one")
	case err != nil || head.Format != stateFormat:
		return errors.New("not the state of a fake: its format is not " + stateFormat)
	case head.Version != stateVersion:
		return fmt.Errorf("the state has version %d; this fake reads version %d", head.Version, stateVersion)
	}
	return nil
}
