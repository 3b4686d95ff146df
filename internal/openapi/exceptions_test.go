package openapi_test

import (
	"fmt"
	"regexp"
	"strings"
)

// exception is a set of requests on which the service and the document
// disagree, and why the document cannot help it.
type exception struct {
	cases  string // ids of the contract suite; * stands for anything
	status int    // what the service answers
	reason string
}

const (
	whoseKey  = "which keys the service has issued is in no document"
	stored    = "it is right or wrong by what was stored before, or by whether the store is there"
	undecoded = "a schema sees members after decoding"
	oneValue  = "the validator decodes the first JSON value of a body and leaves the rest"
	undecided = "the interface does not say so; the fake's decision"
)

var exceptions = []exception{
	{"5/credential-unknown/*", 401, whoseKey},
	{"5/credential-shortened/*", 401, whoseKey},
	{"5/credential-lengthened/*", 401, whoseKey},
	{"5/credential-other-case/*", 401, whoseKey},
	{"5/credential-revoked/*", 401, whoseKey},

	{"4.6/byok-neither", 400, stored},
	{"4.6/byok-of-another-key", 400, stored},
	{"fake/operation/refused-creation", 400, stored},
	{"fake/byok-agent-after-clear", 400, stored},
	{"fake/creation-while-unavailable", 400, stored},
	{"7/creation-without-503", 400, stored},

	{"fake/duplicate/*", 400, undecoded + ", when one of two is left"},
	{"fake/utf-8/*", 400, undecoded + ", when what is no UTF-8 has become U+FFFD"},
	{"fake/body/*/trailing-garbage", 400, oneValue},
	{"fake/body/*/trailing-document", 400, oneValue},

	{"fake/body/*/over-1-MiB", 400, undecided},
	{"fake/metadata-cap/over", 400, undecided + ", of a cap whose value it leaves open"},
	{"fake/message-no-other-member/*", 400, undecided + ": 2.5 closes no object"},
	{"fake/other-case/send-message/user_ref", 400, undecided + ": 2.5 closes no object"},
	{"fake/content-type/*/absent", 200, undecided + "; a document has to name a media type"},
}

func (e exception) String() string { return fmt.Sprint(e.cases, " answered ", e.status) }

func (e exception) covers(id string, status int) bool {
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(e.cases), `\*`, ".*") + "$"
	return status == e.status && regexp.MustCompile(pattern).MatchString(id)
}

// excepted looks the disagreement up, and marks each exception that it meets.
func (r *record) excepted(id string, status int) bool {
	found := false
	for _, e := range exceptions {
		if e.covers(id, status) {
			r.used[e.String()] = true
			found = true
		}
	}
	return found
}
