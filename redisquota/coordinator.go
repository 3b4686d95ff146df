package redisquota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// A Coordinator keeps the budget of one API key in Redis. It is safe for
// concurrent use, holds no connection of its own and nothing to close.
type Coordinator struct {
	script Scripter
	tag    string // what the names of all keys start with, the hash tag included
}

var _ quota.Coordinator = (*Coordinator)(nil)

// New returns the Coordinator of an API key. All processes that share the key
// give the same key, prefix and limits. New connects to nothing, so it
// succeeds while Redis is away.
//
// The API key itself is neither kept nor sent: the names of the keys hold 128
// bits of its SHA-256.
func New(client Scripter, apiKey string, opts ...Option) (*Coordinator, error) {
	o := options{prefix: "agentmessaging"}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("redisquota: an option is nil")
		}
		opt(&o)
	}
	switch {
	case client == nil:
		return nil, errors.New("redisquota: the client is nil")
	case apiKey == "":
		return nil, errors.New("redisquota: the API key is empty")
	case o.prefix == "" || strings.ContainsAny(o.prefix, "{}"):
		// A brace before the hash tag would be taken for it.
		return nil, errors.New("redisquota: the prefix is empty or holds a brace")
	}
	sum := sha256.Sum256([]byte(apiKey))
	return &Coordinator{script: client, tag: o.prefix + ":{" + hex.EncodeToString(sum[:16]) + "}"}, nil
}

type options struct{ prefix string }

// Option changes a Coordinator.
type Option func(*options)

// WithPrefix sets what the names of all keys start with, instead of
// agentmessaging. It holds no braces. Deployments that share a Redis and an
// API key, but not the budget, need different prefixes.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// Do carries out one step as one script. An error says that Redis did not
// answer, or refused; the step may have been carried out all the same.
func (c *Coordinator) Do(ctx context.Context, step quota.Step) (quota.Answer, error) {
	reply, err := c.run(ctx, c.keys(step.Limits), arguments(step))
	if err != nil {
		return quota.Answer{}, explain(err)
	}
	return answerOf(reply)
}

// run sends the script's digest, and the script itself only to a server that
// does not know it: a new one, one that was restarted, or a replica that took
// over. The digest that was refused did nothing, so this is one step.
func (c *Coordinator) run(ctx context.Context, keys, args []string) ([]int64, error) {
	reply, err := c.script.EvalSha(ctx, stepDigest, keys, args)
	if err != nil && strings.Contains(err.Error(), "NOSCRIPT") {
		return c.script.Eval(ctx, stepScript, keys, args)
	}
	return reply, err
}

// Format prints the beginning of the names of all keys, whatever the verb.
func (c *Coordinator) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "redisquota.Coordinator(%s)", c.tag)
}
