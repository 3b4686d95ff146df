package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// app is an application that returns what it reports.
type app = func(e *sweep.Env) error

// twin is an application with one bug, or the same without it.
type twin = func(e *sweep.Env, mended bool) error

// holds is the beginning of a finding of Truth, which names the kind of thing that differs
// and not its content, which may be a person's words or a key.
const holds = "the application reported nothing, but the service is in another state than after the baseline "

// apps are applications with one bug each, with the checks that find the bug and sometimes the
// run, and applications without a bug.
var apps = []struct {
	name string
	find []string
	run  app
}{
	{"two messages, and nobody reads the error of the first", []string{"swallowed"}, giveUp(func(e *sweep.Env, name string, err error) error {
		if name == "message0" {
			fmt.Fprintln(e.Output(), "my-agentmessaging: one less to send") // is no error of a call
			return nil
		}
		return err
	}, "Hello", "Where is my order?")},
	{"warnings that vary, and errors that nobody reads", []string{"swallowed", "truth"}, broken(varying)},
	{"a warning that varies, with the errors in it", nil, mended(varying)},
	{"the usual warning, about another call", nil, mended(lastFailure)},
	{"the usual warning, and another error that nobody reads", []string{"swallowed GetAgent_2/payment_required/once"}, broken(lastFailure)},
	{"a number that only waits change", []string{"swallowed"}, says(time.Hour, func(took time.Duration, _ error) string { return fmt.Sprint(int(took.Seconds())) })},
	{"a line of other words where answers are slow", nil, says(time.Hour, func(took time.Duration, err error) string {
		if err == nil && took > time.Second {
			return "it took a while"
		}
		return fmt.Sprint(err == nil)
	})},
	{"a number of failures, one of them where answers are slow", nil, says(20*time.Second, func(_ time.Duration, err error) string {
		return map[bool]string{false: "0", true: "1"}[err != nil]
	})},
	{"another channel from the second start on", nil, func(e *sweep.Env) error {
		mode := map[bool]agentmessaging.SMSMode{true: agentmessaging.SMSModeManaged, false: agentmessaging.SMSModeSandbox}[get(e, "started") == ""]
		_, err := e.Client.EnableSMS(e.Context(), mine(e), mode)
		return errors.Join(err, put(e, "started", "yes"))
	}},
	{"a loop until it works", []string{"ends", "quota", "dead key"}, tries(1 << 30)},
	{"five tries", []string{"dead key"}, tries(5)},
	{"three tries", nil, tries(3)},
	{"a key that bars the next start", []string{"resumes", "lost BYOK"}, broken(barred)},
	{"a look at the key before a trial", nil, mended(barred)},
	{"a key that is cleared before the next one", []string{"lost BYOK SetBYOK_1/bad_request/once", "lost BYOK ClearBYOK_1/dies_arrived"}, rotateOnce},
	{"a key that is stored before it is noted", nil, after(keep("sk-today"), keep("sk-today"))},
	{"a key that a restart believes stored", []string{"truth SetBYOK_1/dies_before"}, after(keep("sk-today"), tell())},
	{"another key after a death", []string{"truth SetBYOK_1/dies_before"}, after(keep("sk-today"), keep("sk-tomorrow"))},
	{"one of two customers with the same text after a death", []string{"truth SendMessage_1/dies_before"}, after(tell("mine", "other"), tell("mine"))},
	{"one of two equal texts after a death", []string{"truth SendMessage_1/dies_before"}, after(tell("mine", "mine"), tell("mine"))},
	{"another customer after a death", []string{"truth SendMessage_1/dies_before"}, after(tell("mine"), tell("other"))},
	{"a step that comes after the next one", []string{"truth " + holds + "(order)"}, func(e *sweep.Env) error {
		first, second := send(e, mine(e), "Open the valve"), send(e, mine(e), "Start the pump")
		if errors.Is(first, agentmessaging.ErrBadRequest) {
			first = send(e, mine(e), "Open the valve")
		}
		return errors.Join(first, second)
	}},
	{"a reply that is read before the error", []string{"panics"}, readFirst},
	{"a mark that stays where the message was refused", []string{"lost SendMessage_1/payment_required/once"}, giveUp(func(e *sweep.Env, name string, err error) error {
		return errors.Join(err, put(e, name, "sent"))
	}, "Welcome", "Goodbye")},
	{"a refusal that is reported, and one that is not", []string{"lost SendMessage_1/bad_request/once", "lost SendMessage_1/payment_required/once"}, dropsTwice},
	// Each message arrives or is named. A report that names no message excuses one message,
	// however often it is repeated. A report that names a message excuses only that message.
	{"one report for two messages", []string{"lost SendMessage_1/bad_request/from_on"}, broken(firstFailure)},
	{"a report that names one message of two", []string{"lost SendMessage_1/bad_request/from_on"}, mended(firstFailure)},
	{"the same answer for each message that is given up", nil, giveUp(func(e *sweep.Env, name string, err error) error {
		e.Told("503 Service Unavailable")
		if get(e, name) == "" && errors.Is(err, agentmessaging.ErrNotFound) {
			return put(e, name, "sent")
		}
		return nil
	}, "Red", "Green")},
	{"a doubt that is forgotten by a second death", []string{"lost note_1/dies,restart.Status_1/dies_before"}, forgetsDoubt},
	{"doubt forever", nil, welcome(deliver, "Ready")},
	{"another call in place of a look", []string{"swallowed", "truth " + holds + "(provider key)"}, broken(looks)},
	{"a look whether the key is stored", nil, mended(looks)},
	{"another agent's channel in place of one that failed", []string{"swallowed EnableSMS_1/bad_request/once", "truth " + holds + "(sms)"}, func(e *sweep.Env) error {
		for range 2 {
			id := e.Fake.AddAgent(e.Fake.Key(), fakeserver.Agent{}).ID
			_, _ = e.Client.EnableSMS(e.Context(), id, agentmessaging.SMSModeSandbox)
		}
		return nil
	}},
	{"a file whose error nobody reads", []string{"lost agent", "swallowed save_1/fails/once"}, broken(save)},
	{"a file that cannot be written", nil, mended(save)},
	{"a key in an error", []string{"secret"}, func(e *sweep.Env) error {
		_, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{LLM: agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "sk-today"}})
		if err != nil {
			return fmt.Errorf("cannot create with sk-today: %w", err)
		}
		return nil
	}},
	{"an agent that is gone and asked forever", []string{"resumes"}, func(e *sweep.Env) error {
		id, err := agentOf(e)
		if err == nil {
			err = send(e, id, "Hello")
		}
		return err
	}},
	{"one new agent for one that is not found", nil, newAgent},
	{"an agent's file that may be empty", []string{"resumes CreateAgent_1/dies_answered_agent_was_empty"}, emptyFile},
	{"a creation in doubt that somebody has to look up", nil, mended(waitsForSomebody)},
	{"a lock that a dead process leaves", []string{"resumes CreateAgent_1/dies_answered_before_line_2"}, func(e *sweep.Env) error {
		id, err := agentOf(e)
		if err == nil && os.Symlink("this process", filepath.Join(e.Dir, "lock")) != nil {
			err = errors.New("another process has the lock")
		}
		if err != nil {
			return err
		}
		e.Log("this process has the lock")
		return errors.Join(forget404(e, send(e, id, "Hello")), remove(e, "lock"))
	}},
	{"a creation in doubt that is mentioned once", []string{"lost CreateAgent_1/reply_lost/once"}, broken(waitsForSomebody)},
	{"an agent that nobody notes before it is there", []string{"lost agent CreateAgent_1/dies_arrived", "lost agent CreateAgent_1/reply_lost/from_on"}, func(e *sweep.Env) error {
		if get(e, "agent") == "" {
			if agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{}); err == nil {
				return put(e, "agent", agent.ID)
			}
		}
		_, err := e.Client.Status(e.Context()) // its error names no agent
		return err
	}},
	{"a message that is dropped while a creation is in doubt", []string{"lost CreateAgent_1/dies_before,restart.SendMessage_1/limited_day/once"}, dropsInDoubt},
	{"a batch that begins again", []string{"doubled SendMessage_1/reply_lost/once"}, beginsAgain},
	{"texts that are never the same", nil, numbered()},
	{"a fan-out", nil, func(e *sweep.Env) error { fanOut(e, "Red", "Green"); return nil }},
	{"a plan that never allows it", nil, unpaid},
	{"a goroutine that is always left, and an agent that nobody keeps", nil, forgetful},
}

func mended(run twin) app { return func(e *sweep.Env) error { return run(e, true) } }
func broken(run twin) app { return func(e *sweep.Env) error { return run(e, false) } }

func send(e *sweep.Env, id, s string) error {
	_, err := e.Client.SendMessage(e.Context(), id, agentmessaging.MessageParams{Text: s})
	return err
}

// put stores a content below Dir as the target of a symbolic link, and moves the link into
// place. A link is never cut in half, so there are fewer deaths to try than with a file.
func put(e *sweep.Env, name, content string) error {
	link := filepath.Join(e.Dir, name)
	_ = os.Remove(link + ".new") // left by a process that died
	if err := os.Symlink(content, link+".new"); err != nil {
		return err
	}
	return os.Rename(link+".new", link)
}

// get returns the content that put has stored; "" if there is none.
func get(e *sweep.Env, name string) string {
	content, _ := os.Readlink(filepath.Join(e.Dir, name))
	return content
}

func remove(e *sweep.Env, name string) error {
	return os.RemoveAll(filepath.Join(e.Dir, name)) // no error where there is nothing
}

// agentOf returns the agent that is stored in Dir, or creates one.
func agentOf(e *sweep.Env) (string, error) {
	return created(e, func(id string) error {
		e.Log("created", id) // which the next start cannot read
		return put(e, "agent", id)
	})
}

// created is agentOf with another way to keep the agent. If the answer to a creation is
// lost, nobody can find out whether it was carried out, so created reports that.
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

// deliver sends a text at most once, under its own name: it notes what it is about to do,
// and reports what is in doubt.
func deliver(e *sweep.Env, id, name, s string) error {
	switch get(e, name) {
	case "sent":
		return nil
	case "sending":
		e.Told("in doubt: " + name)
		return nil
	}
	ctx := agentmessaging.WithBeforeSend(e.Context(), func(context.Context, int) error {
		return errors.Join(put(e, name, "sending"), e.Point("note"))
	})
	_, err := e.Client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: s})
	switch {
	case err == nil || errors.Is(err, agentmessaging.ErrBadRequest): // the next try would be refused too
		return errors.Join(err, put(e, name, "sent"))
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

// mine returns an agent that the test adds, like a second one, so it costs no call.
func mine(e *sweep.Env) (id string) {
	for _, id := range []string{"mine", "other"} {
		if _, found := e.Fake.Agent(id); !found {
			e.Fake.AddAgent(e.Fake.Key(), fakeserver.Agent{ID: id})
		}
	}
	return "mine"
}

// welcome delivers texts to an agent, up to the first that fails.
func welcome(deliver func(e *sweep.Env, id, name, s string) error, texts ...string) app {
	return func(e *sweep.Env) (err error) {
		id := mine(e)
		for i, s := range texts {
			if err == nil {
				err = deliver(e, id, fmt.Sprint("message", i), s)
			}
		}
		return err
	}
}

// giveUp delivers texts, and calls the function for a text that fails.
func giveUp(failed func(e *sweep.Env, name string, err error) error, texts ...string) app {
	return welcome(func(e *sweep.Env, id, name, s string) error {
		if err := deliver(e, id, name, s); err != nil {
			return failed(e, name, err)
		}
		return nil
	}, texts...)
}

// notify sends a text to its stored agent. With the bug, it swallows the error.
func notify(e *sweep.Env, mended bool) error {
	e.Logger().Warn("no cache") // in the baseline too, so it does not count as a report
	id, err := agentOf(e)
	if err == nil {
		sent := forget404(e, send(e, id, "Your parcel has arrived."))
		if mended {
			err = sent
		}
	}
	return err
}

// varying says something else each time, whether anything is wrong or not.
func varying(e *sweep.Env, mended bool) error {
	begun, failed := time.Now(), 0
	if send(e, mine(e), "Your parcel has arrived.") != nil {
		time.Sleep(time.Second)
		if mended {
			failed = 1
		}
	}
	e.Logger().Warn("ended", "dir", e.Dir, "took", time.Since(begun), "failed", failed)
	e.Told("Your request " + filepath.Base(e.Dir) + " is being handled.")
	return nil
}

// says asks for the status, waits a minute if that fails, and prints the result.
func says(timeout time.Duration, words func(took time.Duration, err error) string) app {
	return func(e *sweep.Env) error {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(e.Context(), timeout)
		defer cancel()
		_, err := e.Client.Status(ctx)
		if err != nil {
			time.Sleep(time.Minute)
		}
		e.Told(words(time.Since(begun), err))
		return nil
	}
}

// lastFailure prints the last error, and has one in each run. It prints one line, in two parts.
func lastFailure(e *sweep.Env, mended bool) error {
	failed := gone(e)
	if _, err := e.Client.GetAgent(e.Context(), mine(e)); err != nil && mended {
		failed = err
	}
	fmt.Fprint(e.Output(), "failed: agent")
	fmt.Fprint(e.Output(), strings.TrimPrefix(failed.Error(), "agent"))
	return nil
}

// tries stores a provider key until that works, but not more often than a maximum.
func tries(most int) app {
	return func(e *sweep.Env) (err error) {
		for range most {
			if err = store(e, "sk-today"); err == nil {
				break
			}
		}
		return err
	}
}

// store sets a provider key.
func store(e *sweep.Env, key agentmessaging.Secret) error {
	_, err := e.Client.SetBYOK(e.Context(), agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: key})
	return err
}

// looks reads the BYOK configuration after storing a key failed, to learn whether the key is
// stored all the same. With the bug, it asks for the status instead.
func looks(e *sweep.Env, mended bool) error {
	failed := store(e, "sk-today")
	if failed == nil {
		return nil
	}
	if _, err := e.Client.Status(e.Context()); err != nil || !mended {
		return err
	}
	config, err := e.Client.GetBYOK(e.Context())
	if config == nil {
		err = errors.Join(failed, err)
	}
	return err
}

// barred stores a provider key for a trial, and clears it. With the bug, it refuses to start if
// it finds a stored key.
func barred(e *sweep.Env, mended bool) error {
	config, err := e.Client.GetBYOK(e.Context())
	if err == nil && config != nil && !mended {
		err = errors.New("a key is stored already")
	}
	if err == nil {
		err = errors.Join(store(e, "sk-trial"), e.Client.ClearBYOK(e.Context()))
	}
	return err
}

// readFirst uses the agent of the answer before it looks at the error.
func readFirst(e *sweep.Env) error {
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	fmt.Fprintln(e.Output(), agent.ID)
	return err
}

// after does its work at its first start only, and does something else if it died before.
func after(work, died app) app {
	return func(e *sweep.Env) error {
		next := map[string]app{"": work, "begun": died, "done": tell()}[get(e, "work")]
		if err := errors.Join(put(e, "work", "begun"), next(e)); err != nil {
			return err
		}
		return put(e, "work", "done")
	}
}

func keep(key agentmessaging.Secret) app { return func(e *sweep.Env) error { return store(e, key) } }

// tell sends one text to some agents.
func tell(ids ...string) app {
	return func(e *sweep.Env) (err error) {
		mine(e)
		for _, id := range ids {
			err = errors.Join(err, send(e, id, "The shop is open."))
		}
		return err
	}
}

// save stores an agent at an Env.Point. With the bug, it does not report that this failed.
func save(e *sweep.Env, mended bool) error {
	_, err := created(e, func(id string) error {
		err := e.Point("save")
		if err != nil && mended { // a second try makes up for the failure
			err = e.Point("save")
		}
		if err == nil {
			err = put(e, "agent", id)
		}
		if err != nil && mended {
			return fmt.Errorf("%s is not saved: %w", id, err)
		}
		return nil
	})
	return errors.Join(err, e.Point("close"))
}

// newAgent goes on with another agent if its own is gone, and reports nothing.
func newAgent(e *sweep.Env) error {
	id, err := agentOf(e)
	if err != nil {
		return err
	}
	if _, err = e.Client.GetAgent(e.Context(), id); errors.Is(err, agentmessaging.ErrNotFound) {
		err = remove(e, "agent")
	}
	return errors.Join(err, notify(e, true))
}

// waitsForSomebody says at each start that a creation is in doubt, until somebody removes
// the note. At later starts it also reads an agent that never existed.
func waitsForSomebody(e *sweep.Env, mended bool) (err error) {
	id, note := get(e, "agent"), get(e, "creating")
	if id+note != "" {
		_ = gone(e)
	}
	switch {
	case id != "" || note == "":
		return notify(e, true)
	case note == "mentioned":
		return nil
	case !mended:
		err = put(e, "creating", "mentioned")
	}
	return errors.Join(err, errors.New("an agent for customer-7 may have been created: find out, and remove the note"))
}

// dropsInDoubt does not send a message again that fails while a creation is in doubt.
func dropsInDoubt(e *sweep.Env) error {
	if get(e, "creating") != "" {
		e.Told("an agent may have been created: find out, and remove the note")
		return errors.Join(deliver(e, mine(e), "message0", "Ready"), put(e, "message0", "sent"))
	}
	if _, err := agentOf(e); err != nil {
		return err
	}
	return deliver(e, mine(e), "message0", "Ready")
}

// emptyFile writes the identifier in place, and does not expect to find the file empty.
func emptyFile(e *sweep.Env) error {
	file := filepath.Join(e.Dir, "agent")
	if _, err := os.Stat(file); err != nil {
		if _, err := created(e, func(id string) error { return os.WriteFile(file, []byte(id), 0o600) }); err != nil {
			return err
		}
	}
	id, err := os.ReadFile(file)
	return errors.Join(err, forget404(e, send(e, string(id), "Your parcel has arrived.")))
}

// firstFailure reports at each start that a message failed, with its text or without, and does
// not report a second message that failed. The text of the second is a part of the text of the
// first.
func firstFailure(e *sweep.Env, byName bool) error {
	failed := map[bool]string{false: "a message could not be sent", true: "not sent: PreOrder 1, Order 10"}[byName]
	if get(e, "failed") != "" {
		e.Told(failed)
	}
	return giveUp(func(e *sweep.Env, name string, _ error) error {
		if get(e, "failed") == "" {
			e.Told(failed)
		}
		return errors.Join(put(e, "failed", "yes"), put(e, name, "sent"))
	}, "PreOrder 1, Order 10", "Order 1")(e)
}

// beginsAgain sends all messages again if one is in doubt, and says so. So the other message
// arrives twice, though it was never in doubt.
func beginsAgain(e *sweep.Env) error {
	id := mine(e)
	err := errors.Join(send(e, id, "Red"), send(e, id, "Green"))
	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		e.Told("trying again")
		err = errors.Join(send(e, id, "Red"), send(e, id, "Green"))
	}
	return err
}

// rotateOnce replaces a stored key. Where it finds none, it has nothing to do.
func rotateOnce(e *sweep.Env) error {
	if get(e, "begun") == "" {
		e.Fake.StoreBYOK(e.Fake.Key(), "sk-yesterday", fakeserver.BYOK{Provider: "openai"})
	}
	config, err := e.Client.GetBYOK(e.Context())
	if err = errors.Join(err, put(e, "begun", "yes")); err != nil || config == nil || get(e, "done") != "" {
		return err
	}
	if err := errors.Join(e.Client.ClearBYOK(e.Context()), store(e, "sk-today")); err != nil {
		return err
	}
	return put(e, "done", "yes")
}

// dropsTwice reports all refusals but one. The message is lost either way. Its lines at later
// starts vary, and excuse nothing.
var dropsTwice = welcome(func(e *sweep.Env, id, name, s string) error {
	if get(e, name) != "" {
		e.Told("goes on in " + filepath.Base(e.Dir))
	}
	err := errors.Join(deliver(e, id, name, s), put(e, name, "sent"))
	if errors.Is(err, agentmessaging.ErrBadRequest) {
		return nil
	}
	return err
}, "Ready")

// unpaid makes five calls that are answered 402.
func unpaid(e *sweep.Env) error {
	e.Fake.SetPlan(e.Fake.Key(), fakeserver.PlanPro)
	_, err := e.Client.GetBYOK(e.Context())
	e.Fake.SetPlan(e.Fake.Key(), fakeserver.PlanFree)
	for i := 0; i < 5 && err == nil; i++ {
		if _, err = e.Client.Status(e.Context()); errors.Is(err, agentmessaging.ErrPaymentRequired) {
			err = nil
		}
	}
	return err
}

// broadcast sends one text to two customers, whose agents it stores, each on its own goroutine,
// one after the other. The order changes each time.
func broadcast(turn int) app {
	return func(e *sweep.Env) (failed error) {
		turn++
		for i := range 2 {
			ref := []string{"ann", "bob"}[(turn+i)%2]
			id := get(e, ref)
			if id == "" {
				id = e.Fake.AddAgent(e.Fake.Key(), fakeserver.Agent{CustomerRef: ref}).ID
				failed = errors.Join(failed, put(e, ref, id))
			}
			var one sync.WaitGroup
			one.Go(func() { failed = errors.Join(failed, send(e, id, "The shop is open.")) })
			one.Wait()
		}
		return failed
	}
}

// forgetsDoubt reports at once that a planned message is in doubt, and only after a call that a
// message under way is in doubt. A death before that call leaves the same state in both cases.
var forgetsDoubt = welcome(func(e *sweep.Env, id, name, s string) error {
	note, next := get(e, name), "sent"
	switch note {
	case "":
		next = "planned"
	case "planned":
		e.Told("in doubt: " + s)
	}
	err := put(e, name, next)
	_, _ = e.Client.Status(e.Context()) // asks whether the service is reachable
	if note == "sending" {
		e.Told("in doubt: " + s)
	}
	return errors.Join(err, deliver(e, id, name, s))
}, "Ready")

// forgetful leaves a goroutine and an agent in every run.
func forgetful(e *sweep.Env) error {
	go func() { select {} }()
	agent, err := e.Client.CreateAgent(e.Context(), agentmessaging.CreateAgentParams{})
	if err == nil {
		err = send(e, agent.ID, "Hello")
	}
	return err
}

// fanOut sends messages at once, each on its own goroutine and in no order.
func fanOut(e *sweep.Env, texts ...string) {
	id := mine(e)
	var all sync.WaitGroup
	for _, i := range rand.Perm(len(texts)) {
		all.Go(func() { e.Reports(send(e, id, texts[i])) })
	}
	all.Wait()
}

// numbered sends a different text each time.
func numbered() app {
	n := 0
	return func(e *sweep.Env) error {
		n++
		return send(e, mine(e), fmt.Sprint("Message ", n))
	}
}
