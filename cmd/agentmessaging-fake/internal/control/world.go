package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// world is one fake, and what was made through the control interface.
type world struct {
	server   *Server
	name     string
	settings Settings
	fake     *fakeserver.Server
	hub      *hub
	gone     context.Context
	leave    context.CancelFunc

	mu                         sync.Mutex // held by every handler
	scripts, faults, snapshots kept
}

const (
	maxWorlds  = 1000
	keyMissing = "missing" // what the fake calls the key of a call without one
	noLimit    = math.MaxInt32
	keyPrefix  = "amk_world_"
)

// makeWorld makes a world that nobody knows yet.
func (s *Server) makeWorld(name string, o Settings) (*world, error) {
	o = o.over(s.options.Settings).over(Settings{string(fakeserver.PlanPreview), limitsOfPlan, fixed})
	fake, err := fakeserver.Open(s.fakeOptions(name, o)...)
	if err != nil {
		return nil, err
	}
	w := &world{server: s, name: name, settings: o, fake: fake, hub: newHub()}
	w.gone, w.leave = context.WithCancel(s.ended)
	fake.OnCall(w.hub.called)
	return w, w.begin()
}

// begin puts in place what each world begins with, and begins with again
// after a reset.
func (w *world) begin() error {
	w.scripts, w.faults = kept{kind: "reply", most: maxRules}, kept{kind: "fault", most: maxRules}
	w.snapshots = kept{kind: "snapshot", most: maxSnapshots}
	for i, spec := range w.server.scripts {
		if _, err := w.addScript(spec); err != nil {
			return fmt.Errorf("replies[%d].%w", i, err)
		}
	}
	if d := w.server.options.Latency; d > 0 {
		text := d.String()
		w.inject(newFault{Fault: faultSpec{Kind: "latency", Duration: &text}})
	}
	return nil
}

// reset is POST reset.
func (w *world) reset(*request) (any, error) {
	w.fake.Reset()
	if err := w.begin(); err != nil {
		return nil, conflict("%v", err) // what a world once began with, it can begin with again
	}
	return nil, nil
}

// worldView is a world in a list.
type worldView struct {
	Name string `json:"name"`
	Settings
	Keys   int `json:"keys"`
	Agents int `json:"agents"`
	Calls  int `json:"calls"`
}

// listWorlds is GET worlds.
func (s *Server) listWorlds(*request) (any, error) {
	s.mu.Lock()
	worlds := slices.Collect(maps.Values(s.worlds))
	s.mu.Unlock()
	slices.SortFunc(worlds, func(a, b *world) int { return cmp.Compare(rank(a), rank(b)) })
	views := []worldView{}
	for _, w := range worlds {
		of := w.fake.Admin()
		views = append(views, worldView{w.name, w.settings, len(of.Keys()), of.AgentCount(), of.TotalCalls()})
	}
	return map[string]any{"worlds": views}, nil
}

// rank orders worlds by name, behind the one named default.
func rank(w *world) string {
	if w.name == defaultWorld {
		return ""
	}
	return w.name
}

// newWorld is the body of POST worlds.
type newWorld struct {
	Name string `json:"name" check:"world"`
	Settings
}

// createWorld is POST worlds.
func (s *Server) createWorld(body newWorld) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := body.Name
	if name == "" {
		name = s.nextName()
	}
	if err := s.takes(name); err != nil {
		return nil, err
	}
	w, err := s.makeWorld(name, body.Settings)
	if err != nil {
		return nil, conflict("%v", err)
	}
	s.worlds[name] = w
	return struct {
		Name string `json:"name"`
		Settings
		Key string `json:"key"`
	}{name, w.settings, w.fake.Key()}, nil
}

// nextName is the next name that no world has. s.mu is held.
func (s *Server) nextName() string {
	for {
		s.made++
		if name := fmt.Sprintf("world-%d", s.made); s.worlds[name] == nil {
			return name
		}
	}
}

// takes refuses a world that there is no room for. s.mu is held.
func (s *Server) takes(name string) error {
	switch {
	case s.worlds[name] != nil:
		return conflict("name: there is a world with this name already")
	case len(s.worlds) >= maxWorlds:
		return conflict("there are %d worlds already, and no more are kept; DELETE one first", maxWorlds)
	}
	return nil
}

// deleteWorld is DELETE worlds/{world}.
func (s *Server) deleteWorld(r *request) (any, error) {
	name := r.param("world")
	if name == defaultWorld {
		return nil, conflict("the world named default is always there; POST reset empties it")
	}
	s.mu.Lock()
	w := s.worlds[name]
	delete(s.worlds, name)
	s.mu.Unlock()
	if w == nil {
		return nil, notFound("no world has this name")
	}
	w.leave()
	_ = w.fake.Close()
	return nil, nil
}

// Service is the service of all worlds at one address: a call reaches the
// world of its key, and without one the world named default.
func (s *Server) Service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.worldOf(bearer(r)).fake.ServeHTTP(w, r)
	})
}

func (s *Server) worldOf(key string) *world {
	if rest, of := strings.CutPrefix(key, keyPrefix); of {
		name, _, _ := strings.Cut(rest, "_")
		if w := s.worldNamed(name); w != nil {
			return w
		}
	}
	return s.worldNamed(defaultWorld)
}
