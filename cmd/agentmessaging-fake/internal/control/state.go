package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// What a state file begins with.
const (
	stateFormat  = "agentmessaging-fake-worlds"
	stateVersion = 1
)

// stateFile is all worlds. Each state is as fakeserver.Server.WriteState has
// it, so there is no key in the file.
type stateFile struct {
	Format  string       `json:"format" check:"required state_format"`
	Version int          `json:"version" check:"required state_version"`
	Worlds  []worldState `json:"worlds" check:"required"`
}

type worldState struct {
	Name string `json:"name" check:"required world"`
	Settings
	State json.RawMessage `json:"state" check:"required"`
}

func (f stateFile) flaw() error {
	if len(f.Worlds) > maxWorlds {
		return badRequest("worlds", "at most %d", maxWorlds)
	}
	return nil
}

// save is POST save. A world's lock is not held, since the state is of all.
func (s *Server) save(*request) (any, error) {
	if s.options.Save == nil {
		return nil, conflict("the program was started without --state")
	}
	if err := s.options.Save(); err != nil {
		return nil, refuse(http.StatusInternalServerError, "not_saved", err.Error())
	}
	return nil, nil
}

// WriteState writes all worlds: what their snapshots would hold, and their
// settings. It returns the error of out.
func (s *Server) WriteState(out io.Writer) error {
	s.mu.Lock()
	worlds := maps.Clone(s.worlds)
	s.mu.Unlock()
	file := stateFile{Format: stateFormat, Version: stateVersion}
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		w := worlds[name]
		var state bytes.Buffer
		if err := w.fake.WriteState(&state); err != nil {
			return err
		}
		file.Worlds = append(file.Worlds, worldState{name, w.settings, bytes.TrimSpace(state.Bytes())})
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(file)
}

// ReadState brings all worlds to the state of a file, and forgets the present
// ones. The world named default keeps the settings that it was started
// with. A file that is damaged, or another program's, is refused, and nothing
// has changed then.
func (s *Server) ReadState(raw []byte) error {
	file, err := decode[stateFile](raw)
	if err != nil {
		return err
	}
	worlds := map[string]*world{}
	for i, st := range file.Worlds {
		w, err := s.readWorld(st)
		switch {
		case err != nil:
			return fmt.Errorf("worlds[%d]: %w", i, err)
		case worlds[st.Name] != nil:
			return fmt.Errorf("worlds[%d]: the name is there twice", i)
		}
		worlds[st.Name] = w
	}
	if worlds[defaultWorld] == nil {
		return errors.New("there is no world named default in it")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worlds = worlds
	return nil
}

// readState is GET state: what a snapshot of the world would hold, as a file.
func (w *world) readState(*request) (any, error) {
	return stream(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = w.fake.WriteState(rw) // the client may be gone
	}), nil
}

// putState is PUT state: the world is as it was when the file was written.
func (w *world) putState(r *request) (any, error) {
	if err := w.fake.ReadState(bytes.NewReader(r.body)); err != nil {
		return nil, badRequest("body", "%v", err)
	}
	return nil, nil
}

func (s *Server) readWorld(st worldState) (*world, error) {
	settings := st.Settings
	if st.Name == defaultWorld {
		settings = s.options.Settings
	}
	w, err := s.makeWorld(st.Name, settings)
	if err != nil {
		return nil, err
	}
	return w, w.fake.ReadState(bytes.NewReader(st.State))
}
