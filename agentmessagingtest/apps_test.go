package agentmessagingtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
)

type env = agentmessagingtest.Env

// apps are small applications with one typical bug each, and their mended
// twins: mended says which of the two is meant.
var apps = []struct {
	name string
	find agentmessagingtest.Check
	run  func(e *env, mended bool)
	opts []agentmessagingtest.Option
}{
	{"a notification whose error nobody reads", agentmessagingtest.Swallowed, notify, nil},
	{"a second try without the prompt", agentmessagingtest.Truth, withoutPrompt, nil},
	{"a message that is sent again after any error", agentmessagingtest.Doubled, resend, nil},
	{"an agent that is created again after any error", agentmessagingtest.Doubled, recreate, nil},
	{"retries around the retries of the client", agentmessagingtest.Quota, insist, nil},
	{"a batch that goes on with a dead key", agentmessagingtest.DeadKey, batch, nil},
	{"a key that is cleared before the new one is stored", agentmessagingtest.LostBYOK, rotate, nil},
	{"a key that stays where its use fails", agentmessagingtest.LostBYOK, tryOut, nil},
	{"a loop until it works", agentmessagingtest.Ends, untilItWorks, nil},
	{"a reply that is read before the error", agentmessagingtest.Panics, readFirst, nil},
	{"a worker that waits for a result that never comes", agentmessagingtest.Leak, worker, nil},
	{"an error that quotes the provider key", agentmessagingtest.Secret, quoteKey, nil},
	{"a mark that is set before the message is sent", agentmessagingtest.Resumes, markFirst, nil},
	{"a leftover that keeps the next start from working", agentmessagingtest.Resumes, trial, nil},
	{"workers of which one error is kept", agentmessagingtest.Swallowed, workers, nil},
	{"a file whose error nobody reads", agentmessagingtest.LostAgent, save, nil},
	{"a pause between messages that hides an error", agentmessagingtest.Swallowed, paced, []agentmessagingtest.Option{agentmessagingtest.InBubble()}},
}

func TestSweepFindsTheBugAndPassesItsMendedTwin(t *testing.T) {
	for _, app := range apps {
		t.Run(app.name, func(t *testing.T) {
			found := map[agentmessagingtest.Check]int{}
			take := func(_ string, fs []agentmessagingtest.Finding) {
				for _, f := range fs {
					found[f.Check]++
				}
			}
			opts := append(app.opts, agentmessagingtest.Collect(take))
			t.Run("broken", func(t *testing.T) {
				agentmessagingtest.Sweep(t, func(e *env) { app.run(e, false) }, opts...)
			})
			assert.Positive(t, found[app.find], "found: %v", found)
			t.Run("mended", func(t *testing.T) {
				agentmessagingtest.Sweep(t, func(e *env) { app.run(e, true) }, app.opts...)
			})
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

func notify(e *env, mended bool) {
	id, err := agentOf(e)
	if err == nil {
		_, sent := e.Client.SendMessage(e.Context(), id, text("Your parcel has arrived."))
		if mended {
			err = sent
		}
	}
	e.Reports(err)
}

func withoutPrompt(e *env, mended bool) {
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{SystemPrompt: "Speak like a pirate."})
	if errors.Is(err, agentmessaging.ErrBadRequest) && !mended {
		agent, err = e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	}
	if err == nil {
		e.Logf("created %s", agent.ID)
	}
	e.Reports(err)
}

func resend(e *env, mended bool) {
	id, err := agentOf(e)
	for tries := 0; err == nil && tries < 3; tries++ {
		_, sent := e.Client.SendMessage(e.Context(), id, text(fmt.Sprint("Bill of ", e.Fake.Now().YearDay())))
		if sent == nil || mended && errors.Is(sent, agentmessaging.ErrOutcomeUnknown) || tries == 2 {
			e.Reports(sent)
			return
		}
	}
	e.Reports(err)
}

func recreate(e *env, mended bool) {
	for tries := 0; ; tries++ {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{CustomerRef: fmt.Sprint("day ", e.Fake.Now().YearDay())})
		if err == nil {
			e.Logf("created %s", agent.ID)
		}
		if err == nil || tries == 2 || mended && errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			e.Reports(err)
			return
		}
	}
}

func insist(e *env, mended bool) {
	tries, err := 0, errors.New("not tried")
	for err != nil && tries < 10 && !(mended && tries == 1) {
		_, err = e.Client.Status(e.Context())
		tries++
	}
	e.Reports(err)
}

func batch(e *env, mended bool) {
	for i := range 5 {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
		if err == nil {
			e.Logf("customer %d has %s", i, agent.ID)
		}
		e.Reports(err)
		if mended && (errors.Is(err, agentmessaging.ErrUnauthorized) || errors.Is(err, agentmessaging.ErrPaymentRequired)) {
			return
		}
	}
}

func rotate(e *env, mended bool) {
	ctx := e.Context()
	set := func(key agentmessaging.Secret) error {
		_, err := e.Client.SetBYOK(ctx, agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
		return err
	}
	if err := set("sk-yesterday"); err != nil {
		e.Reports(err)
		return
	}
	if !mended {
		if err := e.Client.ClearBYOK(ctx); err != nil {
			e.Reports(err)
			return
		}
	}
	e.Reports(set("sk-today"))
}

func tryOut(e *env, mended bool) {
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "sk-trial"})
	if err == nil {
		_, err = e.Client.WarmUp(e.Context(), agentmessaging.LLMModeBYOK)
	}
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(e.Context()))
	}
	e.Reports(err)
}

func untilItWorks(e *env, mended bool) {
	for tries := 0; ; tries++ {
		_, err := e.Client.WarmUp(e.Context(), "")
		if err == nil || mended && tries == 1 {
			e.Reports(err)
			return
		}
	}
}

func readFirst(e *env, mended bool) {
	id, err := agentOf(e)
	if err != nil {
		e.Reports(err)
		return
	}
	reply, err := e.Client.SendMessage(e.Context(), id, text("Hello"))
	if mended && err != nil {
		e.Reports(err)
		return
	}
	fmt.Fprintln(e.Output(), reply.Text)
	e.Reports(err)
}

func worker(e *env, mended bool) {
	results := make(chan error)
	if mended {
		results = make(chan error, 1)
	}
	go func() {
		_, err := e.Client.Status(e.Context())
		results <- err
	}()
	_, err := e.Client.WarmUp(e.Context(), "")
	if err == nil {
		err = <-results
	}
	e.Reports(err)
}

func quoteKey(e *env, mended bool) {
	key := agentmessaging.Secret("sk-provider-key")
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
	if err != nil && !mended {
		err = fmt.Errorf("cannot store %s: %w", string(key), err)
	}
	e.Reports(err)
}

func markFirst(e *env, mended bool) {
	mark := filepath.Join(e.Dir, "sent")
	if _, err := os.Stat(mark); err == nil {
		return
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
	e.Reports(err)
}

func trial(e *env, mended bool) {
	ctx := e.Context()
	config, err := e.Client.GetBYOK(ctx)
	if err == nil && config != nil && !mended {
		err = errors.New("a key is stored already")
	}
	if err != nil {
		e.Reports(err)
		return
	}
	_, err = e.Client.SetBYOK(ctx, agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "sk-trial"})
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(ctx))
	}
	e.Reports(err)
}

func workers(e *env, mended bool) {
	id, err := agentOf(e)
	if err != nil {
		e.Reports(err)
		return
	}
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		all.Go(func() { _, errs[i] = e.Client.SendMessage(e.Context(), id, text(fmt.Sprint("part ", i))) })
	}
	all.Wait()
	if !mended {
		errs = errs[:1]
	}
	e.Reports(errors.Join(errs...))
}

func save(e *env, mended bool) {
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	if err != nil {
		e.Reports(err)
		return
	}
	saved := e.Point("save")
	if saved == nil {
		saved = os.WriteFile(filepath.Join(e.Dir, agent.ID), []byte(agent.ID), 0o600)
	}
	if mended && saved != nil {
		e.Reports(fmt.Errorf("%s is not saved: %w", agent.ID, saved))
		return
	}
	e.Reports(nil)
}

func paced(e *env, mended bool) {
	ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
	defer cancel()
	id, err := agentOf(e)
	for i := 0; i < 2 && err == nil; i++ {
		_, err = e.Client.SendMessage(ctx, id, text(fmt.Sprint("part ", i)))
		time.Sleep(10 * time.Second)
		if !mended {
			err = nil
		}
	}
	e.Reports(err)
}
