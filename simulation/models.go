package simulation

import "time"

// model is a way of counting calls.
type model string

const (
	fixed   model = "fixed window"
	fromUse model = "window from first use"
	log     model = "sliding log"
	gcra    model = "token bucket"
	gcra10  model = "token bucket, burst 10"
	gcra1   model = "token bucket, burst 1"
	counter model = "sliding counter"
)

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
	return &tokenBucket{every: length / time.Duration(most), burst: m.burst(most)}
}

func (m model) burst(most int) int {
	switch m {
	case gcra10:
		return min(10, most)
	case gcra1:
		return 1
	}
	return most
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

var (
	usualModels = []model{fixed, gcra, log}
	allModels   = []model{fixed, fromUse, log, gcra, gcra10, gcra1, counter}
	longModels  = []model{fixed, fromUse, log, gcra, counter}
)

// longLimits are the limits of interface 8.1 with a window of an hour or more.
var longLimits = []limit{
	{key: dayKey, max: 1000, window: day},
	{key: agentsKey, max: 50, window: day},
	{key: hourKey, max: 5, window: hour},
	{key: hourKey, max: 3, window: hour},
}
