package fakeserver

import (
	"slices"
	"strings"
)

// Script answers messages instead of the default reply, which is "You wrote: " and the
// text. OnMessage makes a script; Reply and ReplyFunc add steps, one for each message
// that it answers. A script without steps counts its messages and leaves the default
// reply. The zero Script cannot be used.
type Script struct{ *rule }

// OnMessage makes a script for the messages that all matchers match. Without matchers it
// is for all messages. If several scripts match, the newest script whose Times, Nth and
// Chance allow it answers. If none does, the fake sends the default reply. A message that
// the service refuses, for example by a limit, uses up no step. A zero Matcher panics.
// Inject says what to do if messages come while the script is made.
func (s *Server) OnMessage(matchers ...Matcher) *Script {
	sc := &Script{newRule(s, "OnMessage", "", matchers)}
	defer s.lock().Unlock()
	sc.addToLocked(&s.generation.scripts)
	return sc
}

// Reply adds a step for each text: the script answers one message with it. The
// last step of a script repeats. Without any text, Reply panics.
func (sc *Script) Reply(texts ...string) *Script {
	if len(texts) == 0 {
		misuse("Reply", "needs at least one text")
	}
	for _, text := range texts {
		sc.add(step{text: &text})
	}
	return sc
}

// ReplyFunc adds a step that calls f for the answer. f may call the fake and wait.
// Concurrent messages call it concurrently. A panic in f fails the test and aborts the
// connection. A failing require does the same, since it may only end the goroutine of a
// test: use assert. A nil f panics.
func (sc *Script) ReplyFunc(f func(Message) Reply) *Script {
	if f == nil {
		misuse("ReplyFunc", "the function is nil")
	}
	return sc.add(step{f: f})
}

// add appends a step. A Script may get more steps while it answers.
func (sc *Script) add(st step) *Script {
	st.rule = sc.rule
	defer sc.lock().Unlock()
	sc.steps = append(sc.steps, st)
	return sc
}

// Times ends the script once it has answered n messages. A later Times does not start it
// again. Without Nth and Chance, the script answers the first n messages that match.
// Times, Nth and Chance may be combined: the script answers where all of them allow it.
// An n below 1 panics.
func (sc *Script) Times(n int) *Script { sc.setNumber("Times", n, &sc.times); return sc }

// Nth makes the script answer only the n-th message that matches, counted from
// 1. A message that another script answers counts too. An n below 1 panics.
func (sc *Script) Nth(n int) *Script { sc.setNumber("Nth", n, &sc.nth); return sc }

// Chance makes the script answer with probability p. The seed fixes the
// decisions: the n-th message that matches gets the same decision in every run.
// A p outside 0 to 1 panics.
func (sc *Script) Chance(p float64, seed uint64) *Script { sc.setChance(p, seed); return sc }

// Required fails the test if the script has answered no message when the fake is
// closed or reset.
func (sc *Script) Required() *Script { sc.require(); return sc }

// Injection is a fault and the calls that it acts on. Inject makes an Injection; the zero
// Injection cannot be used.
type Injection struct{ *rule }

// Inject makes a fault act on the calls that all matchers match, even on calls that the
// service would refuse. Without matchers it acts on all calls, from now until Remove or
// Reset. Times, Nth, From and Chance select among these calls. Inject may come too late
// for calls that are already under way.
//
// While other goroutines make calls, the fault may act before Times, Nth, From or Chance
// is called. There, let the last matcher count with an atomic.Int64:
// Where(func(Call) bool { return n.Add(1) == 1 }) matches one call.
//
// Several injections may match a call. Times, Nth, From and Chance then exclude some of them.
// Of the rest, every Change and every Latency acts, and the latencies add up; of all other
// faults only the newest acts. RefuseConnection comes before all of them: no other fault acts
// on a refused call or counts it. The zero Fault and a zero Matcher panic.
func (s *Server) Inject(fault Fault, matchers ...Matcher) *Injection {
	if fault.f == nil {
		misuse("Inject", "the fault is the zero Fault; functions such as Answer and LoseReply make faults")
	}
	in := &Injection{newRule(s, "Inject", fault.String(), matchers)}
	in.fault = fault.f
	defer s.lock().Unlock()
	if in.fault.phase == beforeConnecting {
		s.refusing.Store(true)
		in.addToLocked(&s.generation.refusals)
	} else {
		in.addToLocked(&s.generation.injections)
	}
	return in
}

// Times ends the injection once it has acted on n calls. A later Times does not start it
// again. Without Nth, From and Chance, the fault acts on the first n calls that match.
// Times, Nth, From and Chance may be combined: the fault acts where all of them allow it.
// An n below 1 panics.
func (in *Injection) Times(n int) *Injection { in.setNumber("Times", n, &in.times); return in }

// Nth makes the fault act only on the n-th call that matches, counted from 1. A call that
// another fault acts on counts too. An n below 1 panics. An n below the n of From panics
// too, since no call could match both.
func (in *Injection) Nth(n int) *Injection { in.setNumber("Nth", n, &in.nth); return in }

// From makes the fault act on the n-th call that matches and on later ones, counted from
// 1. An n below 1 panics. An n above the n of Nth panics too.
func (in *Injection) From(n int) *Injection { in.setNumber("From", n, &in.from); return in }

// Chance makes the fault act with probability p. The seed fixes the decisions:
// the n-th call that matches gets the same decision in every run. Which of
// several concurrent calls is the n-th is not fixed. A p outside 0 to 1 panics.
func (in *Injection) Chance(p float64, seed uint64) *Injection { in.setChance(p, seed); return in }

// Required fails the test if the fault has acted on no call when the fake is
// closed or reset.
func (in *Injection) Required() *Injection { in.require(); return in }

// newRule makes a rule. fault is the name of the fault of an Injection, "" for a Script.
// Only the method that the test calls may call newRule, because callerLine then names the
// line of the test.
func newRule(s *Server, method, fault string, matchers []Matcher) *rule {
	checkMatchers(method, matchers)
	args := slices.DeleteFunc([]string{fault, s.config.namesOf(matchers)}, func(arg string) bool { return arg == "" })
	return &rule{
		serverLock: &s.serverLock, name: method + "(" + strings.Join(args, ", ") + ")", at: callerLine(3),
		matchers: slices.Clone(matchers),
	}
}

// nextStepLocked counts a message for all scripts that match it, newest first. It returns
// the next step of the first script that acts on the message, or the zero step.
func nextStepLocked(scripts []*rule) (next step) {
	answering := false
	for _, r := range slices.Backward(scripts) {
		if !r.countMatchLocked() || answering {
			continue
		}
		answering = true
		r.countHitLocked()
		if len(r.steps) > 0 {
			next = r.steps[min(r.hits, len(r.steps))-1]
		}
	}
	return next
}
