package fakeserver

import "github.com/agent-messaging-service/agentmessaging-go/internal/spec"

// status is interface 4.1. The values are the fake's: the interface shows only
// their types.
func (s *Server) status(*request) (operation, *failure) {
	return operation{act: func() reply {
		return &statusReply{OK: true, Service: "agent-messaging-fake", Version: "v1", Mode: "preview"}
	}}, nil
}

// warmUp is interface 4.2. A store that is down cannot say that it has
// nothing, so 503 comes before 409.
func (s *Server) warmUp(req *request) (operation, *failure) {
	mode := req.members.text(spec.WarmUpMode)
	switch {
	case req.malformed != nil: // the mode cannot be read, so no 403 before it
		return operation{}, req.malformed
	case mode != modeBYOK:
		mode = modeHosted // the default
	case !req.key.dashboard:
		return operation{}, forbidden()
	case req.world.byokUnavailable:
		return operation{}, byokUnavailable(503, spec.WarmUpMode)
	case req.key.byok == nil:
		return operation{}, byokNotConfigured(409, spec.WarmUpMode)
	}
	return operation{limits: []spec.LimitKey{spec.WarmUpKeyHour}, act: func() reply {
		req.key.warm = true
		return &warmUpReply{OK: true, Warmed: true, Mode: mode}
	}}, nil
}
