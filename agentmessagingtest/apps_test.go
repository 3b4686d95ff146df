package agentmessagingtest_test

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
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
)

type env = agentmessagingtest.Env

// app is an application, as it is or mended, that returns what it tells.
type app = func(e *env, mended bool) error

// apps are small applications with one typical bug each, and their mended
// twins: mended says which of the two is meant.
var apps = []struct {
	name string
	find agentmessagingtest.Check
	run  app
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
			found := sweep(t, broken(app.run), app.opts...).found
			assert.True(t, slices.ContainsFunc(found, func(f agentmessagingtest.Finding) bool { return f.Check == app.find }), "found: %v", found)
			agentmessagingtest.Sweep(t, mended(app.run), app.opts...)
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
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{SystemPrompt: "Speak like a pirate."})
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

func insist(e *env, mended bool) error {
	tries, err := 0, errors.New("not tried")
	for err != nil && tries < 10 && !(mended && tries == 1) {
		_, err = e.Client.Status(e.Context())
		tries++
	}
	return err
}

func batch(e *env, mended bool) error {
	var all []error
	for i := range 5 {
		agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
		if err == nil {
			e.Logf("customer %d has %s", i, agent.ID)
		}
		all = append(all, err)
		if mended && (errors.Is(err, agentmessaging.ErrUnauthorized) || errors.Is(err, agentmessaging.ErrPaymentRequired)) {
			break
		}
	}
	return errors.Join(all...)
}

// store sets a provider key.
func store(e *env, key agentmessaging.Secret) error {
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
	return err
}

func rotate(e *env, mended bool) error {
	err := store(e, "sk-yesterday")
	if err == nil && !mended {
		err = e.Client.ClearBYOK(e.Context())
	}
	if err != nil {
		return err
	}
	return store(e, "sk-today")
}

func tryOut(e *env, mended bool) error {
	err := store(e, "sk-trial")
	if err == nil {
		_, err = e.Client.WarmUp(e.Context(), agentmessaging.LLMModeBYOK)
	}
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(e.Context()))
	}
	return err
}

func untilItWorks(e *env, mended bool) error {
	for tries := 0; ; tries++ {
		_, err := e.Client.WarmUp(e.Context(), "")
		if err == nil || mended && tries == 1 {
			return err
		}
	}
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
	return err
}

func quoteKey(e *env, mended bool) error {
	const key = "sk-provider-key"
	err := store(e, key)
	if err != nil && !mended {
		err = fmt.Errorf("cannot store %s: %w", key, err)
	}
	return err
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

func trial(e *env, mended bool) error {
	config, err := e.Client.GetBYOK(e.Context())
	if err != nil {
		return err
	}
	if config != nil && !mended {
		return errors.New("a key is stored already")
	}
	err = store(e, "sk-trial")
	if err == nil || mended {
		err = errors.Join(err, e.Client.ClearBYOK(e.Context()))
	}
	return err
}

func workers(e *env, mended bool) error {
	id, err := agentOf(e)
	if err != nil {
		return err
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
	id, err := agentOf(e)
	for i := 0; i < 2 && err == nil; i++ {
		_, err = e.Client.SendMessage(ctx, id, text(fmt.Sprint("part ", i)))
		time.Sleep(10 * time.Second)
		if !mended {
			err = nil
		}
	}
	return err
}
