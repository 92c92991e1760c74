package dnszone

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/weirhq/weir/internal/filewatch"
)

// Follower keeps a [Zone] at what a members file says. Its methods are safe for
// concurrent use.
type Follower struct {
	zone  *Zone
	path  string
	log   *slog.Logger
	watch *filewatch.Watcher

	mu sync.Mutex // one load at a time, so that an older one never wins
}

// Follow loads a members file (see [LoadMembers]) into a zone and begins to watch
// it. When the file cannot be used or its directory not be watched, that is the
// error, and the zone is as it was. log may be nil.
func Follow(zone *Zone, path string, log *slog.Logger) (*Follower, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	watch, err := filewatch.New(path) // before the first load: nothing falls between
	if err != nil {
		return nil, fmt.Errorf("dnszone: members file: %w", err)
	}
	f := &Follower{zone: zone, path: path, log: log, watch: watch}
	if err := f.load(); err != nil {
		_ = watch.Close()
		return nil, err
	}
	return f, nil
}

// Run follows the file until ctx ends or the follower is closed. A file that
// cannot be used is logged, with the place, and changes nothing.
func (f *Follower) Run(ctx context.Context) {
	f.watch.Run(ctx, f.reload, f.warn)
}

func (f *Follower) warn(err error) { f.log.Warn("watching the members file", "error", err) }

// Reload reads the file now, as after a change. It is found and watched anew, should a
// directory on the way to it have been replaced.
func (f *Follower) Reload() {
	if err := f.watch.Renew(); err != nil {
		f.warn(err)
	}
	f.reload()
}

func (f *Follower) reload() {
	if err := f.load(); err != nil {
		f.log.Error("members file not taken, the members stay as they were", "error", err)
	}
}

// Close ends the watch.
func (f *Follower) Close() error { return f.watch.Close() }

func (f *Follower) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := LoadMembers(f.path)
	if err != nil {
		return err
	}
	before := f.zone.Serial()
	if err := f.zone.Set(file.Members, file.KeyIDs); err != nil {
		return err
	}
	if serial := f.zone.Serial(); serial != before {
		f.log.Info("members changed", "members", len(file.Members), "serial", serial)
	}
	return nil
}
