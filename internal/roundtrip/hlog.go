package roundtrip

import (
	"io"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// WriteLog writes the round trips as an HDR histogram log, version 1.3: an interval in
// nanoseconds for each path that has any, tagged [Path.Tag].
func WriteLog(w io.Writer, r *Result) error {
	log := hdr.NewHistogramLogWriter(w)
	begin := r.At.UnixMilli()
	for _, write := range []func() error{
		func() error {
			return log.OutputComment("[Round trips in ns, measured by weir; a tag is a server's ID]")
		},
		log.OutputLogFormatVersion,
		func() error { return log.OutputStartTime(begin) },
		log.OutputLegend,
	} {
		if err := write(); err != nil {
			return err
		}
	}
	for _, p := range r.Paths {
		if p.Answered == 0 {
			continue
		}
		p.trips.SetTag(p.Tag)
		p.trips.SetStartTimeMs(begin)
		p.trips.SetEndTimeMs(begin + r.Took.Milliseconds())
		if err := log.OutputIntervalHistogram(p.trips); err != nil {
			return err
		}
	}
	return nil
}
