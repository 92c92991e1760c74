package load

import (
	"bytes"
	"os"
	"strconv"
)

// machineTimes returns for how long the machine's processors have been idle so far, and how long they
// have been there, in a unit of the system's; zeros if it does not tell.
func machineTimes() (idle, all float64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	const idleField, waitField, guestField = 3, 4, 8 // guests' time is in others, too
	for i, field := range bytes.Fields(line) {
		v, err := strconv.ParseFloat(string(field), 64)
		if i == 0 || err != nil || i > guestField {
			continue
		}
		all += v
		if i-1 == idleField || i-1 == waitField {
			idle += v
		}
	}
	return idle, all
}
