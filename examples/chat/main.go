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
	"flag"
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
	systemPrompt := flag.String("system", "", "system prompt of the agent")
	flag.Parse()
	c := chat{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		c.prompt = "> "
	}
	if err := c.run(context.Background(), *systemPrompt); err != nil {
		log.Fatal(err)
	}
}

// isTerminal reports a character device, which is as much as the standard
// library can tell.
func isTerminal(f *os.File) bool {
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

type chat struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	prompt         string // for a person; empty in a pipe
}

// maxLine bounds a line of input. It is more than a message may have, so that
// the client is who says that a message is too long.
const maxLine = 1 << 20

func (c chat) run(ctx context.Context, systemPrompt string) error {
	client, fake, err := connect()
	if err != nil {
		return err
	}
	defer fake.Close()
	return c.talk(ctx, client, systemPrompt)
}

func (c chat) talk(ctx context.Context, client *agentmessaging.Client, systemPrompt string) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: systemPrompt})
	if err != nil {
		return err
	}
	if c.prompt != "" {
		fmt.Fprintf(c.stderr, "Talking to %s. Ctrl-D ends.\n", agent.ID)
	}

	lines := bufio.NewScanner(c.stdin)
	lines.Buffer(nil, maxLine)
	for c.next(lines) {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if err := c.say(ctx, client, agent.ID, text); err != nil {
			return err
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

// next reads a line, after the prompt if there is one.
func (c chat) next(lines *bufio.Scanner) bool {
	fmt.Fprint(c.stdout, c.prompt)
	more := lines.Scan()
	if !more && c.prompt != "" {
		fmt.Fprintln(c.stdout) // the shell's prompt goes on a line of its own
	}
	return more
}

// say sends one message and prints the reply. What is wrong with one message
// does not end the conversation.
func (c chat) say(ctx context.Context, client *agentmessaging.Client, agentID, text string) error {
	reply, err := client.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: text})
	switch {
	case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest),
		// The agent may have read it; whether to say it again is the person's choice.
		errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		fmt.Fprintln(c.stderr, err)
		return nil
	case err != nil:
		return err
	}
	for _, warning := range reply.Warnings {
		fmt.Fprintln(c.stderr, "warning:", printable(warning))
	}
	fmt.Fprintln(c.stdout, printable(reply.Text))
	return nil
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
