package agentmessaging

import (
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
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// attempt is the state of one attempt of a call: what came back, and what it means.
type attempt struct {
	number int       // from 1
	began  time.Time // if somebody observes
	exchange.Answer
	result  any          // of a success, decoded
	traceID string       // of a success
	failure *Error       // why it is no success: what the answer says, or who refused it, or the Go error
	class   outcomeClass // 0: it is not over
	shown   string       // traceID without secrets; see safeTraceID
}

// read reads the answer, if there is one, and reports whether it is a documented
// success. From any other answer it keeps the error body.
func (a *attempt) read(d decoder, secrets redact.Redactor) bool {
	if a.Status == 0 {
		return false
	}
	if a.Err == nil && isSuccess(a.Status) {
		var err error
		if a.result, a.traceID, err = d.decode(a.Body); err == nil {
			return true
		}
		a.Err, a.Missed = a.notDocumented(err, secrets), exchange.Unreadable
	}
	if a.failure = (&Error{TraceID: secrets.Identifier(a.traceID)}); !isSuccess(a.Status) {
		a.failure = a.readError(secrets)
	}
	a.failure.StatusCode, a.failure.RetryAfter = a.Status, retryafter.Read(a.Header, time.Now())
	return false
}

// readError reads an error body (interface 2.1) of any shape. Of one that is not
// the documented one it quotes what proxies say, and nothing that may be a request.
func (a *attempt) readError(secrets redact.Redactor) *Error {
	members, err := strictjson.ReadObject(a.Body)
	e := &Error{
		Code: secrets.Identifier(members.Text(memberError)), TraceID: secrets.Identifier(traceIDOf(members)),
		LimitKey: printable.Name(secrets.Identifier(members.Text(memberLimitKey))), Reason: secrets.Text(members.Text(memberReason)),
		Extra: extra(members, secrets),
	}
	switch location := a.Header.Get("Location"); {
	case a.Status >= 300 && a.Status <= 399 && location != "":
		e.cause = fmt.Errorf("redirect to %s was not followed", secrets.Text(hostOf(location)))
	case err != nil:
		e.cause = a.notDocumented(a.excerpt(string(a.Body), secrets), secrets)
	case e.Code == "":
		if words := secrets.Excerpt(members.Text("message")); words != "" { // as gateways call it
			e.cause = errors.New(words)
		}
	}
	return e
}

// extra returns the members that the interface does not list, and those that are not
// as it says; nil if there are none.
func extra(members strictjson.Object, secrets redact.Redactor) (extra map[string]json.RawMessage) {
	for _, m := range members {
		name := strings.ToValidUTF8(string(m.Name), "\ufffd")
		if _, err := members.Get(name); err == nil && slices.Contains(errorMembers, name) && (m.Value[0] == '"' || m.Value[0] == 'n') {
			continue
		}
		if extra == nil {
			extra = make(map[string]json.RawMessage)
		}
		extra[secrets.Identifier(name)] = secrets.JSON(m.Value)
	}
	return extra
}

// The members of ErrorResponse (interface 2.1). null is as good as missing.
const memberError, memberLimitKey, memberReason = "error", "limit_key", "reason"

var errorMembers = []string{memberError, memberTraceID, memberLimitKey, memberReason}

// notDocumented says why the body is not the documented one.
func (a *attempt) notDocumented(err error, secrets redact.Redactor) error {
	if strings.HasPrefix(http.DetectContentType(a.Body), "text/html") {
		return fmt.Errorf("the body is HTML, probably a page of a proxy (%w)", a.excerpt(redact.HTMLTitle(a.Body), secrets))
	}
	return fmt.Errorf("the body is not the documented JSON: %w", err)
}

// excerpt is the size of the body, and what a proxy says in it.
func (a *attempt) excerpt(said string, secrets redact.Redactor) error {
	if words := secrets.Excerpt(said); words != "" {
		return fmt.Errorf("%d bytes, %q", len(a.Body), words)
	}
	return fmt.Errorf("%d bytes", len(a.Body))
}

// hostOf is the host of a redirect, without path and query, which may hold a
// credential.
func hostOf(location string) string {
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return "an address that cannot be read"
	case u.Host == "":
		return "the same host"
	}
	return u.Host
}

// classify sorts the outcome. ctxErr is why the call cannot go on, if it cannot: it
// counts only where there is no answer, since what has arrived is kept.
func (a *attempt) classify(endpoint *spec.Endpoint, ctxErr error) outcomeClass {
	switch {
	case a.Status == 0:
		return a.classifyUnanswered(ctxErr)
	case isSuccess(a.Status) && a.Err == nil:
		return classSuccess
	case isSuccess(a.Status) && ctxErr != nil:
		return classEndedSent
	case isSuccess(a.Status):
		return classLost
	case a.Status == http.StatusTooManyRequests:
		return classLimited
	case a.Status == http.StatusServiceUnavailable && endpoint.Lists(a.Status) && a.failure.Code != "":
		return classUnavailable // the one 5xx after which nothing was done
	case a.Status >= http.StatusBadGateway && a.Status <= http.StatusGatewayTimeout:
		return classDown
	case isServerError(a.Status):
		return classBroken
	}
	return classOther
}

func (a *attempt) classifyUnanswered(ctxErr error) outcomeClass {
	switch {
	case a.Sent && ctxErr != nil:
		return classEndedSent
	case ctxErr != nil:
		return classEnded
	case isCertificateError(a.Err):
		return classCertificate
	case a.Sent:
		return classLost
	}
	return classUnsent
}

// isCertificateError reports that one side refused the other's certificate, or its
// having none. With TLS 1.3 a request may be on its way when the service says so,
// but the handshake is not over yet: nothing was carried out.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		return true
	}
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// verdict says whether the service did what the attempt asked for. The table of
// retries has it in the column of POST, which is never sent again unless the service
// certainly did nothing.
func (a *attempt) verdict() Verdict {
	if a.class == 0 && a.Sent { // a part of the program panicked
		return VerdictUnknown
	}
	switch actionFor(a.class, http.MethodPost) {
	case actionSuccess:
		return VerdictDone
	case actionUnknown:
		return VerdictUnknown
	}
	return VerdictNotDone
}

// missed says how the answer was missed, where the outcome is unknown.
func (a *attempt) missed(ended error) Missed {
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

// safeTraceID is the answer's trace_id without secrets. It is kept: the end of an
// attempt and the end of its call both report it.
func (a *attempt) safeTraceID(secrets redact.Redactor) string {
	if a.failure != nil {
		return a.failure.TraceID
	}
	if a.traceID != "" && a.shown == "" {
		a.shown = secrets.Identifier(a.traceID)
	}
	return a.shown
}

// info is what a CallInfo says of the answer.
func (a *attempt) info(secrets redact.Redactor) CallInfo {
	i := CallInfo{StatusCode: a.Status, Header: secrets.Header(a.Header), TraceID: a.safeTraceID(secrets), Body: a.Body}
	if !isSuccess(a.Status) && a.Body != nil {
		i.Body = []byte(secrets.Text(string(a.Body)))
	}
	return i
}
