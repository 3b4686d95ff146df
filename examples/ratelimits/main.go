// Ratelimits sends more messages than a minute allows, loses none of them, and
// goes on where it stopped when it is started again. It remembers what it has
// sent in the file that its argument names.
//
// It runs on a fake inside the program, whose clock it moves instead of waiting.
// With AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY set it talks to that
// service, and takes a minute or two.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	file := filepath.Join(os.TempDir(), "ratelimits.json")
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	if err := run(ctx, file, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const messages = 100

func run(ctx context.Context, file string, stdout io.Writer) error {
	client, fake, err := connect()
	if err != nil {
		return err
	}
	defer fake.Close()
	return batch(ctx, client, file, messages, stdout)
}

// journal is what has to last: an agent's id cannot be asked for later.
type journal struct {
	AgentID string
	Sent    int
}

// batch sends the messages that are not in the file. The client waits out a
// minute limit by itself; a batch of several conversations runs them at once.
func batch(ctx context.Context, client *agentmessaging.Client, file string, n int, stdout io.Writer) error {
	j, err := open(ctx, client, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d of %d messages were sent before, says %s\n", j.Sent, n, file)
	for err == nil && j.Sent < n {
		if err = j.send(ctx, client, stdout); err == nil {
			j.Sent++
			err = j.save(file)
		}
	}
	fmt.Fprintf(stdout, "%d of %d messages are sent\n", j.Sent, n)
	return prepareNext(err, file, stdout)
}

// prepareNext says when to start the program again, and removes a file that is of
// no use then.
func prepareNext(err error, file string, stdout io.Writer) error {
	var refusal *agentmessaging.Error
	switch {
	case errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &refusal): // of a day, or others use the key
		fmt.Fprintf(stdout, "limit %s is spent: start again in %s\n", refusal.LimitKey, refusal.RetryAfter)
	case errors.Is(err, agentmessaging.ErrNotFound): // the agent is gone, and with it what it was told
		return errors.Join(err, os.Remove(file))
	}
	return err
}

// send sends the next message. Where it may have arrived, it is sent once more:
// the agent knows it by its number.
func (j *journal) send(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	params := agentmessaging.MessageParams{Text: fmt.Sprintf("%d: summarize this ticket.", j.Sent+1)}
	_, err := client.SendMessage(ctx, j.AgentID, params)
	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		fmt.Fprintln(stdout, err)
		_, err = client.SendMessage(ctx, j.AgentID, params)
	}
	return err
}

func open(ctx context.Context, client *agentmessaging.Client, file string) (*journal, error) {
	j := new(journal)
	data, err := os.ReadFile(file)
	if err == nil {
		return j, json.Unmarshal(data, j)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "Each message begins with its number. Act once on each number.",
	})
	if err != nil {
		return nil, err
	}
	j.AgentID = agent.ID
	return j, j.save(file)
}

// save replaces the file at once, so that a crash leaves the old one or the new.
func (j *journal) save(file string) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func connect() (client *agentmessaging.Client, closer io.Closer, err error) {
	patient := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 6}) // where others use the key
	if os.Getenv("AGENT_MESSAGING_BASE_URL") != "" || os.Getenv("AGENT_MESSAGING_API_KEY") != "" {
		client, err = agentmessaging.NewClientFromEnv(patient)
		return client, io.NopCloser(nil), err
	}
	fake, err := fakeserver.Open()
	if err != nil {
		return nil, nil, err
	}
	client, err = agentmessaging.NewClient(fake.BaseURL(), fake.Key(), patient,
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithClock(fake))
	return client, fake, err
}
