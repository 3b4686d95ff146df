// Batch sends each line of a file to an agent, as a message. It loses no message and
// sends none twice, whenever its process is killed, because it writes the state of each
// message to a journal. If you start it again with the same file, it goes on where it
// stopped.
//
//	go run . agent_000001 monday.txt
//
// A message is in doubt if the process died after its request had left, or if its answer
// was missed. No call shows whether such a message arrived. The program prints the
// messages in doubt and the refused messages. It does not send them until you append a
// decision to the journal: {"message":17,"state":"sent"} if nothing is left to do, or
// {"message":17,"state":"planned"} to send line 17 of the file again. End the decision with a
// line break: a last line without one counts as half a line, which a crash left.
//
// Ctrl-C ends every wait, but lets requests that have left finish. A second Ctrl-C ends the
// process at once. AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY name the service; the
// program agentmessaging-fake prints both for a fake.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/agent-messaging-service/agentmessaging-go"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if len(os.Args) != 3 {
		log.Fatal("give the agent's id, and the file with the messages, one a line")
	}
	client, err := agentmessaging.NewClientFromEnv()
	if err == nil {
		err = run(ctx, client, os.Args[1], os.Args[2])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run sends the messages that the journal does not show as finished. Its error names the
// remaining messages.
func run(ctx context.Context, client *agentmessaging.Client, agentID, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lock := flock.New(path + ".lock") // the system releases it when the process dies
	if locked, err := lock.TryLock(); err != nil || !locked {
		return fmt.Errorf("%s: another process works on it, or it cannot be locked (%v)", path, err)
	}
	defer lock.Close()
	j, err := openJournal(path + ".journal")
	if err != nil {
		return err
	}
	defer j.file.Close()
	// Editors of Windows write a byte order mark, and \r\n. Neither is part of a message.
	lines := strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")
	return errors.Join(j.sendAll(ctx, client, agentID, strings.Split(lines, "\n")), j.undecided())
}

// workers is how many messages are under way at once. At most this many are in doubt
// after a crash.
const workers = 4

// sendAll sends the messages that are planned.
func (j *journal) sendAll(ctx context.Context, client *agentmessaging.Client, agentID string, texts []string) error {
	messages := make(chan int, len(texts))
	for i, text := range texts {
		if state, noted := j.states[i+1]; text != "" && (!noted || state == planned) {
			messages <- i + 1
		}
	}
	close(messages)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			// Stop after an error, because an error that is not about this message would end the
			// next one too.
			for n := range messages {
				if errs[w] = j.send(ctx, client, agentID, n, texts[n-1]); errs[w] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// send sends message n of the batch, and writes its state to the journal.
func (j *journal) send(ctx context.Context, client *agentmessaging.Client, agentID string, n int, text string) error {
	// The client calls this when the message has waited for every limit and is about to
	// leave. From then on it may be in doubt.
	before := agentmessaging.WithBeforeSend(ctx, func(context.Context, int) error {
		return j.note(record{Message: n, State: inDoubt})
	})
	client, err := client.With(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
		switch e := event.(type) {
		case agentmessaging.RequestStart: // an interrupt ends every wait, but no request
			return context.WithoutCancel(ctx)
		case agentmessaging.AttemptEnd: // without this note the message would be in doubt while it waits for the next attempt, maybe for a minute
			if e.Verdict == agentmessaging.VerdictNotDone {
				_ = j.note(record{Message: n, State: planned}) // if this note fails, every later note fails too
			}
		}
		return nil
	})))
	if err != nil {
		return err
	}
	reply, err := client.SendMessage(before, agentID, agentmessaging.MessageParams{Text: text})
	var invalid *agentmessaging.ValidationError
	switch {
	case err == nil:
		return j.note(record{Message: n, State: sent, Detail: reply.Text})
	case errors.As(err, &invalid) && invalid.Field == "text": // otherwise the agent's id is wrong, which is about all messages
		return j.note(record{Message: n, State: refused, Detail: err.Error()})
	case errors.Is(err, agentmessaging.ErrBadRequest): // if the reason is not this message, the next ones are refused too: stop
		err = errors.Join(err, j.note(record{Message: n, State: refused, Detail: err.Error()}))
	}
	return fmt.Errorf("message %d: %w", n, err) // the journal has it as planned, or as in doubt if the outcome is unknown
}

// The states of a message.
const (
	planned = "planned"  // the service certainly does not have the message; a message without a line counts as planned
	inDoubt = "in doubt" // the message's request may have left
	sent    = "sent"
	refused = "refused" // the service, or the client, does not accept the text
)

// record is one line of the journal.
type record struct {
	Message int    `json:"message"`          // the message's line in the file, from 1
	State   string `json:"state"`            // any other state, such as that of a mistyped decision, waits for a decision
	Detail  string `json:"detail,omitempty"` // the reply, or why it was refused
}

// journal is a file to which lines are only appended. Each line is on the disk before the
// program acts on it. The last line of a message is its state.
type journal struct {
	mu     sync.Mutex     // guards what follows
	states map[int]string // by message, as the file has them
	file   *os.File
	size   int64 // size of the journal without the rest of a note that failed
}

func openJournal(path string) (*journal, error) {
	j := &journal{states: map[int]string{}}
	lines, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j.size = int64(len(lines))
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // leaves out half a line, which a crash may leave: the program did not act on it
	for line := range bytes.Lines(lines) {
		var r record
		// A record may follow half a line without a line break. Its first characters are in
		// no text, because JSON escapes quotes.
		line = line[max(0, bytes.LastIndex(line, []byte(`{"message":`))):]
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s is damaged: %w", path, err)
		}
		j.states[r.Message] = r.State
	}
	j.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return j, err
}

// note appends a line, and returns when it is on the disk. If the write fails, for example
// because the disk is full, the state does not change. note then cuts off what was written
// of the line, which needs no space, and closes the journal: every later note fails too.
func (j *journal) note(r record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line, _ := json.Marshal(r) // cannot fail: strings and a number
	size, err := j.file.Write(append(line, '\n'))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		_ = j.file.Truncate(j.size) // if that fails too, the next start ignores the half line
		_ = j.file.Close()
		return err
	}
	j.states[r.Message] = r.State
	j.size += int64(size)
	return nil
}

// undecided returns an error that names the messages that wait for a decision, in order; nil
// if there are none.
func (j *journal) undecided() (err error) {
	for _, n := range slices.Sorted(maps.Keys(j.states)) {
		if state := j.states[n]; state != planned && state != sent {
			err = errors.Join(err, fmt.Errorf(`message %d: %s; decide, and append {"message":%d,"state":"planned"} or {"message":%d,"state":"sent"}`, n, cmp.Or(state, "no state"), n, n))
		}
	}
	return err
}
