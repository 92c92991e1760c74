package main

import (
	"context"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/weirhq/weir/internal/simrun"
)

const (
	// quiet is how long a command may take before it tells how far it is.
	quiet = 2 * time.Second
	// between is the time between two lines where standard error is no terminal.
	between = 10 * time.Second
)

// playWithProgress runs jobs and tells on standard error how far they are, if they take long: a
// bar on a terminal, else a line now and then.
func playWithProgress(ctx context.Context, std *stdio, jobs []simrun.Job) ([]simrun.Result, error) {
	teller := newProgressTeller(std, isTerminal(std.err), time.Now())
	results, err := simrun.Run(ctx, jobs, simrun.Options{Progress: func(played, all time.Duration) {
		teller.tell(time.Now(), played, all)
	}})
	teller.finish()
	return results, err
}

// progressTeller decides what to tell, and when.
type progressTeller struct {
	std      *stdio
	terminal bool
	next     time.Time
	done     string // what was done, and is being done
	doing    string
	bar      *progressbar.ProgressBar // once it is shown
}

func newProgressTeller(std *stdio, terminal bool, now time.Time) *progressTeller {
	return &progressTeller{std: std, terminal: terminal, next: now.Add(quiet), done: "simulated", doing: "simulating"}
}

func (p *progressTeller) tell(now time.Time, played, all time.Duration) {
	if now.Before(p.next) || all <= 0 {
		return
	}
	share := int(100 * (float64(played) / float64(all)))
	if !p.terminal {
		p.next = now.Add(between)
		p.std.note("%s %d %% of %v", p.done, share, all)
		return
	}
	p.next = now.Add(100 * time.Millisecond)
	if p.bar == nil {
		p.bar = progressbar.NewOptions(100,
			progressbar.OptionSetWriter(p.std.err),
			progressbar.OptionSetDescription(p.doing+" "+all.String()),
			progressbar.OptionSetWidth(30),
			// It would count from when the bar appears.
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionClearOnFinish(),
		)
	}
	// When standard error is gone there is nowhere left to say so.
	_ = p.bar.Set(share)
}

// finish takes the bar away.
func (p *progressTeller) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
