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
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Worlds  []worldState `json:"worlds"`
}

type worldState struct {
	Name string `json:"name"`
	Settings
	State json.RawMessage `json:"state"`
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
// settings. The error is that of out.
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

// ReadState brings all worlds to the state of a file, in place of those that
// there are. The world named default keeps the settings that it was started
// with. A file that is damaged, or another program's, is refused, and nothing
// has changed then.
func (s *Server) ReadState(raw []byte) error {
	file, err := decodeState(raw)
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
			return fmt.Errorf("worlds[%d]: the name stands twice", i)
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

func decodeState(raw []byte) (file stateFile, err error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	switch err := json.Unmarshal(raw, &head); {
	case !json.Valid(raw):
		return file, errors.New("it is not one JSON document: no state of this program, or not all of one")
	case err != nil || head.Format != stateFormat:
		return file, errors.New("it is not the state of this program: its format is not " + stateFormat)
	case head.Version != stateVersion:
		return file, fmt.Errorf("it has version %d; this program reads version %d", head.Version, stateVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return file, fmt.Errorf("it is damaged: %w", err)
	}
	if len(file.Worlds) > maxWorlds {
		return file, fmt.Errorf("at most %d worlds", maxWorlds)
	}
	return file, nil
}

func (s *Server) readWorld(st worldState) (*world, error) {
	if err := check("name", st.Name, "world"); err != nil {
		return nil, err
	}
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
