package redisquota

import (
	"fmt"
	"strings"
)

// refusals says what the first word of a server's error means for a fleet. An
// error that is none of them explains itself: LOADING, BUSY, a timeout.
var refusals = []struct{ word, meaning string }{
	{"READONLY", "this Redis is a replica; connect to its primary"},
	{"NOREPLICAS", "Redis refuses writes until enough replicas are connected"},
	{"MISCONF", "Redis refuses writes because it cannot save"},
	{"OOM", "Redis has no memory left for the quota"},
	{"WRONGTYPE", "a key of the quota holds something else; choose another prefix"},
	{"NOPERM", "this Redis user may not run scripts on the keys of the quota"},
}

// explain puts one prefix and, where it is known, the meaning before the
// server's own words.
func explain(err error) error {
	text := err.Error()
	for _, r := range refusals {
		if strings.Contains(text, r.word+" ") {
			return fmt.Errorf("redisquota: %s: %w", r.meaning, err)
		}
	}
	return fmt.Errorf("redisquota: %w", err)
}
