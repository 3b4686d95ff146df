package simulation

import "time"

// model is a way of counting calls.
type model string

const (
	fixed   model = "fixed window"
	fromUse model = "window from first use"
	log     model = "sliding log"
	bucket  model = "token bucket"
	counter model = "sliding counter"
)

var models = []model{fixed, fromUse, log, bucket, counter}

// window makes an empty window of the model.
func (m model) window(most int, length time.Duration) window {
	switch m {
	case fixed, fromUse:
		return &fixedWindow{max: most, length: length, fromUse: m == fromUse}
	case log:
		return &slidingLog{max: most, length: length}
	case counter:
		return &slidingCounter{max: most, length: length}
	}
	return &tokenBucket{every: length / time.Duration(most), burst: most}
}

// Names of the limits, in limit_key and in the pacer's configuration.
const (
	minuteKey = "minute"
	hourKey   = "hour"
	dayKey    = "day"
	agentsKey = "agents"
)

// perMinute is a service with a minute limit alone.
func (m model) perMinute(most int) *service {
	return &service{limits: []serviceLimit{{key: minuteKey, window: m.window(most, time.Minute)}}}
}
