package doctor

import (
	"fmt"
	"strings"
	"time"
)

// span is a duration as a person reads it: three digits are enough.
func span[D ~int64](duration D) string {
	d := time.Duration(duration)
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*day:
		return trimmed(d.Round(time.Second))
	}
	if d < 10*day {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// exact is an offset of clocks to the millisecond, without its sign.
func exact(m Millis) string {
	return trimmed(time.Duration(m).Abs().Round(time.Millisecond))
}

func trimmed(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
