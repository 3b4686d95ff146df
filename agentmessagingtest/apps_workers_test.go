package agentmessagingtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

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
