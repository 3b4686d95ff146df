package agentmessaging

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// This file says what an answer means: what an error body says, whether a call may be
// repeated after it, and how an answer was missed.

// readError reads an error body (interface 2.1) of any shape. From a body in another shape
// it quotes a proxy's words, but nothing that may echo the request.
func readError(a exchange.Answer, secrets redact.Redactor) *Error {
	members, err := strictjson.ReadObject(a.Body)
	e := &Error{
		Code: secrets.Identifier(members.Text(memberError)), TraceID: safeTraceID(traceIDOf(members), secrets),
		LimitKey: printable.Name(secrets.Identifier(members.Text(memberLimitKey))), Reason: secrets.Answer(members.Text(memberReason)),
		Extra: extra(members, secrets),
	}
	switch location := a.Header.Get("Location"); {
	case a.Status >= 300 && a.Status <= 399 && location != "":
		e.cause = fmt.Errorf("redirect to %s was not followed", secrets.Text(hostOf(location)))
	case err != nil:
		e.cause = notDocumented(a, err, secrets)
	case e.Code == "": // as gateways call it, or other services
		inner, _ := members.Get(memberError)
		nested, _ := strictjson.ReadObject(inner)
		if words := secrets.Quote(cmp.Or(members.Text("message"), nested.Text("message"))); words != "" {
			e.cause = errors.New(words)
		}
	}
	return e
}

// safeTraceID is a trace_id as one line without secrets.
func safeTraceID(id string, secrets redact.Redactor) string {
	return printable.Line(secrets.Identifier(id), 128)
}

// extra returns the members that the interface does not list, and those that are not
// as it says; nil if there are none.
func extra(members strictjson.Object, secrets redact.Redactor) (extra map[string]json.RawMessage) {
	for _, m := range members {
		if _, err := members.Get(string(m.Name)); err == nil && slices.Contains(errorMembers, string(m.Name)) && (m.Value[0] == '"' || m.Value[0] == 'n') {
			continue
		}
		if extra == nil {
			extra = make(map[string]json.RawMessage)
		}
		extra[secrets.Identifier(strings.ToValidUTF8(string(m.Name), "\ufffd"))] = secrets.JSON(m.Value)
	}
	return extra
}

// The members of ErrorResponse (interface 2.1). null is as good as missing.
const memberError, memberLimitKey, memberReason = "error", "limit_key", "reason"

var errorMembers = []string{memberError, memberTraceID, memberLimitKey, memberReason}

// notDocumented says what came in place of the documented body: a proxy's words, where
// they are safe to show, or else why the body ends, or err.
func notDocumented(a exchange.Answer, err error, secrets redact.Redactor) error {
	found := "the body is not the documented JSON"
	if strings.HasPrefix(http.DetectContentType(a.Body), "text/html") {
		found = "the body is HTML, probably a page of a proxy"
	}
	words := secrets.Quote(string(a.Body))
	switch {
	case words != "":
		return fmt.Errorf("%s: %q", found, words)
	case a.Cut != nil: // not wrapped: the call did not end for it
		return fmt.Errorf("%s: %s", found, secrets.Text(a.Cut.Error()))
	case len(a.Body) == 0:
		return errors.New("the body is empty")
	}
	return fmt.Errorf("%s: %w", found, err)
}

// hostOf is the host of a redirect, without path and query, which may hold a
// credential.
func hostOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "an address that cannot be read"
	}
	return cmp.Or(u.Host, "the same host")
}

// classify sorts the outcome. ctxErr is why the call cannot go on, if it cannot: it
// counts only where there is no answer, since what has arrived is kept.
func classify(a exchange.Answer, failure *Error, endpoint *spec.Endpoint, ctxErr error) *outcome {
	switch {
	case a.Status == 0:
		return classifyUnanswered(a, ctxErr)
	case isSuccess(a.Status) && a.Err == nil:
		return outcomeSuccess
	case isSuccess(a.Status) && ctxErr != nil:
		return outcomeEndedSent
	case isSuccess(a.Status):
		return outcomeLost
	case a.Status == http.StatusTooManyRequests:
		return outcomeLimited
	case a.Status == http.StatusServiceUnavailable && endpoint.Lists(a.Status) && failure.Code != "":
		return outcomeUnavailable // the one 5xx after which nothing was done
	case a.Status >= http.StatusBadGateway && a.Status <= http.StatusGatewayTimeout:
		return outcomeDown
	case isServerError(a.Status):
		return outcomeBroken
	}
	return outcomeOther
}

func classifyUnanswered(a exchange.Answer, ctxErr error) *outcome {
	switch {
	case a.Sent && ctxErr != nil:
		return outcomeEndedSent
	case ctxErr != nil:
		return outcomeEnded
	case isCertificateError(a.Err):
		return outcomeCertificate
	case a.Sent:
		return outcomeLost
	}
	return outcomeUnsent
}

// isCertificateError reports that one side refused the other's certificate, or refused
// it for having none. With TLS 1.3 a request may be on its way when the service says so,
// but the handshake is not over yet: nothing was carried out.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		return true
	}
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// missed says how the answer was missed, where the outcome is unknown.
func missed(a exchange.Answer, ended error) Missed {
	switch {
	case isServerError(a.Status):
		return MissedServerError
	case a.Missed == exchange.Unreadable:
		return MissedUnreadable
	case a.Missed == exchange.Refused:
		return MissedStream
	case a.Missed == exchange.NoAnswer && errors.Is(ended, context.Canceled):
		return MissedCanceled
	case a.Missed == exchange.NoAnswer:
		return MissedTimeout
	}
	return MissedConnection
}
