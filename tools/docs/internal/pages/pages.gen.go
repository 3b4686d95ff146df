// Code generated from the pages by go test -update. DO NOT EDIT.

package pages

import "context"
import "errors"
import "fmt"
import "log/slog"
import "net/http"
import "net/http/httptest"
import "os"
import "path/filepath"
import "slices"
import "strings"
import "testing"
import "testing/synctest"
import "time"
import "github.com/stretchr/testify/require"
import "github.com/agent-messaging-service/agentmessaging-go"
import "github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
import "github.com/agent-messaging-service/agentmessaging-go/fakeserver"
import "github.com/agent-messaging-service/agentmessaging-go/pacer"

type messenger interface {
	SendMessage(ctx context.Context, agentID string, params agentmessaging.MessageParams) (*agentmessaging.Reply, error)
}

func askHandler(m messenger, agentID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second) // a user does not wait for a limit to open
		defer cancel()
		reply, err := m.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: r.FormValue("q")})
		if err != nil {
			http.Error(w, "no answer", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8") // an agent may write HTML
		fmt.Fprint(w, reply.Text)
	})
}

func TestAsk(t *testing.T) {
	client, fake := agentmessagingtest.New(t) // the client's waits take milliseconds
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.OnMessage(fakeserver.ByTextContaining("open")).Reply("We open at nine.")

	w := httptest.NewRecorder()
	askHandler(client, agent.ID).ServeHTTP(w, httptest.NewRequest("GET", "/ask?q=When+do+you+open", nil))
	require.Equal(t, "We open at nine.", w.Body.String())

	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())) // the agent reads it, its reply never arrives
	w = httptest.NewRecorder()
	askHandler(client, agent.ID).ServeHTTP(w, httptest.NewRequest("GET", "/ask?q=When+do+you+open", nil))
	require.Equal(t, http.StatusBadGateway, w.Code)
}
func TestOnlyReadsAreRepeated(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection()))

	_, _ = client.GetAgent(t.Context(), agent.ID)
	_, _ = client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	require.Len(t, fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)), 3)
	require.Len(t, fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)), 1)
}
func advice(err error) string {
	wait, _ := agentmessaging.RetryAfter(err)
	switch {
	case err == nil:
		return "go on"
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown): // first, because it may wrap other kinds
		return "decide: a repeat may do it twice"
	case errors.Is(err, agentmessaging.ErrRateLimited):
		return "come back in " + max(wait, time.Second).String()
	case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest):
		return "correct the call"
	case errors.Is(err, agentmessaging.ErrUnauthorized), errors.Is(err, agentmessaging.ErrPaymentRequired):
		return "tell the operator: key or plan"
	case errors.Is(err, agentmessaging.ErrUnavailable), errors.Is(err, agentmessaging.ErrServer):
		return "try later"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "nobody waits any more"
	}
	return "report it: " + err.Error() // one line, without key and message
}
func enableSMS(ctx context.Context, client *agentmessaging.Client, agentID string) (agentmessaging.SMSStatus, error) {
	channel, err := client.EnableSMS(ctx, agentID, agentmessaging.SMSModeManaged)
	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // ctx may be over
		defer cancel()
		agent, readErr := client.GetAgent(again, agentID)
		if readErr != nil {
			return "", errors.Join(err, readErr)
		}
		if agent.SMS != nil && agent.SMS.Status != agentmessaging.SMSStatusDisabled {
			return agent.SMS.Status, nil
		}
		channel, err = client.EnableSMS(again, agentID, agentmessaging.SMSModeManaged)
	}
	if err != nil {
		return "", err
	}
	return channel.Status, nil
}
func TestLostReply(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())) // the agent gets the message, the reply is lost

	_, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Two chairs, please."})
	require.ErrorIs(t, err, agentmessaging.ErrOutcomeUnknown)
	require.Len(t, fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)), 1) // it was sent once
}
func TestPacedBatch(t *testing.T) {
	p, err := pacer.New(pacer.PreviewLimits()) // or ProLimits, BYOKPlanLimits, your own list
	require.NoError(t, err)
	client, fake := agentmessagingtest.New(t, agentmessaging.WithLimiter(p))
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	for range 100 {
		_, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
		require.NoError(t, err)
	}
	require.Equal(t, 100, fake.CallCount(), "none was refused")
}

// isOutage reports whether a circuit breaker should count an error of a call.
func isOutage(err error) bool {
	var failure *agentmessaging.Error
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, &failure) && failure.Local:
		return false // the caller has left, or the call was refused here
	case errors.Is(err, agentmessaging.ErrServer), errors.Is(err, agentmessaging.ErrUnavailable),
		errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return true
	}
	return failure != nil && failure.StatusCode == 0 // no answer
}

func TestIsOutage(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	send := func(ctx context.Context) error {
		_, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hi"})
		return err
	}
	for _, outage := range []fakeserver.Fault{
		fakeserver.RefuseConnection(), fakeserver.LoseReply(fakeserver.ResetConnection()),
		fakeserver.RawAnswer(502, "text/html", "Bad Gateway"), fakeserver.RawAnswer(503, "text/html", "Down"),
	} {
		injection := fake.Inject(outage)
		require.True(t, isOutage(send(t.Context())))
		injection.Remove()
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	require.False(t, isOutage(send(left)))
	refused := agentmessaging.WithBeforeSend(t.Context(), func(context.Context, int) error { return errors.New("open") })
	require.False(t, isOutage(send(refused)))
	fake.RevokeKey(fake.Key())
	require.False(t, isOutage(send(t.Context())))
}

// rateLimiter is a Limiter. Its reserve calls ReserveN(now, 1) of a *rate.Limiter.
type rateLimiter struct {
	reserve func(now time.Time) reservation
}

// reservation is what a *rate.Reservation does.
type reservation interface {
	DelayFrom(now time.Time) time.Duration
	CancelAt(now time.Time)
}

func (l rateLimiter) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	now := time.Now()
	turn := l.reserve(now)
	wait := turn.DelayFrom(now)
	if deadline, has := ctx.Deadline(); has && deadline.Before(now.Add(wait)) {
		turn.CancelAt(now)
		return nil, &agentmessaging.Error{StatusCode: http.StatusTooManyRequests, RetryAfter: wait}
	}
	select {
	case <-time.After(wait):
		return l, nil
	case <-ctx.Done():
		turn.CancelAt(time.Now())
		return nil, ctx.Err()
	}
}

func (rateLimiter) Done(agentmessaging.AttemptOutcome) {}

type fixedDelay time.Duration

func (s fixedDelay) DelayFrom(time.Time) time.Duration { return time.Duration(s) }
func (fixedDelay) CancelAt(time.Time)                  {}

func TestRateLimiter(t *testing.T) {
	limiter := rateLimiter{func(time.Time) reservation { return fixedDelay(time.Hour) }}
	client, _ := agentmessagingtest.New(t, agentmessaging.WithLimiter(limiter))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := client.Status(ctx)
	require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	wait, _ := agentmessaging.RetryAfter(err)
	require.Equal(t, time.Hour, wait)
}
func TestSend(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	fake.OnMessage().Reply("Hello.")
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	reply, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hi"})
	require.NoError(t, err)
	require.Equal(t, "Hello.", reply.Text)
}
func answer(ctx context.Context, client *agentmessaging.Client, log *slog.Logger, file, question string) error {
	id, err := agentOf(ctx, client, log, file)
	if err != nil {
		return err
	}
	reply, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: question})
	if errors.Is(err, agentmessaging.ErrNotFound) { // the next question gets a new agent
		return errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	log.Info("answered", "reply", reply.Text)
	return nil
}
func agentOf(ctx context.Context, client *agentmessaging.Client, log *slog.Logger, file string) (string, error) {
	const creating = "creating"
	id, err := os.ReadFile(file)
	if err == nil && string(id) != creating {
		return string(id), nil
	}
	if err == nil { // the process died meanwhile, or no answer came
		log.Warn("an agent may have been created that nobody knows", "file", file)
	}
	if err := replace(file, creating); err != nil {
		return "", err
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{CustomerRef: filepath.Base(file)})
	switch {
	case err == nil:
		return agent.ID, replace(file, agent.ID)
	case !errors.Is(err, agentmessaging.ErrOutcomeUnknown): // certainly not created
		err = errors.Join(err, os.Remove(file))
	}
	return "", err
}
func replace(file, content string) error {
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
func firstAnswer(ctx context.Context, client *agentmessaging.Client, log *slog.Logger, file, question string) error {
	id, err := firstAgentOf(ctx, client, log, file)
	if err != nil {
		return err
	}
	reply, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: question})
	if errors.Is(err, agentmessaging.ErrNotFound) { // the next question gets a new agent
		return errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	log.Info("answered", "reply", reply.Text)
	return nil
}
func firstAgentOf(ctx context.Context, client *agentmessaging.Client, log *slog.Logger, file string) (string, error) {
	id, err := os.ReadFile(file)
	if err == nil {
		return string(id), nil
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{CustomerRef: filepath.Base(file)})
	if err != nil {
		return "", err
	}
	return agent.ID, os.WriteFile(file, []byte(agent.ID), 0o600)
}
func firstReplace(file, content string) error {
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// customerLimiter is the limiter of one customer's client.
type customerLimiter struct {
	customer string
	key      *pacer.Pacer // of this customer
	address  *pacer.Pacer // of all
}

// ofAddress recognizes the limits of the address by the fake's names. See which names your service uses.
func ofAddress(limitKey string) bool { return strings.Contains(limitKey, "ip_minute") }

func addressLimits() []pacer.Limit {
	return slices.DeleteFunc(pacer.PreviewLimits(), func(l pacer.Limit) bool { return !ofAddress(l.Key) })
}

func newCustomerLimiter(customer string, address *pacer.Pacer) (customerLimiter, error) {
	key, err := pacer.New(slices.DeleteFunc(pacer.PreviewLimits(), func(l pacer.Limit) bool { return ofAddress(l.Key) }))
	return customerLimiter{customer, key, address}, err
}

func (l customerLimiter) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	key, err := l.key.Acquire(ctx, attempt)
	if err != nil {
		return nil, err
	}
	address, err := l.address.Acquire(pacer.WithTenant(ctx, l.customer), attempt)
	if err != nil {
		key.Done(agentmessaging.AttemptOutcome{}) // not sent
		return nil, err
	}
	return customerPermit{key, address}, nil
}

type customerPermit struct{ key, address agentmessaging.Permit }

// Done reports a refusal to the pacer whose limit it names, and a success to both.
func (p customerPermit) Done(outcome agentmessaging.AttemptOutcome) {
	key, address := outcome, agentmessaging.AttemptOutcome{Sent: outcome.Sent}
	if ofAddress(outcome.LimitKey) {
		key, address = address, key
	}
	p.key.Done(key)
	p.address.Done(address)
}

func TestCustomers(t *testing.T) {
	fake := fakeserver.New(t)
	address, err := pacer.New(addressLimits())
	require.NoError(t, err)
	send := func(key string) error {
		limiter, err := newCustomerLimiter("customer of "+key, address)
		require.NoError(t, err)
		client, err := agentmessaging.NewClient(fake.BaseURL(), key, agentmessaging.WithLimiter(limiter),
			agentmessaging.WithHTTPClient(fake.HTTPClient(t)), agentmessaging.WithClock(fake))
		require.NoError(t, err)
		agent := fake.AddAgent(key, fakeserver.Agent{})
		_, err = client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
		return err
	}
	spent := fake.IssueKey(fakeserver.KeyOptions{})
	fake.Exhaust(spent, fakeserver.LimitKeyDay)
	require.ErrorIs(t, send(spent), agentmessaging.ErrRateLimited)
	for range 150 {
		require.NoError(t, send(fake.IssueKey(fakeserver.KeyOptions{})))
	}
	require.Equal(t, 1+150, fake.CallCount(), "the address was never refused")
}

// finishRequests keeps the end of a context from a request that has left.
var finishRequests = agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
	if _, leaves := event.(agentmessaging.RequestStart); leaves {
		return context.WithoutCancel(ctx)
	}
	return nil
})

func TestShutdown(t *testing.T) {
	client, fake := agentmessagingtest.New(t, agentmessaging.WithObserver(finishRequests))
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	ctx, stop := context.WithCancel(t.Context()) // in a program: signal.NotifyContext
	fake.Inject(fakeserver.Change("SIGTERM", stop))
	_, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "has left"})
	require.NoError(t, err)
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "waits"})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, fake.Conversation(agent.ID), 1)
}
func TestMessageArrives(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	reply, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	require.NoError(t, err)
	require.Equal(t, "You wrote: Hello", reply.Text)
	require.Len(t, fake.Conversation(agent.ID), 1)
}
func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*fakeserver.Server)
		kind    error
	}{
		"key revoked": {func(f *fakeserver.Server) { f.RevokeKey(f.Key()) }, agentmessaging.ErrUnauthorized},
		"day spent":   {func(f *fakeserver.Server) { f.Exhaust(f.Key(), fakeserver.LimitKeyDay) }, agentmessaging.ErrRateLimited},
		"reply lost": {func(f *fakeserver.Server) { f.Inject(fakeserver.LoseReply(fakeserver.CloseEarly())) },
			agentmessaging.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			client, fake := agentmessagingtest.New(t)
			agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
			tt.prepare(fake)

			_, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
			require.ErrorIs(t, err, tt.kind)
		})
	}
}
func TestMinuteLimit(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	start := fake.Now()
	_, err := client.GetAgent(t.Context(), agent.ID)
	require.NoError(t, err)
	require.GreaterOrEqual(t, fake.Now().Sub(start), time.Minute)
}
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(t)))
		require.NoError(t, err)
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
		fake.Inject(fakeserver.LoseReply(fakeserver.Hang()))

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 20*time.Second, time.Since(start))
	})
}
func TestProgram(t *testing.T) {
	fake := fakeserver.New(t)
	server := httptest.NewServer(fake)
	defer server.Close()
	t.Setenv("AGENT_MESSAGING_BASE_URL", server.URL)
	t.Setenv("AGENT_MESSAGING_API_KEY", fake.Key())

	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithClock(fake)) // its waits take no time
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	require.NoError(t, err)
}

// Tests are the tests of the pages.
var Tests = []testing.InternalTest{
	{"TestAsk", TestAsk},
	{"TestOnlyReadsAreRepeated", TestOnlyReadsAreRepeated},
	{"TestLostReply", TestLostReply},
	{"TestPacedBatch", TestPacedBatch},
	{"TestIsOutage", TestIsOutage},
	{"TestRateLimiter", TestRateLimiter},
	{"TestSend", TestSend},
	{"TestCustomers", TestCustomers},
	{"TestShutdown", TestShutdown},
	{"TestMessageArrives", TestMessageArrives},
	{"TestRefusals", TestRefusals},
	{"TestMinuteLimit", TestMinuteLimit},
	{"TestPatience", TestPatience},
	{"TestProgram", TestProgram},
}
