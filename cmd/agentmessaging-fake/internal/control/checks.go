package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Bounds of what the interface of the service says nothing about.
const (
	maxSeeded = 64 << 10 // bytes of an exchange
	maxDelay  = time.Hour
	// JSON holds years to 9999, and a time.Duration 292 of them.
	maxAdvance = 100 * 365 * 24 * time.Hour
	maxSeed    = 1<<53 - 1 // what every language's JSON holds exactly
)

// checks are what the tag check of a member can ask of its value, a text or a
// number as it was written. Each says what is allowed where the value is not,
// and nothing where it is.
var checks = map[string]func(string) string{
	"plan":         oneOf(PlanNames...),
	"endpoint":     oneOf(endpoints()...),
	"provider":     oneOf(spec.Providers...),
	"sms_mode":     oneOf(spec.SMSModes...),
	"sms_status":   oneOf(spec.SMSStatuses...),
	"reply_status": oneOf(replyStatuses()...),
	"named":        oneOf(faultNames()...),
	"address":      isAddress,
	"filled":       isFilled,
	"agent_id":     characters(1, 256),
	"short":        characters(1, 64),
	"phone":        characters(0, 64),
	"header":       isHeader,
	"metadata":     isMetadata,
	"delay":        duration(maxDelay),
	"advance":      duration(maxAdvance),
	"status":       number(200, 599),
	"bytes":        number(0, 1<<20),
	"turns":        number(1, 1_000_000_000),
	"seed":         number(0, maxSeed),
	"chance":       isChance,

	// Interface 8.4 and 2.3.
	"text":          inField(spec.MessageText),
	"system_prompt": inField(spec.SystemPrompt),
	"customer_ref":  inField(spec.CustomerRef),
	"llm.mode":      inField(spec.LLMMode),
	"llm.tier":      inField(spec.LLMTier),
	"llm.model":     inField(spec.LLMModel),
	"llm.provider":  inField(spec.LLMProvider),
	"llm.base_url":  inField(spec.LLMBaseURL),
	"llm.label":     inField(spec.LLMLabel),
}

// check asks all that a tag names.
func check(name, value, wants string) error {
	for _, want := range strings.Fields(wants) {
		if want == "required" {
			continue
		}
		if says := checks[want](value); says != "" {
			return badRequest(name, "%s", says)
		}
	}
	return nil
}

func oneOf(allowed ...string) func(string) string {
	return func(text string) string {
		if slices.Contains(allowed, text) {
			return ""
		}
		return "must be one of " + listed(allowed)
	}
}

func endpoints() (all []string) {
	for _, e := range spec.Endpoints {
		all = append(all, e.Method+" "+e.Path)
	}
	return all
}

func replyStatuses() (all []string) {
	for _, status := range spec.SendMessage.Errors {
		all = append(all, strconv.Itoa(status))
	}
	return all
}

func faultNames() []string {
	_, names := faults.Named("")
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == faults.Refused })
}

func characters(least, most int) func(string) string {
	return func(text string) string {
		switch n := utf8.RuneCountInString(text); {
		case n >= least && n <= most:
			return ""
		case least == 0:
			return fmt.Sprintf("at most %d characters", most)
		}
		return fmt.Sprintf("must be %d to %d characters", least, most)
	}
}

// inField asks for the bound of interface 8.4 or the list of interface 2.3. The
// empty text stands for none.
func inField(f *spec.Field) func(string) string {
	return func(text string) string {
		switch {
		case !f.Fits(text):
			return fmt.Sprintf("at most %d characters", f.MaxLen)
		case text != "" && !f.Allows(text):
			return "must be one of " + f.Values()
		}
		return ""
	}
}

func number(low, high int64) func(string) string {
	return func(text string) string {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < low || n > high {
			return fmt.Sprintf("must be an integer from %d to %d", low, high)
		}
		return ""
	}
}

// duration asks for a duration as Go writes it, which is how all of them are
// written here.
func duration(most time.Duration) func(string) string {
	return func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d < 0 || d > most {
			return fmt.Sprintf("must be a duration such as 250ms, 90s, 1h30m or 24h, from 0s to %v", most)
		}
		return ""
	}
}

func isAddress(text string) string {
	if _, err := netip.ParseAddr(text); err != nil {
		return "must be an IP address such as 203.0.113.7"
	}
	return ""
}

func isFilled(text string) string {
	if text != "" {
		return ""
	}
	return "must not be empty"
}

func isMetadata(object string) string {
	var compact bytes.Buffer
	_ = json.Compact(&compact, []byte(object)) // the reader has accepted it
	if utf8.RuneCount(compact.Bytes()) > spec.MetadataCap {
		return fmt.Sprintf("at most %d characters of compact JSON", spec.MetadataCap)
	}
	return ""
}

func isChance(text string) string {
	if p, _ := strconv.ParseFloat(text, 64); p < 0 || p > 1 { // the reader has accepted it
		return "must be from 0 to 1"
	}
	return ""
}
