// Package fakenames has the names of limits, errors and keys that the interface does not show and
// that this project's fake chose.
package fakenames

// KeyPrefix begins the texts of keys: amk_fake_000001 is the first key.
const KeyPrefix = "amk_fake"

// The values of limit_key, one for each limit of interface 8.1.
const (
	KeyMinute           = "key_minute"
	IPMinute            = "ip_minute"
	KeyDay              = "key_day"
	AgentCreateKeyDay   = "agent_create_key_day"
	AgentCreateIPMinute = "agent_create_ip_minute"
	BYOKSetKeyHour      = "byok_set_key_hour"
	WarmUpKeyHour       = "warmup_key_hour"
)

// The values of the member error, except rate_limited, which the interface shows.
const (
	BadRequest        = "bad_request"
	Unauthorized      = "unauthorized"
	PaymentRequired   = "payment_required"
	Forbidden         = "forbidden"
	NotFound          = "not_found"
	MethodNotAllowed  = "method_not_allowed"
	BYOKNotConfigured = "byok_not_configured"
	BYOKUnavailable   = "byok_unavailable"
)
