package roundtrip

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// lagTold is the lag from which a person is told: the round trips are right all the same,
// but the questions were not as even as they should have been.
const lagTold = 20 * time.Millisecond

// WriteTable writes a line for each path, and below what was out of the ordinary.
func WriteTable(w io.Writer, r *Result) error {
	fmt.Fprintf(w, "round trips in ms, %d/s for %v", r.Rate, r.Took.Round(100*time.Millisecond))
	if r.Interrupted {
		fmt.Fprint(w, " (interrupted)")
	}
	fmt.Fprint(w, "\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server\taddress\tn\tloss\tmin\tp50\tp90\tp99\tp99.9\tmax\t")
	for _, p := range r.Paths {
		fmt.Fprintf(table, "%v\t%v\t%d\t%s\t", p.Server, p.Addr, p.Asked, lossText(p))
		for _, d := range []time.Duration{p.Least, p.Quantile(50), p.Quantile(90), p.Quantile(99), p.Quantile(99.9), p.Most} {
			if p.Answered == 0 {
				fmt.Fprint(table, "-\t")
				continue
			}
			fmt.Fprintf(table, "%.3f\t", ms(d))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	notes := notes(r)
	if len(notes) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(notes, "\n"))
	return err
}

func lossText(p *Path) string {
	if p.Asked == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*p.Loss())
}

// notes are what was out of the ordinary, and what to do about it.
func notes(r *Result) []string {
	var notes []string
	for _, p := range r.Paths {
		note := func(format string, args ...any) {
			notes = append(notes, fmt.Sprintf("%v at %v: ", p.Server, p.Addr)+fmt.Sprintf(format, args...))
		}
		if p.Unsent > 0 {
			note("%d could not be sent from this machine: %s", p.Unsent, p.Error)
		}
		if p.Stranger != 0 {
			note("server %v answers there instead; was it restarted? Look the servers up again", p.Stranger)
		}
		if p.Forged > 0 {
			note("%d answers are not of this key; does somebody forge, or is the key another server's?", p.Forged)
		}
		if other := p.Invalid - p.Forged; other > 0 && p.Stranger == 0 {
			note("%d datagrams came in that answer nothing", other)
		}
		if p.Asked > 0 && p.Answered == 0 && p.Stranger == 0 {
			note("no answer; weir doctor, with the same key and flags, finds out why")
		}
		if p.Late > 0 {
			note("%d answers came after %v, and count as lost", p.Late, r.Timeout)
		}
		if p.Repeats > 0 {
			note("%d answers came twice", p.Repeats)
		}
		if p.Lag > lagTold {
			note("this machine was late: a question left %v after its time", p.Lag.Round(time.Millisecond))
		}
	}
	return notes
}
