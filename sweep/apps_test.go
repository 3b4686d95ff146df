package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

type env = sweep.Env

// app is an application, as it is or mended, that returns what it tells.
type app = func(e *env, mended bool) error

// apps are small applications with a typical bug or two each, and their mended
// twins: mended says which of the two is meant. Some of the plans are named.
var apps = []struct {
	name  string
	find  []sweep.Check
	run   app
	opts  []sweep.Option
	plans []string
}{
	{"a notification whose error nobody reads", checks{sweep.Swallowed}, notify, nil, []string{
		"CreateAgent_1/bad_request/once", "CreateAgent_1/refused/call", "CreateAgent_1/limited_day/once",
		"SendMessage_1/reply_lost/once", "SendMessage_1/key_revoked/from_on", "SendMessage_1/agent_gone/from_on",
	}},
	{"a second try without the prompt, and a key quoted", checks{sweep.Truth, sweep.Secret}, withoutPrompt, once, nil},
	{"a message that is sent again after any error", checks{sweep.Doubled}, resend, once, nil},
	{"an agent that is created again after any error", checks{sweep.Doubled}, recreate, once, nil},
	{"a loop until it works", checks{sweep.Ends, sweep.Quota, sweep.DeadKey}, untilItWorks, once, nil},
	{"a key that is cleared before the new one is stored, and quoted", checks{sweep.LostBYOK, sweep.Secret}, rotate, once, nil},
	{"a key that stays where its use fails, and bars the next start", checks{sweep.LostBYOK, sweep.Resumes}, trial, once, nil},
	{"a reply that is read before the error", checks{sweep.Panics}, readFirst, once, nil},
	{"a worker whose result nobody fetches", checks{sweep.Leak}, worker, once, nil},
	{"a mark that is set before the message is sent", checks{sweep.Resumes}, markFirst, once, nil},
	// Workers race, so their calls are named by what they do.
	{"workers of which one error is kept", checks{sweep.Swallowed}, workers, once, []string{
		"SendMessage_4d3a83/unauthorized/once", "SendMessage_f8dbf4/unauthorized/once",
	}},
	{"a file whose error nobody reads", checks{sweep.LostAgent}, save, once, []string{"save_1/fails/once", "save_1/fails/from_on"}},
	{"a pause between agents that hides the first one's error", checks{sweep.Swallowed}, paced, append(once, sweep.InBubble()), nil},
}

type checks = []sweep.Check

// once has each call try once, where retries are not the point: there are fewer
// plans, and a wait of one of several goroutines ends when the others rest, which
// takes long on a slow machine.
var once = []sweep.Option{sweep.ClientOptions(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))}

func TestSweepFindsTheBugAndPassesItsMendedTwin(t *testing.T) {
	for _, app := range apps {
		t.Run(app.name, func(t *testing.T) {
			var found checks
			for _, f := range sweeps(t, broken(app.run), app.opts...).found {
				found = append(found, f.Check)
			}
			assert.Subset(t, found, app.find, "checks that failed")
			mended := sweeps(t, mended(app.run), append(app.opts, sweep.InBubble())...)
			assert.Empty(t, mended.reports, "findings of the mended twin")
			assert.Subset(t, mended.plans, app.plans, "plans")
			assert.Empty(t, mended.plans[0], "the undisturbed run is the first")
			assert.Len(t, slices.Compact(slices.Sorted(slices.Values(mended.plans))), len(mended.plans), "each plan runs once")
		})
	}
}

func text(s string) agentmessaging.MessageParams { return agentmessaging.MessageParams{Text: s} }

// agentOf returns the agent of Dir, and creates it where there is none.
func agentOf(e *env) (string, error) {
	file := filepath.Join(e.Dir, "agent")
	if id, err := os.ReadFile(file); err == nil {
		if _, err := e.Client.GetAgent(e.Context(), string(id)); !errors.Is(err, agentmessaging.ErrNotFound) {
			return string(id), err
		}
	}
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{CustomerRef: "customer-7"})
	if err != nil {
		return "", err
	}
	return agent.ID, os.WriteFile(file, []byte(agent.ID), 0o600)
}

func notify(e *env, mended bool) error {
	id, err := agentOf(e)
	if err == nil {
		_, sent := e.Client.SendMessage(e.Context(), id, text("Your parcel has arrived."))
		if mended {
			err = sent
		}
	}
	return err
}

func withoutPrompt(e *env, mended bool) error {
	llm := agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "sk-pirate"}
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{SystemPrompt: "Speak like a pirate.", LLM: llm})
	if !mended {
		e.Logf("stored %s", "sk-pirate")
	}
	if errors.Is(err, agentmessaging.ErrBadRequest) && !mended {
		agent, err = e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	}
	if err == nil {
		e.Logf("created %s", agent.ID)
	}
	return err
}

func resend(e *env, mended bool) error {
	id, err := agentOf(e)
	for tries := 0; err == nil && tries < 3; tries++ {
		_, sent := e.Client.SendMessage(e.Context(), id, text(fmt.Sprint("Bill of ", e.Fake.Now().YearDay())))
		if sent == nil || mended && errors.Is(sent, agentmessaging.ErrOutcomeUnknown) || tries == 2 {
			return sent
		}
	}
	return err
}

func recreate(e *env, mended bool) error {
	for tries := 0; ; tries++ {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{CustomerRef: fmt.Sprint("day ", e.Fake.Now().YearDay())})
		if err == nil {
			e.Logf("created %s", agent.ID)
		}
		if err == nil || tries == 2 || mended && errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			return err
		}
	}
}

// store sets a provider key.
func store(e *env, key agentmessaging.Secret) error {
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
	return err
}

// Three tries are as many as the checks allow.
func untilItWorks(e *env, mended bool) error {
	for tries := 1; ; tries++ {
		_, err := e.Client.WarmUp(e.Context(), "")
		if err == nil || mended && tries == 3 {
			return err
		}
	}
}

func rotate(e *env, mended bool) error {
	const key = "sk-today"
	err := store(e, "sk-yesterday")
	if err == nil && !mended {
		err = e.Client.ClearBYOK(e.Context())
	}
	if err != nil {
		return err
	}
	if err = store(e, key); err != nil && !mended {
		err = fmt.Errorf("cannot store %s: %w", key, err)
	}
	return err
}

func trial(e *env, mended bool) error {
	config, err := e.Client.GetBYOK(e.Context())
	if err != nil {
		return err
	}
	if config != nil && !mended {
		return errors.New("a key is stored already")
	}
	if err = store(e, "sk-trial"); err == nil {
		_, err = e.Client.WarmUp(e.Context(), agentmessaging.LLMModeBYOK)
	}
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(e.Context()))
	}
	return err
}

func readFirst(e *env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	reply, err := e.Client.SendMessage(e.Context(), id, text("Hello"))
	if mended && err != nil {
		return err
	}
	fmt.Fprintln(e.Output(), reply.Text)
	return err
}

func worker(e *env, mended bool) error {
	result := make(chan error)
	go func() {
		_, err := e.Client.Status(e.Context())
		result <- err
	}()
	_, err := e.Client.WarmUp(e.Context(), "")
	if errors.Is(err, agentmessaging.ErrPaymentRequired) && !mended {
		return err
	}
	return errors.Join(err, <-result)
}

func markFirst(e *env, mended bool) error {
	mark := filepath.Join(e.Dir, "sent")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	id, err := agentOf(e)
	if err == nil && !mended {
		err = os.WriteFile(mark, nil, 0o600)
	}
	if err == nil {
		_, err = e.Client.SendMessage(e.Context(), id, text("Welcome"))
	}
	if mended && (err == nil || errors.Is(err, agentmessaging.ErrOutcomeUnknown)) {
		err = errors.Join(err, os.WriteFile(mark, nil, 0o600))
	}
	return err
}

func workers(e *env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		all.Go(func() { _, errs[i] = e.Client.SendMessage(e.Context(), id, text(fmt.Sprint("part ", i))) })
	}
	all.Wait()
	if !mended {
		errs = errs[:1]
	}
	return errors.Join(errs...)
}

func save(e *env, mended bool) error {
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	saved := e.Point("save")
	if saved == nil {
		saved = os.WriteFile(filepath.Join(e.Dir, agent.ID), []byte(agent.ID), 0o600)
	}
	if mended && saved != nil {
		return fmt.Errorf("%s is not saved: %w", agent.ID, saved)
	}
	return nil
}

func paced(e *env, mended bool) error {
	ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
	defer cancel()
	var err error
	for i := 0; i < 2 && err == nil; i++ {
		_, err = e.Client.CreateAgent(ctx, agentmessaging.CreateAgentParams{CustomerRef: fmt.Sprint("customer ", i)})
		time.Sleep(10 * time.Second)
		if !mended && i == 0 {
			err = nil
		}
	}
	return err
}
