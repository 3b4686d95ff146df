// Chat is a conversation with an agent: each line of input is a message, the
// replies are the output. It ends with the input (Ctrl-D), so it also works
// in a pipe:
//
//	printf 'Hello\nWhen do you open?\n' | go run ./examples/chat
//
// It runs on a fake inside the program, or on the service that
// AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY name.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"unicode"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func main() {
	log.SetFlags(0)
	client, fake, err := connect()
	if err == nil {
		defer fake.Close()
		err = talk(context.Background(), client, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// maxLine bounds a line of input. It is more than a message may have: the client says
// when a message is too long.
const maxLine = 1 << 20

func talk(ctx context.Context, client *agentmessaging.Client, input io.Reader, output io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "Be brief."})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: text})
		switch {
		case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest),
			// The agent may have read it; the person decides whether to say it again.
			errors.Is(err, agentmessaging.ErrOutcomeUnknown):
			fmt.Fprintln(output, err) // which does not end the conversation
		case err != nil:
			return err
		default:
			fmt.Fprintln(output, printable(reply.Text))
		}
	}
	return lines.Err()
}

// connect returns a client of the service that AGENT_MESSAGING_BASE_URL and
// AGENT_MESSAGING_API_KEY name, or of a fake in this program where neither is
// set. A program of your own needs NewClientFromEnv only.
func connect() (client *agentmessaging.Client, closer io.Closer, err error) {
	if os.Getenv("AGENT_MESSAGING_BASE_URL") != "" || os.Getenv("AGENT_MESSAGING_API_KEY") != "" {
		client, err = agentmessaging.NewClientFromEnv()
		return client, io.NopCloser(nil), err
	}
	fake, err := fakeserver.Open()
	if err != nil {
		return nil, nil, err
	}
	client, err = agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	return client, fake, err
}

// printable takes out what could steer the terminal: a model writes what it
// was talked into.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
