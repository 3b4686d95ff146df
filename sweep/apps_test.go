package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// app is an application, as it is or mended, that returns what it reports.
type app = func(e *sweep.Env, mended bool) error

type checks = []sweep.Check

// twins are an application with a bug, and its mended twin.
type twins struct {
	name string
	find checks
	run  app
}

// apps are applications with one bug each, and their mended twins.
var apps = []twins{
	{"a notification whose error nobody reads", checks{sweep.Swallowed}, notify},
	{"a second try without the prompt", checks{sweep.Truth}, withoutPrompt},
	{"a message that is sent again after any error", checks{sweep.Doubled}, resend},
	{"a loop until it works", checks{sweep.Ends, sweep.Quota, sweep.DeadKey}, untilItWorks},
	{"a key that is cleared before the new one is stored", checks{sweep.LostBYOK}, rotate},
	{"a key that stays where its use fails", checks{sweep.LostBYOK}, trial},
	{"a key that bars the next start", checks{sweep.Resumes}, barred},
	{"a reply that is read before the error", checks{sweep.Panics}, readFirst},
	{"a worker whose result nobody fetches", checks{sweep.Leak}, worker},
	{"a mark that stays where the message was refused", checks{sweep.Resumes}, markStays},
	{"workers of which one error is kept", checks{sweep.Swallowed}, workers},
	{"a file whose error nobody reads", checks{sweep.LostAgent}, save},
	{"an agent that is kept only once it has answered", checks{sweep.LostAgent}, keptLate},
	{"a key in an error", checks{sweep.Secret}, quotes},
	{"three messages of which the first failure is told and the others are marked", checks{sweep.Lost}, firstFailure},
	{"a new agent for each that is not found", checks{sweep.Ends, sweep.Quota}, newAgents},
	{"an agent that is gone and asked for ever", checks{sweep.Resumes}, askForEver},
}

// windows are applications that lose or repeat something where their process
// dies at the wrong moment, and their mended twins.
var windows = []twins{
	{"a mark after the message", checks{sweep.Doubled}, markAfter},
	{"a mark before the message", checks{sweep.Lost}, markBefore},
	{"an item of the outbox that is sent again", checks{sweep.Doubled}, outboxRepeats},
	{"an agent's file that may be empty", checks{sweep.Resumes}, emptyFile},
	{"a state that is rewritten in place", checks{sweep.Doubled}, rewritten},
	{"a journal that knows no torn line", checks{sweep.Lost}, tornLine},
	{"a lock that outlives its process", checks{sweep.Lost}, staleLock},
	{"an agent without a note that it is about to be created", checks{sweep.LostAgent}, noIntent},
	{"a key for a trial that nobody clears", checks{sweep.LostBYOK}, trialLeft},
	{"a doubt that is sent again while it is young", checks{sweep.Doubled}, youngDoubt},
	{"a recovery that forgets the doubt before it tells", checks{sweep.Lost}, forgetsDoubt},
}

// right are applications in which nothing is wrong.
var right = []struct {
	name string
	run  func(e *sweep.Env) error
	opts []sweep.Option
}{
	{"an outbox", func(e *sweep.Env) error { return outboxRepeats(e, true) }, nil},
	{"a pool of workers", pool, nil},
	{"an errgroup", group, nil},
	{"one flight for many callers", singleFlight, nil},
	{"a webhook that comes twice", webhook, nil},
	{"a breaker", breaker, nil},
	{"a backoff on top", backoff, nil},
	{"a detached context", detached, nil},
	{"an HTTP handler that falls back", fallback, nil},
	{"a poller", poll, []sweep.Option{ // whatever fails means "not yet"
		sweep.Without(sweep.Swallowed, fakeserver.EndpointStatus), sweep.Without(sweep.DeadKey, fakeserver.EndpointStatus)}},
	{"a fan-out to four agents", fanOut, nil},
	{"a key that is read back", readBack, nil},
	{"a channel that is looked up", lookUp, nil},
	{"a sender that repeats what is in doubt and says so", saysSo, nil},
}

func text(s string) agentmessaging.MessageParams { return agentmessaging.MessageParams{Text: s} }

func send(e *sweep.Env, id, s string) error {
	_, err := e.Client.SendMessage(e.Context(), id, text(s))
	return err
}

// put writes a file of Dir whole, by moving it into place.
func put(e *sweep.Env, name, content string) error {
	file := filepath.Join(e.Dir, name)
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// get reads a file of Dir; "" where there is none.
func get(e *sweep.Env, name string) string {
	content, _ := os.ReadFile(filepath.Join(e.Dir, name))
	return string(content)
}

func remove(e *sweep.Env, name string) error {
	err := os.Remove(filepath.Join(e.Dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// agentOf returns the agent of Dir, and creates it where there is none.
func agentOf(e *sweep.Env) (string, error) {
	return created(e, func(id string) error { return put(e, "agent", id) })
}

// created is agentOf with another way to keep the agent. Whether a creation was
// carried out whose answer is lost nobody can look up: it says so.
func created(e *sweep.Env, keep func(id string) error) (string, error) {
	if id := get(e, "agent"); id != "" {
		return id, remove(e, "creating")
	}
	if get(e, "creating") != "" {
		e.Told("an agent for customer-7 may have been created before")
	}
	if err := put(e, "creating", "customer-7"); err != nil {
		return "", err
	}
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{CustomerRef: "customer-7"})
	switch {
	case err == nil:
		return agent.ID, errors.Join(keep(agent.ID), remove(e, "creating"))
	case !errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		err = errors.Join(err, remove(e, "creating"))
	}
	return "", err
}

// deliver sends a text at most once, under a name of its own: it notes what it is
// about to do, and says what is in doubt.
func deliver(e *sweep.Env, id, name, s string) error {
	switch get(e, name) {
	case "sent":
		return nil
	case "sending":
		e.Told("in doubt: " + s)
		return nil
	}
	if err := put(e, name, "sending"); err != nil {
		return err
	}
	err := forget404(e, send(e, id, s))
	switch {
	case err == nil:
		return put(e, name, "sent")
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return err
	}
	return errors.Join(err, remove(e, name))
}

// forget404 forgets an agent that is gone: the next start gets another one.
func forget404(e *sweep.Env, err error) error {
	if errors.Is(err, agentmessaging.ErrNotFound) {
		err = errors.Join(err, remove(e, "agent"))
	}
	return err
}

func welcome(e *sweep.Env, deliver func(e *sweep.Env, id, name, s string) error, texts ...string) error {
	id, err := agentOf(e)
	for i, s := range texts {
		if err == nil {
			err = deliver(e, id, fmt.Sprint("message", i), s)
		}
	}
	return err
}

func notify(e *sweep.Env, mended bool) error {
	id, err := agentOf(e)
	if err == nil {
		sent := forget404(e, send(e, id, "Your parcel has arrived."))
		if mended {
			err = sent
		}
	}
	return err
}

func withoutPrompt(e *sweep.Env, mended bool) error {
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{SystemPrompt: "Speak like a pirate."})
	if errors.Is(err, agentmessaging.ErrBadRequest) && !mended {
		agent, err = e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	}
	if err == nil {
		e.Logf("created %s", agent.ID)
	}
	return err
}

func resend(e *sweep.Env, mended bool) error {
	return welcome(e, func(e *sweep.Env, id, _, s string) (err error) {
		for tries := 0; tries < 3; tries++ {
			if err = forget404(e, send(e, id, s)); err == nil || mended && errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
				break
			}
		}
		return err
	}, "Your bill")
}

// Three tries are as many as the checks allow.
func untilItWorks(e *sweep.Env, mended bool) error {
	for tries := 1; ; tries++ {
		_, err := e.Client.Status(e.Context())
		if err == nil || mended && tries == 3 {
			return err
		}
	}
}

// store sets a provider key.
func store(e *sweep.Env, key agentmessaging.Secret) error {
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
	return err
}

func rotate(e *sweep.Env, mended bool) error {
	if config, err := e.Client.GetBYOK(e.Context()); err != nil {
		return err
	} else if config != nil && !mended {
		if err := e.Client.ClearBYOK(e.Context()); err != nil {
			return err
		}
	}
	return store(e, "sk-today")
}

func trial(e *sweep.Env, mended bool) error {
	err := store(e, "sk-trial")
	if err == nil {
		_, err = e.Client.WarmUp(e.Context(), agentmessaging.LLMModeBYOK)
	}
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(e.Context()))
	}
	return err
}

func barred(e *sweep.Env, mended bool) error {
	config, err := e.Client.GetBYOK(e.Context())
	if err == nil && config != nil && !mended {
		err = errors.New("a key is stored already")
	}
	if err != nil {
		return err
	}
	return trial(e, true)
}

func readFirst(e *sweep.Env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	reply, err := e.Client.SendMessage(e.Context(), id, text("Hello"))
	if mended && err != nil {
		return forget404(e, err)
	}
	fmt.Fprintln(e.Output(), reply.Text)
	return err
}

func worker(e *sweep.Env, mended bool) error {
	result := make(chan error)
	go func() {
		_, err := e.Client.Status(e.Context())
		result <- err
	}()
	_, err := e.Client.GetBYOK(e.Context())
	if errors.Is(err, agentmessaging.ErrPaymentRequired) && !mended {
		return err
	}
	return errors.Join(err, <-result)
}

func markStays(e *sweep.Env, mended bool) error {
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		err := deliver(e, id, name, s)
		if err != nil && !mended {
			err = errors.Join(err, put(e, name, "sent"))
		}
		return err
	}, "Welcome")
}

func workers(e *sweep.Env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	errs := each(2, func(i int) error { return send(e, id, fmt.Sprint("part ", i)) })
	if !mended {
		errs = errs[:1]
	}
	return forget404(e, errors.Join(errs...))
}

// each runs f for so many numbers at once.
func each(n int, f func(i int) error) []error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}

func save(e *sweep.Env, mended bool) error {
	_, err := created(e, func(id string) error {
		err := e.Point("save")
		if err == nil {
			err = put(e, "agent", id)
		}
		if err != nil && mended {
			return fmt.Errorf("%s is not saved: %w", id, err)
		}
		return nil
	})
	return err
}

func keptLate(e *sweep.Env, mended bool) error {
	if mended {
		return notify(e, true)
	}
	id := get(e, "agent")
	if id == "" {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{CustomerRef: "customer-7"})
		if err != nil {
			return err
		}
		id = agent.ID
	}
	if err := send(e, id, "Where is my order?"); err != nil {
		return err
	}
	return put(e, "agent", id)
}

func quotes(e *sweep.Env, mended bool) error {
	const key = "sk-today"
	err := store(e, key)
	if err != nil && !mended {
		err = fmt.Errorf("cannot store %s: %w", key, err)
	}
	return err
}

func firstFailure(e *sweep.Env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	var first error
	for i, s := range []string{"Red", "Green", "Blue"} {
		name := fmt.Sprint("message", i)
		switch {
		case first == nil || mended:
			first = errors.Join(first, deliver(e, id, name, s))
		default:
			first = errors.Join(first, put(e, name, "sent"))
		}
	}
	return first
}

func newAgents(e *sweep.Env, mended bool) error {
	for tries := 0; ; tries++ {
		id, err := agentOf(e)
		if err == nil {
			err = forget404(e, send(e, id, "Hello"))
		}
		if !errors.Is(err, agentmessaging.ErrNotFound) || mended && tries == 1 {
			return err
		}
	}
}

func askForEver(e *sweep.Env, mended bool) error {
	return welcome(e, func(e *sweep.Env, id, _, s string) error {
		err := send(e, id, s)
		if mended {
			err = forget404(e, err)
		}
		return err
	}, "Hello")
}

func markAfter(e *sweep.Env, mended bool) error {
	if mended {
		return welcome(e, deliver, "Ready")
	}
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		if get(e, name) != "" {
			return nil
		}
		err := forget404(e, send(e, id, s))
		if err == nil {
			err = put(e, name, "sent")
		}
		return err
	}, "Ready")
}

func markBefore(e *sweep.Env, mended bool) error {
	if mended {
		return welcome(e, deliver, "Ready")
	}
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		if get(e, name) != "" {
			return nil
		}
		if err := put(e, name, "sent"); err != nil {
			return err
		}
		err := forget404(e, send(e, id, s))
		if err != nil && !errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			err = errors.Join(err, remove(e, name))
		}
		return err
	}, "Ready")
}

// fill puts two items into an outbox, once.
func fill(e *sweep.Env) error {
	if get(e, "filled") != "" {
		return nil
	}
	return errors.Join(put(e, "item1", "One"), put(e, "item2", "Two"), put(e, "filled", "yes"))
}

func outboxRepeats(e *sweep.Env, mended bool) error {
	return outbox(e, func(id, item string) error {
		if mended {
			return deliver(e, id, "state-"+item, get(e, item))
		}
		err := forget404(e, send(e, id, get(e, item)))
		if err == nil {
			err = remove(e, item)
		}
		return err
	})
}

// outbox treats each item that is there; of those that fail it says so.
func outbox(e *sweep.Env, treat func(id, item string) error) error {
	if err := fill(e); err != nil {
		return err
	}
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	items, _ := filepath.Glob(filepath.Join(e.Dir, "item?"))
	for _, item := range items {
		err = errors.Join(err, treat(id, filepath.Base(item)))
	}
	return err
}

func emptyFile(e *sweep.Env, mended bool) error {
	if mended {
		return notify(e, true)
	}
	id, err := os.ReadFile(filepath.Join(e.Dir, "agent"))
	if err != nil {
		if get(e, "creating") != "" {
			e.Told("an agent may have been created before")
		}
		if err := put(e, "creating", "yes"); err != nil {
			return err
		}
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
		if err != nil {
			return err
		}
		id = []byte(agent.ID)
		if err := os.WriteFile(filepath.Join(e.Dir, "agent"), id, 0o600); err != nil {
			return err
		}
	}
	return forget404(e, send(e, string(id), "Your parcel has arrived."))
}

func rewritten(e *sweep.Env, mended bool) error {
	keep := func(state map[string]string) error {
		content, err := json.Marshal(state)
		if err == nil && !mended {
			return os.WriteFile(filepath.Join(e.Dir, "state"), content, 0o600)
		}
		return errors.Join(err, put(e, "state", string(content)))
	}
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		state := map[string]string{}
		_ = json.Unmarshal([]byte(get(e, "state")), &state)
		switch state[name] {
		case "sent":
			return nil
		case "sending":
			e.Told("in doubt: " + s)
			return nil
		}
		state[name] = "sending"
		if err := keep(state); err != nil {
			return err
		}
		err := forget404(e, send(e, id, s))
		if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			return err
		}
		if state[name] = "sent"; err != nil {
			delete(state, name)
		}
		return errors.Join(err, keep(state))
	}, "Alpha", "Beta")
}

func tornLine(e *sweep.Env, mended bool) error {
	lines := strings.SplitAfter(get(e, "journal"), "\n")
	state := map[string]string{}
	for _, line := range lines {
		name, what, whole := strings.Cut(strings.TrimSpace(line), " ")
		if !whole && line != "" && !mended {
			return errors.New("the journal is broken")
		}
		if strings.HasSuffix(line, "\n") {
			state[name] = what
		}
	}
	note := func(line string) error {
		if !strings.HasSuffix(get(e, "journal"), "\n") && get(e, "journal") != "" {
			line = "\n" + line
		}
		f, err := os.OpenFile(filepath.Join(e.Dir, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(line + "\n")
		return errors.Join(err, f.Close())
	}
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		switch state[name] {
		case "sent":
			return nil
		case "sending":
			e.Told("in doubt: " + s)
			return nil
		}
		if err := note(name + " sending"); err != nil {
			return err
		}
		switch err := forget404(e, send(e, id, s)); {
		case err == nil:
			return note(name + " sent")
		case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
			return err
		default:
			return errors.Join(err, note(name+" planned"))
		}
	}, "Alpha", "Beta")
}

func staleLock(e *sweep.Env, mended bool) error {
	if !mended {
		lock, err := os.OpenFile(filepath.Join(e.Dir, "lock"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return errors.New("another process is running")
		}
		defer os.Remove(lock.Name())
		defer lock.Close()
	}
	return welcome(e, deliver, "Alpha", "Beta")
}

func noIntent(e *sweep.Env, mended bool) error {
	if mended {
		return notify(e, true)
	}
	id := get(e, "agent")
	if id == "" {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
		if err != nil {
			return err
		}
		if id = agent.ID; put(e, "agent", id) != nil {
			return fmt.Errorf("cannot keep %s", id)
		}
	}
	return forget404(e, send(e, id, "Where is my order?"))
}

func trialLeft(e *sweep.Env, mended bool) error {
	if !mended && get(e, "tried") != "" {
		return nil
	}
	if err := put(e, "tried", "yes"); err != nil {
		return err
	}
	err := trial(e, true)
	if err == nil {
		err = remove(e, "tried")
	}
	return err
}

func forgetsDoubt(e *sweep.Env, mended bool) error {
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		if get(e, name) == "sending" && !mended {
			if err := put(e, name, "sent"); err != nil {
				return err
			}
			_, _ = e.Client.Status(e.Context()) // the line is up
			e.Told("in doubt: " + s)
		}
		return deliver(e, id, name, s)
	}, "Ready")
}

func youngDoubt(e *sweep.Env, mended bool) error {
	return welcome(e, func(e *sweep.Env, id, name, s string) error {
		began, err := time.Parse(time.RFC3339, get(e, "began"))
		if err != nil {
			err = put(e, "began", time.Now().Format(time.RFC3339))
		} else if !mended && get(e, name) == "sending" && time.Since(began) < time.Hour {
			err = errors.Join(send(e, id, s), put(e, name, "sent"))
		}
		if err != nil {
			return err
		}
		return deliver(e, id, name, s)
	}, "Ready")
}

func pool(e *sweep.Env) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	jobs, results := make(chan int), make(chan error)
	for range 2 {
		go func() {
			for i := range jobs {
				results <- deliver(e, id, fmt.Sprint("job", i), fmt.Sprint("Job number ", i))
			}
		}()
	}
	go func() {
		for i := range 4 {
			jobs <- i
		}
		close(jobs)
	}()
	for range 4 {
		err = errors.Join(err, <-results)
	}
	return err
}

// group stops at the first error, and returns that one alone.
func group(e *sweep.Env) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(e.Context())
	defer cancel(nil)
	each(3, func(i int) error {
		if _, err := e.Client.SendMessage(ctx, id, text(fmt.Sprint("Section ", i))); err != nil {
			cancel(forget404(e, err))
		}
		return nil
	})
	return context.Cause(ctx)
}

func singleFlight(e *sweep.Env) error {
	var mu sync.Mutex
	var landed chan struct{} // nil before the first caller
	var id string
	var failed error
	return errors.Join(each(2, func(i int) error {
		mu.Lock()
		first := landed == nil
		if first {
			landed = make(chan struct{})
		}
		mu.Unlock()
		if first {
			id, failed = agentOf(e)
			close(landed)
		}
		if <-landed; failed != nil {
			return failed
		}
		return deliver(e, id, fmt.Sprint("caller", i), fmt.Sprint("Hello from caller ", i))
	})...)
}

// webhook gets the same event twice, since its sender repeats what was not
// acknowledged.
func webhook(e *sweep.Env) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := agentOf(e)
		if err == nil {
			err = deliver(e, id, "event-"+r.FormValue("event"), "Order 7 has been paid.")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/hook?event=paid-7", nil))
		if w.Code != http.StatusOK {
			e.Told(w.Body.String())
		}
	}
	return nil
}

func breaker(e *sweep.Env) error {
	failures, opened := 0, time.Time{}
	var errs []error
	for range 5 {
		if failures >= 2 && time.Since(opened) < 30*time.Second {
			errs = append(errs, errors.New("the service is away"))
		} else if _, err := e.Client.Status(e.Context()); err != nil {
			failures, opened, errs = failures+1, time.Now(), append(errs, err)
		} else {
			failures = 0
		}
		time.Sleep(time.Second)
	}
	return errors.Join(errs...)
}

func backoff(e *sweep.Env) error {
	return welcome(e, func(e *sweep.Env, id, name, s string) (err error) {
		for wait := time.Second; wait < 8*time.Second; wait *= 2 {
			if err = deliver(e, id, name, s); err == nil || !errors.Is(err, agentmessaging.ErrUnavailable) && !errors.Is(err, agentmessaging.ErrServer) ||
				errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
				return err
			}
			time.Sleep(wait)
		}
		return err
	}, "Good morning")
}

func detached(e *sweep.Env) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), 20*time.Second)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := e.Client.SendMessage(ctx, id, text("In the background"))
		result <- err
	}()
	return forget404(e, <-result)
}

func fallback(e *sweep.Env) error {
	w := httptest.NewRecorder()
	id, err := agentOf(e)
	if err == nil {
		var reply *agentmessaging.Reply
		if reply, err = e.Client.SendMessage(e.Context(), id, text("When do you open?")); err == nil {
			fmt.Fprint(w, reply.Text)
		}
	}
	if forget404(e, err) != nil {
		fmt.Fprint(w, "We open at nine, I think.")
	}
	e.Told(w.Body.String())
	return nil
}

func poll(e *sweep.Env) error {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for range 5 {
		if status, err := e.Client.Status(e.Context()); err == nil && status.OK {
			return nil
		}
		<-ticker.C
	}
	return errors.New("the service is not ready")
}

func fanOut(e *sweep.Env) error {
	return errors.Join(each(4, func(i int) error {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{SystemPrompt: fmt.Sprint("Expert ", i)})
		if err == nil {
			err = send(e, agent.ID, "What do you think?")
			e.Logf("used %s", agent.ID)
		}
		return err
	})...)
}

func readBack(e *sweep.Env) error {
	err := store(e, "sk-today")
	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		if config, look := e.Client.GetBYOK(e.Context()); look != nil || config != nil {
			return look
		}
	}
	return err
}

func lookUp(e *sweep.Env) error {
	return welcome(e, func(e *sweep.Env, id, _, _ string) error {
		_, err := e.Client.EnableSMS(e.Context(), id, agentmessaging.SMSModeSandbox)
		if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			agent, look := e.Client.GetAgent(e.Context(), id)
			if look != nil {
				return forget404(e, look)
			}
			if agent.SMS != nil && agent.SMS.Status != agentmessaging.SMSStatusDisabled {
				return nil
			}
		}
		return forget404(e, err)
	}, "")
}

func saysSo(e *sweep.Env) error {
	return welcome(e, func(e *sweep.Env, id, _, s string) (err error) {
		for tries := 0; tries < 3; tries++ {
			if err = forget404(e, send(e, id, s)); err == nil {
				return nil
			}
			e.Reports(err)
		}
		return err
	}, "Welcome")
}
