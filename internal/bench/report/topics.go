package report

// topics are the tables of measurements, in the order of the page.
var topics = []topic{
	{
		name: "calls", title: "One call, answered in memory", of: "Call", who: "Client", subjects: clients,
		rows:    []bench{{"POST", "Call/over=canned/call=post"}, {"GET", "Call/over=canned/call=get"}},
		columns: []column{time, allocations, memory},
	},
	{
		name: "loopback", title: "One call over loopback", of: "Call", who: "Client", subjects: clients,
		rows:    []bench{{"POST", "Call/over=loopback/call=post"}, {"GET", "Call/over=loopback/call=get"}},
		columns: []column{time},
	},
	{
		name: "callers", title: "Many callers", of: "Callers", who: "Client", subjects: three,
		rows: []bench{
			{"1, answered in memory", "Callers/over=canned/callers=1"},
			{"8", "Callers/over=canned/callers=8"},
			{"64", "Callers/over=canned/callers=64"},
			{"1,000", "Callers/over=canned/callers=1000"},
			{"1, over loopback", "Callers/over=loopback/callers=1"},
			{"8", "Callers/over=loopback/callers=8"},
			{"64", "Callers/over=loopback/callers=64"},
			{"1,000", "Callers/over=loopback/callers=1000"},
		},
		columns: []column{{"Time", "ns/call", nanoseconds, floor}, {"Processor time", "cpu-ns/call", nanoseconds, floor}},
	},
	{
		name: "paths", title: "Other ways through a call", of: "Call", who: "Client", subjects: three,
		rows: []bench{
			{"a GET after a 429", "Path/case=429"},
			{"an error", "Path/case=error"},
			{"an error after 4 KB of text", "Path/case=error-long-text"},
			{"1 MiB of metadata", "Path/case=metadata"},
			{"a text that JSON makes six times as long", "Path/case=escaped"},
		},
		columns: []column{time, allocations, memory},
	},
	{
		name: "connection", title: "What a call does to its connection", who: "Client", subjects: three,
		rows: []bench{{"", "Connection"}},
		columns: []column{
			{"Writes per request", "writes/request", count, ""},
			{"Connections across 429s", "conns", count, ""},
		},
	},
	{
		name: "limiter", title: "A GET, answered in memory, by its limiter", of: "Limiter",
		rows: []bench{
			{"none", "Limiter/limiter=none/callers=1"},
			{"cool-down, which every client has", "Limiter/limiter=cool-down/callers=1"},
			{"`Pacer`", "Limiter/limiter=pacer/callers=1"},
			{"none, 64 callers at once", "Limiter/limiter=none/callers=64"},
			{"cool-down, 64 callers at once", "Limiter/limiter=cool-down/callers=64"},
			{"`Pacer`, 64 callers at once", "Limiter/limiter=pacer/callers=64"},
		},
		columns: []column{{"Time", "ns/op", nanoseconds, ""}, {"Allocations", "allocs/op", count, ""}},
	},
	{
		name: "fake", title: "The fake in a test", of: "What is called",
		rows: []bench{
			{"one call of a fake of its own, direct", "Fresh/direct"},
			{"the same, on the wire in memory", "Fresh/wire"},
			{"the same, over loopback", "Fresh/loopback"},
			{"one of many calls, direct", "Message/direct"},
			{"the same, on the wire in memory", "Message/wire"},
			{"the same, over loopback", "Message/loopback"},
		},
		columns: []column{{"× floor", "x-floor", times, ""}, {"Time", "ns/call", nanoseconds, ""}},
	},
	{
		name: "alone", title: "The fake alone", of: "What is done",
		rows: []bench{
			{"a fake is made and ended", "New"},
			{"a fake from start to first answer, direct", "FreshFake/direct"},
			{"the same, on the wire in memory", "FreshFake/wire"},
			{"a message, direct", "SendMessage/direct"},
			{"a message, on the wire in memory", "SendMessage/wire"},
		},
		columns: []column{{"Time", "ns/op", nanoseconds, ""}, {"Allocations", "allocs/op", count, ""}, {"Memory", "B/op", octets, ""}},
	},
	{
		name: "scale", title: "The fake with much in it", of: "It holds",
		rows: []bench{
			{"1 agent, 1 key", "Scale/agents=1/keys=1"},
			{"1,000 agents", "Scale/agents=1000/keys=1"},
			{"1,000,000 agents", "Scale/agents=1000000/keys=1"},
			{"100,000 keys", "Scale/agents=1/keys=100000"},
		},
		columns: []column{{"× a call of one with 1 agent, 1 key", "x-floor", times, ""}, {"Time", "ns/call", nanoseconds, ""}},
	},
	{
		name: "throughput", title: "The fake under load", of: "Load",
		rows:    []bench{{"64 connections over loopback", "Throughput"}},
		columns: []column{{"Part of the floor's calls per second", "of-floor", times, ""}},
	},
	{
		name: "memory", title: "The fake's memory", of: "It holds",
		rows:    []bench{{"100,000 agents and 100,000 keys", "Memory"}},
		columns: []column{{"For an agent", "B/agent", octets, ""}, {"For a key", "B/key", octets, ""}},
	},
	{
		name: "programs", title: "Fakes as programs", who: "Program", subjects: programs,
		rows: []bench{{"", "Program"}},
		columns: []column{
			{"Start", "start-ms", milliseconds, ""},
			{"Calls", "calls/s", perSecond, floor},
			{"Processor time of a call", "cpu-us/call", microseconds, ""},
			{"Processor time to ask", "load-cpu-us/call", microseconds, ""},
			{"Memory at the start", "start-RSS-MiB", mebioctets, ""},
			{"Memory after the calls", "RSS-MiB", mebioctets, ""},
		},
	},
	{
		name: "weight", title: "What a client adds to a program", who: "Client", subjects: weighed,
		rows: []bench{{"", "Weight"}},
		columns: []column{
			{"Modules", "modules", count, ""},
			{"Packages", "packages", count, ""},
			{"Program, over net/http alone", "KiB-over-net/http", kibioctets, ""},
			{"Build", "build-s", seconds, ""},
		},
	},
	{
		name: "bare", title: "The program on net/http alone, built with an empty cache", who: "Client", subjects: only(floor),
		rows: []bench{{"", "Weight"}},
		columns: []column{
			{"Packages", "packages", count, ""},
			{"Program", "KiB", kibioctets, ""},
			{"Build", "build-s", seconds, ""},
		},
	},
	{
		name: "suite", title: "The tests that use the fake", of: "Tests", subject: own,
		rows:    []bench{{"the tests of the client and the fake (`go test ./...`)", "Suite"}},
		columns: []column{{"Time", "s", seconds, ""}},
	},
}

var (
	time        = column{"Time", "ns/op", nanoseconds, floor}
	allocations = column{"Allocations", "allocs/op", count, floor}
	memory      = column{"Memory", "B/op", octets, floor}
)
