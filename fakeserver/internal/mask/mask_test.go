package mask

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A body that is not JSON is shown where texts are, unless it has a secret.
func TestBodiesThatAreNotJSON(t *testing.T) {
	shown := Body{Texts: true, Secrets: Secrets{"user:canary"}}
	assert.Equal(t, "[redacted, 19 characters]", shown.Of([]byte("of user:canary, and"), 19))
	assert.Equal(t, "[redacted, 11 characters]", shown.Of([]byte("user%3acanary"), 11), "it may be escaped")
	assert.Equal(t, "<h1>Bad", shown.Of([]byte("<h1>Bad gateway</h1>"), 7))
	assert.Equal(t, "[redacted, 7 characters]", new(Body).Of([]byte("<h1>Bad gateway</h1>"), 7))
}

// A body may be sent in part, inside an escape or a secret too. What is left
// shows neither.
func TestPartsOfBodies(t *testing.T) {
	const secret = `sk-"12345`
	for _, body := range []string{
		`{"reply_text":"a \"b\" \u00e9\ud83d\ude00","trace_id":"x ` + `sk-\"12345` + `"}`,
		`{"error":"bad\ngate`, `{"api_key":["sk-\"12345",5],"a":"b"}`, `"\`, `["\u12 sk-\"12345`, "<h1>sk-\"12345</h1>", "}]\x00\xff\"",
	} {
		for n := range len(body) + 1 {
			for _, b := range []Body{{}, {Texts: true}, {Foreign: true}, {Texts: true, Foreign: true}} {
				b.Secrets = Secrets{secret}
				shown := b.Of([]byte(body), n)
				assert.NotContains(t, shown, "1234", "%q of %q", body[:n], body)
				assert.NotContains(t, shown, `sk-\"`, "%q of %q", body[:n], body)
			}
		}
	}
	shown := Body{Secrets: Secrets{secret}, Texts: true}
	assert.Equal(t, `{"a":"[redacted]"`, shown.Of([]byte(`{"a":"sk-\"12345","b":1}`), 10), "a piece that is hidden is hidden whole")
	assert.Equal(t, `{"a":"x`, shown.Of([]byte(`{"a":"xyz","b":"sk-\"12345"}`), 7))
}
