package programs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: 1/100 s on every architecture that Go
// runs on.
const tick = 10 * time.Millisecond

// processorTime is what a process has taken of the processors. Only Linux
// tells.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(stat))
}

// parseStat adds utime and stime, the 14th and 15th of the fields in proc(5).
// The second, the name, may hold blanks and ends at the last bracket.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d fields after the name of the process", len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, err
}

// memory is what a process has of the machine's memory, in MiB. Only Linux
// tells.
func memory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseRSS(string(status))
}

// parseRSS reads the line that says "VmRSS:     12345 kB".
func parseRSS(status string) (float64, error) {
	_, rest, _ := strings.Cut(status, "\nVmRSS:")
	kib, _, ok := strings.Cut(rest, " kB\n")
	if !ok {
		return 0, fmt.Errorf("no line with VmRSS")
	}
	n, err := strconv.Atoi(strings.TrimSpace(kib))
	return float64(n) / 1024, err
}
