package report

// targets are what the client and the fake are held to.
var targets = []target{
	{"POST in memory: allocations, of go-retryablehttp's", against(cannedPost, "allocs/op", retryable), times, atMost(1.25)},
	{"GET in memory: allocations, of go-retryablehttp's", against(cannedGet, "allocs/op", retryable), times, atMost(1.25)},
	{"POST in memory: time, of go-retryablehttp's", against(cannedPost, "ns/op", retryable), times, atMost(1.15)},
	{"GET in memory: time, of go-retryablehttp's", against(cannedGet, "ns/op", retryable), times, atMost(1.15)},

	{"POST in memory: allocations, of every SDK's", greatest(cannedPost, "allocs/op", own, sdks), times, below(1)},
	{"GET in memory: allocations, of every SDK's", greatest(cannedGet, "allocs/op", own, sdks), times, below(1)},
	{"POST in memory: time, of every SDK's", greatest(cannedPost, "ns/op", own, sdks), times, below(1)},
	{"GET in memory: time, of every SDK's", greatest(cannedGet, "ns/op", own, sdks), times, below(1)},

	{"POST over loopback: time, of the floor's", against("Call/over=loopback/call=post", "ns/op", floor), times, atMost(1.05)},
	{"GET over loopback: time, of the floor's", against("Call/over=loopback/call=get", "ns/op", floor), times, atMost(1.05)},

	{"Writes to the connection for a request", plain("Connection", own, "writes/request"), count, exactly(1)},
	{"Connections across 429s", plain("Connection", own, "conns"), count, exactly(1)},
	{"Processor time of a call of 1,000 callers in memory, of that of 8", across(callers("canned", "1000", own), callers("canned", "8", own), "cpu-ns/call"), times, atMost(1.2)},
	{"Processor time of a call of 1,000 callers over loopback, of that of 8", across(callers("loopback", "1000", own), callers("loopback", "8", own), "cpu-ns/call"), times, atMost(1.2)},
	{"Growth of a call's processor time from 8 to 1,000 callers over loopback, of the floor's growth", growthOverLoopback, times, atMost(1.1)},
	{"Allocations of a call with the cool-down, of one without", across(coolDown, noLimiter, "allocs/op"), times, atMost(1)},

	{"A fake's first call, direct, of the floor's", plain("Fresh/direct", "", "x-floor"), times, atMost(2.0)},
	{"A fake's first call, on the wire, of the floor's", plain("Fresh/wire", "", "x-floor"), times, atMost(1.3)},
	{"A fake's first call, over loopback, of the floor's", plain("Fresh/loopback", "", "x-floor"), times, atMost(1.15)},
	{"The fake under 64 connections, of the floor's calls/s", plain("Throughput", "", "of-floor"), times, atLeast(0.85)},
	{"A call with 1,000 agents, of that with one", plain("Scale/agents=1000/keys=1", "", "x-floor"), times, atMost(1.3)},
	{"A call with 1,000,000 agents, of that with one", plain("Scale/agents=1000000/keys=1", "", "x-floor"), times, atMost(1.3)},
	{"A call with 100,000 keys, of that with one", plain("Scale/agents=1/keys=100000", "", "x-floor"), times, atMost(1.3)},
	{"Memory of an agent in the fake", plain("Memory", "", "B/agent"), octets, below(1024)},

	{"Start of the fake's program", plain("Program", ownFake, "start-ms"), milliseconds, below(20)},
	{"The program's calls/s, of every other program's", least("Program", "calls/s", ownFake, others), times, atLeast(5)},
	{"The program's processor time of a call, of every other program's", greatest("Program", "cpu-us/call", ownFake, others), times, below(1)},

	{"What the client adds to a program over net/http", plain("Weight", own, "KiB-over-net/http"), kibioctets, atMost(384)},
	{"Modules compiled in, the client's own among them", plain("Weight", own, "modules"), count, atMost(3)},
}

const (
	cannedPost = "Call/over=canned/call=post"
	cannedGet  = "Call/over=canned/call=get"
)

var (
	coolDown  = id{bench: "Limiter/limiter=cool-down/callers=1"}
	noLimiter = id{bench: "Limiter/limiter=none/callers=1"}
)

// growthOverLoopback leaves out what a thousand connections cost anybody.
var growthOverLoopback = growth(
	callers("loopback", "8", own), callers("loopback", "1000", own),
	callers("loopback", "8", floor), callers("loopback", "1000", floor),
	"cpu-ns/call",
)

func callers(over, many, subject string) id {
	return id{"Callers/over=" + over + "/callers=" + many, subject}
}

func others(*Results) []string { return otherPrograms }
