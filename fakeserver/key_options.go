package fakeserver

import (
	"errors"
	"fmt"
	"strings"
)

// maxKeyText bounds the text of WithKey.
const maxKeyText = 256

// WithKey makes text the default API key, so that fakes in one program have
// distinct keys, or a program under test keeps the key that it is configured
// with. Keys that IssueKey makes begin with the same text, an underscore and
// their number; the labels stay key_000001, key_000002 and so on. At most 256
// characters of visible ASCII without a comma, as a bearer token has them.
//
// The fake keeps this text, unlike that of other keys, but shows it nowhere
// but in what Key and IssueKey return.
func WithKey(text string) Option {
	return func(c *config) error {
		switch {
		case text == "":
			return errors.New("WithKey: the text is empty")
		case len(text) > maxKeyText:
			return fmt.Errorf("WithKey: at most %d characters", maxKeyText)
		case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }):
			return errors.New("WithKey: only visible ASCII characters but the comma")
		}
		c.key = text
		return nil
	}
}

// WithPlan puts the default API key on a plan other than PlanPreview.
func WithPlan(plan Plan) Option {
	return func(c *config) error {
		if _, known := plan.find(); !known {
			return fmt.Errorf("WithPlan: unknown plan; the plans are %s", planNames)
		}
		c.plan = plan
		return nil
	}
}
