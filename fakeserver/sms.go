package fakeserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// SMS is an agent's SMS channel: interface 2.2 and 3.
type SMS struct {
	Mode        string `json:"mode,omitempty"` // the mode of the last request; "" when SetSMS made the channel
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"` // "" when it has none
}

// enable asks for an SMS channel, in place of the one that there may be, at
// creation or later. statuses is where each mode leads: the interface shows no
// transitions (section 3). SetSMS makes any other status.
func (a *agent) enable(mode string, statuses map[string]string) {
	a.SMS = &SMS{Mode: mode, Status: statuses[mode]}
	if a.SMS.Status == spec.Active {
		a.SMS.PhoneNumber = phoneNumber(a.number)
	}
}

// phoneNumber is one of the hundred numbers that are set aside for fiction.
func phoneNumber(n int) string { return fmt.Sprintf("+120255501%02d", n%100) }

// channel is the channel in the answer to reading: interface 4.7.
func (a *agent) channel() *smsWire {
	if a.SMS == nil {
		return nil
	}
	return &smsWire{Status: a.SMS.Status, PhoneNumber: a.SMS.PhoneNumber}
}

// channelStatus is the channel in the answer to creation: interface 4.6.
func (a *agent) channelStatus() *smsWire {
	if a.SMS == nil {
		return nil
	}
	return &smsWire{Status: a.SMS.Status}
}

// enableSMS is interface 4.9.
func (s *Server) enableSMS(req *request) (operation, *failure) {
	a, f := s.agentWithBody(req)
	if f != nil {
		return operation{}, f
	}
	return operation{act: func() reply {
		a.enable(req.members.text(spec.SMSChannelMode), s.config.smsStatus)
		a.UpdatedAt = req.now
		return &channelReply{Status: a.SMS.Status}
	}}, nil
}

// SetSMS gives an agent's SMS channel a status of interface 3 (disabled,
// needs_compliance, pending, active, needs_setup), as the service does in its
// own time. Reading the agent then shows phoneNumber; "" shows none. An unknown
// agent or status panics.
func (s *Server) SetSMS(agentID, status, phoneNumber string) {
	if !slices.Contains(spec.SMSStatuses, status) {
		misuse("SetSMS", "unknown status %s; the statuses are %s", quoteName(status), strings.Join(spec.SMSStatuses, ", "))
	}
	now := s.now()
	s.withAgent("SetSMS", agentID, func(a *agent) {
		if a.SMS == nil {
			a.SMS = new(SMS)
		}
		a.SMS.Status, a.SMS.PhoneNumber = status, phoneNumber
		a.UpdatedAt = now
	})
}

func smsFlaw(sms *SMS) string {
	if sms == nil {
		return ""
	}
	if flaw := fieldFlaw("SMS.Mode", spec.AgentSMSMode, sms.Mode); flaw != "" {
		return flaw
	}
	switch {
	case sms.Mode == "" && sms.Status == "":
		return "SMS: needs a Mode or a Status"
	case sms.Status != "" && !slices.Contains(spec.SMSStatuses, sms.Status):
		return "SMS.Status: must be one of " + strings.Join(spec.SMSStatuses, ", ")
	}
	return ""
}
