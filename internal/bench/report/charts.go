package report

// Charts are the page's pictures, by the name of their file.
func (r *Results) Charts() map[string]string {
	return map[string]string{
		"performance.svg":        r.clientChart().svg(),
		"performance-fake.svg":   r.programChart().svg(),
		"performance-weight.svg": r.weightChart().svg(),
	}
}

const whiskers = "Bar: median. Thin line on it: its confidence interval of 95 %, or least and most of fewer than six rounds."

func (r *Results) clientChart() chart {
	post, over := cannedPost, "Call/over=loopback/call=post"
	return chart{
		title: "A POST of each client, times what it takes by hand (dashed line)",
		desc: "Time, allocations and memory of a POST that is answered in memory, and its time over loopback, " +
			"as multiples of what the same call takes on net/http by hand, where the dashed line is. All bars have one scale.",
		key: whiskers,
		groups: oneScale(
			r.overFloor("Time, answered in memory", post, "ns/op"),
			r.overFloor("Allocations", post, "allocs/op"),
			r.overFloor("Memory allocated", post, "B/op"),
			r.overFloor("Time over loopback", over, "ns/op"),
		),
	}
}

// oneScale lets bars be compared across groups, which needs figures of one kind.
func oneScale(groups ...group) []group {
	var end float64
	for _, g := range groups {
		end = max(end, g.most())
	}
	for i := range groups {
		groups[i].end = end
	}
	return groups
}

func (r *Results) overFloor(title, bench, unit string) group {
	g := group{title: title, scale: times, unit: " ×", line: 1}
	for _, subject := range clients(r) {
		if subject != floor {
			g.bars = append(g.bars, newBar(subject, r.ratio(id{bench, subject}, id{bench, floor}, unit)))
		}
	}
	return g
}

func (r *Results) programChart() chart {
	return chart{
		title: "Fakes that run as programs",
		desc: "How long each program takes to start, how many calls a second it answers, the processor time that a call " +
			"takes in it, and its memory.",
		key: whiskers,
		groups: []group{
			r.absolute("Start (less is better)", "Program", "start-ms", milliseconds, programs),
			r.absolute("Calls a second, of 64 connections (more is better)", "Program", "calls/s", perSecond, programs),
			r.absolute("Processor time of a call (less is better)", "Program", "cpu-us/call", microseconds, programs),
			r.absolute("Memory after the calls (less is better)", "Program", "RSS-MiB", mebioctets, programs),
		},
	}
}

func (r *Results) weightChart() chart {
	return chart{
		title: "What each client adds to a program",
		desc: "How much larger the program that makes both calls is than the same program on net/http alone, the modules that the client " +
			"brings, and how long it takes to build.",
		groups: []group{
			r.absolute("Program, over net/http alone", "Weight", "KiB-over-net/http", kibioctets, weighed),
			r.absolute("Modules", "Weight", "modules", count, weighed),
			r.absolute("Build", "Weight", "build-s", seconds, weighed),
		},
	}
}

func (r *Results) absolute(title, bench, unit string, scale scale, subjects func(*Results) []string) group {
	g := group{title: title, scale: scale}
	for _, subject := range subjects(r) {
		g.bars = append(g.bars, newBar(subject, r.figure(id{bench, subject}, unit)))
	}
	return g
}

func newBar(subject string, f Figure) bar {
	b := bar{name: display(subject), figure: f}
	switch subject {
	case floor:
		b.class = "floor"
	case own, ownBounded, ownFake:
		b.class = "own"
	}
	return b
}
