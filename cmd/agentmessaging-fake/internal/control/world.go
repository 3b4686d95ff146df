package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
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

	mu        sync.Mutex // held by every handler
	scripts   rules[scriptSpec]
	faults    rules[faultRule]
	snapshots []snapshot
	taken     int // snapshots
}

const (
	maxWorlds     = 1000
	maxExchanges  = 1000     // kept of each conversation
	bodyLimit     = 16 << 10 // bytes kept of each body
	metadataCap   = 4096     // characters of compact JSON
	noLimit       = math.MaxInt32
	keyPrefix     = "amk_world_"
	worldNameSays = "must be 1 to 63 of a to z, 0 to 9 and -, and not begin with -"
)

// worldName has no underscore, so that no key of one world can be one of
// another.
var worldName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// newWorld makes a world that nobody knows yet.
func (s *Server) newWorld(name string, o Settings) (*world, error) {
	o = o.over(s.options.Settings).over(Settings{string(fakeserver.PlanPreview), limitsOfPlan, fixed})
	if flaw := o.flaw(); flaw != nil {
		return nil, fmt.Errorf("%s", flaw.Reason)
	}
	fake, err := fakeserver.Open(s.fakeOptions(name, o)...)
	if err != nil {
		return nil, err
	}
	w := &world{server: s, name: name, settings: o, fake: fake, hub: newHub(fake)}
	w.gone, w.leave = context.WithCancel(s.ended)
	fake.OnCall(w.hub.called)
	return w, w.begin()
}

// begin puts in place what each world begins with, and begins with again
// after a reset.
func (w *world) begin() error {
	w.scripts, w.faults, w.snapshots, w.taken = newRules[scriptSpec]("reply"), newRules[faultRule]("fault"), nil, 0
	for i, spec := range w.server.scripts {
		if _, refused := w.script(spec); refused != nil {
			return fmt.Errorf("replies[%d].%s", i, refused.Reason)
		}
	}
	if d := w.server.options.Latency; d > 0 {
		text := d.String()
		w.inject(faultRule{Fault: faultSpec{Kind: "latency", Duration: &text}}, fakeserver.Latency(d))
	}
	return nil
}

// reset is POST reset.
func (w *world) reset(*request) (answer, *refusal) {
	w.fake.Reset()
	if err := w.begin(); err != nil {
		return answer{}, conflict("%v", err) // what a world once began with, it can begin with again
	}
	w.hub.changed(changedReset)
	return done()
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
func (s *Server) listWorlds(*request) (answer, *refusal) {
	s.mu.Lock()
	worlds := slices.Collect(maps.Values(s.worlds))
	s.mu.Unlock()
	slices.SortFunc(worlds, func(a, b *world) int {
		return cmp.Or(-cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
	views := []worldView{}
	for _, w := range worlds {
		views = append(views, worldView{w.name, w.settings, len(w.fake.Admin().Keys()), w.fake.Admin().AgentCount(), w.fake.Admin().TotalCalls()})
	}
	return ok(map[string]any{"worlds": views})
}

func rank(w *world) int {
	if w.name == defaultWorld {
		return 1
	}
	return 0
}

// newWorldBody is the body of POST worlds.
type newWorldBody struct {
	Name    *string `json:"name"`
	Plan    *string `json:"plan"`
	Limits  *string `json:"limits"`
	Windows *string `json:"windows"`
}

func (b newWorldBody) flaw() *refusal {
	var flaws []*refusal
	if b.Name != nil && !worldName.MatchString(*b.Name) {
		flaws = append(flaws, badRequest("name", worldNameSays))
	}
	for _, m := range []struct {
		name    string
		value   *string
		allowed []string
	}{{"plan", b.Plan, PlanNames}, {"limits", b.Limits, LimitNames}, {"windows", b.Windows, WindowNames}} {
		if m.value != nil {
			flaws = append(flaws, oneOf(m.name, *m.value, m.allowed))
		}
	}
	return first(flaws...)
}

// createWorld is POST worlds.
func (s *Server) createWorld(r *request) (answer, *refusal) {
	body, refused := decode[newWorldBody](r.body)
	if refused == nil {
		refused = body.flaw()
	}
	if refused != nil {
		return answer{}, refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := given(body.Name)
	if body.Name == nil {
		name = s.nextName()
	}
	if refused := s.takes(name); refused != nil {
		return answer{}, refused
	}
	w, err := s.newWorld(name, Settings{given(body.Plan), given(body.Limits), given(body.Windows)})
	if err != nil {
		return answer{}, conflict("%v", err)
	}
	s.worlds[name] = w
	return created(struct {
		Name string `json:"name"`
		Settings
		Key string `json:"key"`
	}{name, w.settings, w.fake.Key()})
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
func (s *Server) takes(name string) *refusal {
	switch {
	case s.worlds[name] != nil:
		return conflict("name: there is a world with this name already")
	case len(s.worlds) >= maxWorlds:
		return conflict("there are %d worlds already, and no more are kept; DELETE those that are done", maxWorlds)
	}
	return nil
}

// deleteWorld is DELETE worlds/{world}.
func (s *Server) deleteWorld(r *request) (answer, *refusal) {
	name := r.param("world")
	if name == defaultWorld {
		return answer{}, conflict("the world named default is always there; POST reset empties it")
	}
	s.mu.Lock()
	w := s.worlds[name]
	delete(s.worlds, name)
	s.mu.Unlock()
	if w == nil {
		return answer{}, notFound("no world has this name")
	}
	w.leave()
	_ = w.fake.Close()
	return done()
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
