package service_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// reply is an answer of so many bytes.
func reply(size int) string {
	const before, after = `{"reply_text":"`, `"}`
	return before + strings.Repeat("x", size-len(before+after)) + after
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // of the error
	}{
		{"1 MiB", 200, reply(1_048_576), ""},
		{"1 MiB and a byte", 200, reply(1_048_577), "the answer is larger than 1048576 bytes"},
		{"the last success", 299, reply(100), ""},
		{"below a success", 199, reply(100), "status 199: " + reply(100)},
		{"above a success", 300, reply(100), "status 300: " + reply(100)},
		{"an error", 500, `{"error":"internal"}`, `status 500: {"error":"internal"}`},
		{"no JSON", 200, "", "unexpected end of JSON input"},
		{"another's JSON", 200, "{}", "the answer was not decoded: reply_text is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := &counted{Reader: strings.NewReader(c.body)}
			err := service.Decode(&http.Response{StatusCode: c.status, Body: body}, new(service.Reply))
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
			assert.True(t, body.closed)
		})
	}
}

// TestDecodeEndless: no more is read than shows that an answer is too large.
func TestDecodeEndless(t *testing.T) {
	body := &counted{Reader: endless{}}
	require.Error(t, service.Decode(&http.Response{StatusCode: 200, Body: body}, new(service.Reply)))
	assert.Equal(t, 1_048_577, body.n)
}

// endless is spaces, which are JSON's too.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// counted is a body that counts what was read of it.
type counted struct {
	io.Reader
	n      int
	closed bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func (c *counted) Close() error {
	c.closed = true
	return nil
}
