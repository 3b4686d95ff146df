package redisquota

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// version changes with whatever makes the state of one script unreadable, or
// misread, to another. It is part of the state's name, so that in a fleet that
// is being updated the old and the new do not drop each other's state in turn.
const version = "1"

//go:embed step.lua
var stepScript string

var stepDigest = func() string {
	sum := sha1.Sum([]byte(stepScript))
	return hex.EncodeToString(sum[:])
}()

// keys names the state and the logs. The logs are found by what they count, so
// that they outlive a new version, and processes with other limits see the
// calls too; the rest of the state belongs to exactly these limits.
func (c *Coordinator) keys(limits []quota.Limit) []string {
	all := fnv.New64a()
	keys := make([]string, 1, 1+len(limits))
	for _, l := range limits {
		fmt.Fprintf(all, "%q %d %d\n", l.Key, l.Max, l.Window)
		key := fmt.Sprintf("%s:log:%s:%d", c.tag, l.Key, l.Window.Milliseconds())
		for slices.Contains(keys, key) { // limits need no names of their own
			key += ":again"
		}
		keys = append(keys, key)
	}
	keys[0] = fmt.Sprintf("%s:state:%s:%x", c.tag, version, all.Sum64())
	return keys
}

// arguments are those of the script, which lists them.
func arguments(step quota.Step) []string {
	args := []string{
		version, string(step.Kind),
		unsigned(step.ID), unsigned(step.ID >> 32), unsigned(uint64(step.Spends)),
		"0", step.LimitKey, micros(step.RetryAfter),
	}
	if step.Batch {
		args[5] = "1"
	}
	for _, l := range step.Limits {
		args = append(args, l.Key, strconv.Itoa(l.Max), micros(l.Window))
	}
	args = append(args, strconv.Itoa(len(step.Grants)))
	for _, g := range step.Grants {
		args = append(args, unsigned(g.ID), micros(g.Age), unsigned(uint64(g.Spends)))
	}
	return args
}

func unsigned(n uint64) string { return strconv.FormatUint(n, 10) }

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// answerOf reads the script's reply.
func answerOf(reply []int64) (quota.Answer, error) {
	if len(reply) != 8 {
		return quota.Answer{}, fmt.Errorf("redisquota: the script answered %d numbers instead of 8", len(reply))
	}
	return quota.Answer{
		Granted: reply[0] == 1, Probe: reply[1] == 1,
		Wait: time.Duration(reply[2]) * time.Microsecond, Gap: time.Duration(reply[3]) * time.Microsecond,
		Limit: int(reply[4]), Fleet: int(reply[5]), Epoch: reply[6],
		Alone: time.Duration(reply[7]) * time.Microsecond,
	}, nil
}
