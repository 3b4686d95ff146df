package control

import (
	"bytes"
	"net/http"
)

// save is POST save.
func (s *Server) save(*request) (any, error) {
	if s.options.Save == nil {
		return nil, conflict("the program was started without --state")
	}
	if err := s.options.Save(); err != nil {
		return nil, refuse(http.StatusInternalServerError, "not_saved", err.Error())
	}
	return nil, nil
}

// readState is GET state.
func (s *Server) readState(*request) (any, error) {
	return stream(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = s.WriteState(rw) // the client may be gone
	}), nil
}

// putState is PUT state.
func (s *Server) putState(r *request) (any, error) {
	if err := s.ReadState(bytes.NewReader(r.body)); err != nil {
		return nil, badRequest("body", "%v", err)
	}
	return nil, nil
}
