// Batch sends many messages to an agent. It loses none and sends none twice,
// wherever its process is killed. It reads one message a line from its standard
// input, and keeps in a journal what became of each. Started again with the same
// journal it goes on, and reads no input. Each batch has its own journal:
//
//	go run . -journal monday.journal <texts
//
// A message is in doubt if the process died after its request had left, or if its
// answer was missed: there is no call that says whether it arrived. Each run adds at
// most as many of them as there are workers. The program names them and leaves them
// alone, until somebody has found out and says -resend 17,23 or -skip 42.
//
// Ctrl-C lets requests that have left finish, and lets no other leave. The service is
// the one that AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY name; the
// program agentmessaging-fake prints both.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/agent-messaging-service/agentmessaging-go"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	path := flag.String("journal", "batch.journal", "`file` that says what became of each message")
	workers := flag.Int("workers", 4, "how many messages are under way at once")
	var resend, skip []int
	flag.Func("resend", "`numbers` of messages in doubt to send again", list(&resend))
	flag.Func("skip", "`numbers` of messages in doubt to leave as they are", list(&skip))
	flag.Parse()

	client, err := agentmessaging.NewClientFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	j, err := openJournal(*path, os.Stdin)
	if err == nil {
		err = errors.Join(j.decide(resend, planned), j.decide(skip, skipped))
	}
	if err == nil {
		err = errors.Join(send(ctx, client, j, *workers), j.report(os.Stdout))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// list is a flag with numbers, as in 17,23.
func list(numbers *[]int) func(string) error {
	return func(value string) error {
		var more []int
		err := json.Unmarshal([]byte("["+value+"]"), &more)
		*numbers = append(*numbers, more...)
		return err
	}
}

// send sends what is planned, and returns why it could not send all of it.
func send(ctx context.Context, client *agentmessaging.Client, j *journal, workers int) error {
	if j.agent == "" {
		// A death before the note leaves an agent that nobody uses: nothing refers to it.
		agent, err := client.CreateAgent(context.WithoutCancel(ctx), agentmessaging.CreateAgentParams{})
		if err == nil {
			err = j.note(record{Agent: agent.ID})
		}
		if err != nil {
			return err
		}
	}
	messages := make(chan int, len(j.messages))
	for i, m := range j.messages {
		if m.State == planned {
			messages <- i + 1
		}
	}
	close(messages)
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	bar := progressbar.NewOptions(len(j.messages), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(terminal), progressbar.OptionShowCount(), progressbar.OptionFullWidth())
	_ = bar.Set(len(j.messages) - len(messages))
	defer func() {
		_ = bar.Exit()
		if terminal {
			fmt.Fprintln(os.Stderr) // the report begins below the bar
		}
	}()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			w := &worker{journal: j, stopped: ctx, bar: bar, terminal: terminal}
			if err := w.work(client, messages); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// worker sends one message at a time.
type worker struct {
	journal  *journal
	client   *agentmessaging.Client
	stopped  context.Context // no request may leave after it has ended
	bar      *progressbar.ProgressBar
	terminal bool

	message int                // that is under way
	end     context.CancelFunc // ends its call
	release func() bool        // takes back what will happen to the call when stopped ends
}

// grace is how long a request that has left may take after an interrupt.
const grace = 30 * time.Second

// work ends when no message is left, and after the first that is in doubt: however
// long the service gives no answer that is of use, there are at most as many
// messages in doubt as workers. Its client has the worker as an observer, whose
// events so are of the worker's message alone.
func (w *worker) work(client *agentmessaging.Client, messages <-chan int) (err error) {
	if w.client, err = client.With(agentmessaging.WithObserver(w)); err != nil {
		return err
	}
	for w.message = range messages {
		if w.stopped.Err() != nil {
			return nil
		}
		if err := w.send(); errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
			log.Print(err)
			return nil
		} else if err != nil {
			return err
		}
		_ = w.bar.Add(1)
	}
	return nil
}

// send sends a message and notes what became of it. What is not the fault of the
// message would happen to the others too: such an error ends the batch.
func (w *worker) send() error {
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.WithoutCancel(w.stopped))
	defer w.end()
	w.release = context.AfterFunc(w.stopped, w.end)
	defer func() { w.release() }()
	ctx = agentmessaging.WithBeforeSend(ctx, w.beforeSend)
	text := w.journal.messages[w.message-1].Text
	reply, err := w.client.SendMessage(ctx, w.journal.agent, agentmessaging.MessageParams{Text: text})
	switch {
	case err == nil:
		return w.journal.note(record{Message: w.message, State: sent, Reply: reply.Text})
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return errors.Join(err, w.journal.note(record{Message: w.message, State: inDoubt, Reason: err.Error()}))
	case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest):
		return w.journal.note(record{Message: w.message, State: refused, Reason: err.Error()})
	}
	return err // the journal says planned
}

// beforeSend is called when the message has waited for every limit, and is about to
// leave. From here on it may be in doubt, and an interrupt gives it time to finish.
func (w *worker) beforeSend(context.Context, int) error {
	if !w.release() {
		return context.Cause(w.stopped)
	}
	end := w.end
	w.release = context.AfterFunc(w.stopped, func() { time.AfterFunc(grace, end) })
	return w.journal.note(record{Message: w.message, State: sending})
}

// Observe takes back the note of beforeSend when the service has certainly not
// carried out the message, before the wait for the next attempt begins: a death
// in that minute leaves no doubt, and an interrupt ends it at once.
func (w *worker) Observe(_ context.Context, event agentmessaging.Event) context.Context {
	switch e := event.(type) {
	case agentmessaging.AttemptEnd:
		if e.Verdict == agentmessaging.VerdictNotDone && w.journal.messages[w.message-1].State == sending {
			_ = w.journal.note(record{Message: w.message, State: planned}) // every later note fails too
			w.release()
			w.release = context.AfterFunc(w.stopped, w.end)
		}
	case agentmessaging.LimiterWaitStart:
		wait := fmt.Sprintf("message %d waits at place %d for limit %s, %s left", w.message, e.Place,
			cmp.Or(e.LimitKey, "(not known)"), e.Expected.Round(time.Second))
		w.bar.Describe(wait)
		if !w.terminal { // as under cron
			log.Print(wait)
		}
	case agentmessaging.LimiterWait:
		w.bar.Describe("sending")
	}
	return nil
}
