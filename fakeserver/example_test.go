package fakeserver_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// open returns a fake whose clock is stopped at noon.
func open() *fakeserver.Server {
	noon := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	fake, err := fakeserver.Open(fakeserver.WithClock(func() time.Time { return noon }))
	if err != nil {
		log.Fatal(err)
	}
	return fake
}

// call makes a call with the default key, and prints the answer or the error.
func call(fake *fakeserver.Server, method, path, body string) {
	callAs(fake, fake.Key(), method, path, body)
}

func callAs(fake *fakeserver.Server, key, method, path, body string) {
	do(&http.Client{Transport: fake.Direct()}, key, method, fake.BaseURL()+path, body)
}

// say sends a text to agent_000001.
func say(fake *fakeserver.Server, text string) {
	call(fake, "POST", "/v1/agents/agent_000001/messages", fmt.Sprintf(`{"text":%q}`, text))
}

func do(client *http.Client, key, method, url, body string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.StatusCode, string(answer))
}

// In a test the fake closes itself, and what goes wrong in it fails the test.
func ExampleNew() {
	test := func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithPlan(fakeserver.PlanPro))
		fake.OnMessage().Reply("We open at nine.").Required()
		client := fake.HTTPClient(t)
		// Give fake.BaseURL(), fake.Key() and client to what is tested.
		_ = client
	}
	_ = test
}

// Outside tests a fake is opened and closed; in tests, New(t) does both.
func ExampleOpen() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := fake.HTTPClient(nil)                   // net/http over a connection in memory
	direct := &http.Client{Transport: fake.Direct()} // without a connection: faster
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
	do(direct, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/agent_000001/messages", `{"text":"hello"}`)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000002"}
}

// A Server is an http.Handler: with a recorder, behind middleware, on a socket.
func ExampleServer_ServeHTTP() {
	fake := open()
	defer fake.Close()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/byok", nil)
	r.Header.Set("Authorization", "Bearer "+fake.Key())
	fake.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output: 200 {"ok":true,"byok":null,"trace_id":"trace_000001"}
}

// A script answers with texts, or with what a function makes of the message:
// warnings and the errors of interface 7 too. The script made last is asked
// first.
func ExampleServer_OnMessage() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.OnMessage().Reply("Hello.", "What else?")
	fake.OnMessage(fakeserver.ByTextContaining("price")).ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: fmt.Sprintf("After %d exchanges: 5 euros.", len(m.History)), Warnings: []string{"old"}}
	})
	fake.OnMessage(fakeserver.ByText("bother")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Status: 400, Reason: "not that word"}
	})
	for _, text := range []string{"hi", "what is the price?", "bother", "thanks"} {
		say(fake, text)
	}
	// Output:
	// 200 {"reply_text":"Hello.","trace_id":"trace_000001"}
	// 200 {"reply_text":"After 1 exchanges: 5 euros.","warnings":["old"],"trace_id":"trace_000002"}
	// 400 {"error":"bad_request","trace_id":"trace_000003","reason":"not that word"}
	// 200 {"reply_text":"What else?","trace_id":"trace_000004"}
}

// A script may have its turn only at some messages. Then the one made before it
// answers the others.
func ExampleScript() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.OnMessage().Reply("Hello.").Required()
	third := fake.OnMessage().Reply("The third message.").Nth(3)
	help := fake.OnMessage(fakeserver.ByText("help")).Reply("Once only.").Times(1)
	never := fake.OnMessage().Reply("Never.").Chance(0, 7)
	for _, text := range []string{"help", "help", "hi"} {
		say(fake, text)
	}
	fmt.Println(third.Hits(), help.Hits(), never.Hits())
	third.Remove()
	// Output:
	// 200 {"reply_text":"Once only.","trace_id":"trace_000001"}
	// 200 {"reply_text":"Hello.","trace_id":"trace_000002"}
	// 200 {"reply_text":"The third message.","trace_id":"trace_000003"}
	// 1 1 0
}

// Every option, with what it is for.
func ExampleOption() {
	noon := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	fake, err := fakeserver.Open(
		fakeserver.WithClock(func() time.Time { return noon }),  // a clock that is stopped
		fakeserver.WithKey("key-of-the-configuration"),          // what the program under test is configured with
		fakeserver.WithPlan(fakeserver.PlanPro),                 // its plan
		fakeserver.WithLimit(fakeserver.LimitKeyMinute, 10_000), // a limit out of the way
		fakeserver.WithDecision("windows", "sliding"),           // another answer where the interface is silent
		fakeserver.WithColdStart(time.Millisecond),              // a first message that takes longer
		fakeserver.WithCallLimit(10),                            // keep ten calls
		fakeserver.WithMessageTexts(),                           // with readable texts
		fakeserver.WithUnknownRoutes(),                          // calls to no endpoint are meant
	)
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	call(fake, "GET", "/v2/status", "")
	say(fake, "hello")
	fmt.Println(fake.Key(), fake.Calls()[1].Body)
	// Output:
	// 404 {"error":"not_found","trace_id":"trace_000001","reason":"no endpoint has this path"}
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000002"}
	// key-of-the-configuration {"text":"hello"}
}

// A fake that answers as another service was seen to, and what it decided itself.
func ExampleLike() {
	observed := []byte(`{"format":1,"decisions":{"metadata_cap":{"answer":8192}}}`) // from agentmessaging-fake observe
	fake, err := fakeserver.Open(fakeserver.Like(observed))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	for _, d := range fake.Decisions() {
		if d.Observed || d.ID == "windows" {
			fmt.Println(d.Question, d.Answer, d.Observed)
		}
	}
	// Output:
	// How many characters of compact JSON may metadata have? 8192 true
	// How does a limit count calls? "fixed" false
}
