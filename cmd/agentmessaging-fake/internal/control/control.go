// Package control is the fake's control interface: all that package fakeserver
// can do, as JSON over HTTP, and worlds, which are fakes that share a server
// and nothing else. openapi.yaml describes it.
//
// routes.go lists all of it. An act is a method of the world, key or agent that
// the path names; it gets the body as a struct whose tags say what is allowed,
// returns what becomes the answer, and knows no status. Its struct and itself
// check all that fakeserver would panic for. It runs under the lock of its world,
// so that what was checked still holds when it acts. The lock is never held while
// something is read, written or waited for.
package control

import (
	"context"
	_ "embed" // for the document
	"fmt"
	"net/http"
	"sync"
	"time"
)

//go:embed openapi.yaml
var openAPI []byte

// Options say how a Server works. The zero value of each field means that
// there is none of it, unless said otherwise.
type Options struct {
	Version string
	BaseURL string // of the service, without a path
	// Remote says that the server listens on an address that is not loopback:
	// any Host is right then.
	Remote bool
	Hosts  []string // right besides loopback names and addresses
	Token  string   // that each call needs; "": none
	Key    string   // text of the default world's first key; "": amk_fake_000001

	Settings  Settings // of worlds that say nothing else
	ColdStart time.Duration
	Latency   time.Duration             // of every call, until the fault is removed
	Seed      uint64                    // of rules with a chance and without a seed
	Calls     int                       // kept of each world; 0 means 10,000
	Save      func() error              // the state; nil: there is nowhere to save it
	Refuse    func(time.Duration) error // refuses connections for so long; nil: it cannot
	Like      []byte                    // what observe found of a service that each world answers like; nil: the fake's own answers
	Replies   []byte                    // what each world begins with: one body of POST replies, or a list of them
}

// Server is the control interface and the worlds behind it.
type Server struct {
	options Options
	scripts []newScript // of Options.Replies
	mux     *http.ServeMux
	started time.Time
	ended   context.Context
	end     context.CancelFunc

	mu     sync.Mutex // guards what follows; a world's own lock may be taken inside it, never the other way round
	worlds map[string]*world
	made   int // worlds that were named here
}

// defaultWorld always exists: calls with no key of another world go there.
const defaultWorld = "default"

// defaultCalls is how many calls a world keeps.
const defaultCalls = 10_000

// New returns a Server with one world. The error says which option is wrong.
func New(o Options) (*Server, error) {
	if o.Calls == 0 {
		o.Calls = defaultCalls
	}
	scripts, err := readReplies(o.Replies)
	if err != nil {
		return nil, fmt.Errorf("replies: %w", err)
	}
	s := &Server{options: o, scripts: scripts, started: time.Now().UTC(), worlds: map[string]*world{}}
	s.mux = s.newMux()
	s.ended, s.end = context.WithCancel(context.Background())
	w, err := s.makeWorld(defaultWorld, o.Settings)
	if err != nil {
		return nil, err
	}
	s.worlds[defaultWorld] = w
	return s, nil
}

// Key is the first key of the world named default.
func (s *Server) Key() string { return s.worldNamed(defaultWorld).fake.Key() }

// End ends streams and waits, so that a server which drains is not kept.
func (s *Server) End() { s.end() }

func (s *Server) worldNamed(name string) *world {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worlds[name]
}

// info is GET info. A key that was chosen may be a secret; the other one is the
// same in every fake.
func (s *Server) info(*request) (any, error) {
	key := s.Key()
	if s.options.Key != "" {
		key = ""
	}
	return struct {
		Version   string    `json:"version"`
		BaseURL   string    `json:"base_url"`
		StartedAt time.Time `json:"started_at"`
		Remote    bool      `json:"remote"`
		Key       string    `json:"key,omitempty"`
	}{s.options.Version, s.options.BaseURL, s.started, s.options.Remote, key}, nil
}

type pause struct {
	Duration string `json:"duration" check:"required delay"`
}

// refuseConnections is POST refuse.
func (s *Server) refuseConnections(body pause) (any, error) {
	if s.options.Refuse == nil {
		return nil, conflict("this program cannot refuse connections")
	}
	if err := s.options.Refuse(parsed(body.Duration)); err != nil {
		return nil, conflict("%v", err)
	}
	return nil, nil
}

// document is GET openapi.yaml.
func (s *Server) document(*request) (any, error) {
	return stream(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	}), nil
}
