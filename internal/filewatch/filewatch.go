// Package filewatch tells when a configuration file may have changed, however it
// is replaced: written in place, renamed over by an editor, or reached through
// symbolic links that Kubernetes swaps, or with its directory.
package filewatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change of the watched file is told when nothing has happened to it for settleTime,
// or, if things go on happening, settleLimit after the first of them.
const (
	settleTime  = 100 * time.Millisecond
	settleLimit = time.Second
)

// retryTime is when a watch that could not be had is tried again.
const retryTime = time.Second

// maxLinks bounds how many symbolic links lead to a file.
const maxLinks = 40

// Watcher tells when a file may have changed. It watches directories, not the
// file: editors replace a file by renaming another over it, and Kubernetes by
// swapping a symbolic link on the way to it, so every directory that holds a link
// on the way is watched as well, and only the names on the way count.
type Watcher struct {
	path    string
	watcher *fsnotify.Watcher

	mu    sync.Mutex
	names map[string]bool // the absolute paths of the file and the links to it
	dirs  map[string]bool // the directories watched
}

// New begins to watch the file at path, which need not exist yet; its directory
// must. What happens from here on is told by [Watcher.Run], so whoever reads the
// file after New misses nothing.
func New(path string) (*Watcher, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("filewatch: %s: %w", path, err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("filewatch: %s: %w", path, err)
	}
	f := &Watcher{path: abs, watcher: w, dirs: make(map[string]bool)}
	if err := f.follow(); err != nil {
		_ = w.Close()
		return nil, err
	}
	return f, nil
}

// Renew looks where the file is now and watches there. Run does so after every change
// that it sees; Renew is for whoever knows of one that it cannot have seen, such as a
// directory on the way to the file's that was replaced. It is safe for concurrent use.
func (f *Watcher) Renew() error { return f.follow() }

// Close ends the watch and with it Run.
func (f *Watcher) Close() error { return f.watcher.Close() }

// Run calls changed after every change until the context ends or the watcher is
// closed, and failed with what goes wrong in between. Both are called from the
// caller's goroutine. Run is called once.
func (f *Watcher) Run(ctx context.Context, changed func(), failed func(error)) {
	settle := time.NewTimer(0)
	if !settle.Stop() {
		<-settle.C
	}
	defer settle.Stop()
	var first time.Time // of the changes that are not told yet
	lost := false       // something is not watched, which was told
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-f.watcher.Events:
			if !ok {
				return
			}
			if !f.concerns(ev) {
				continue
			}
			if first.IsZero() {
				first = time.Now()
			}
			settle.Reset(min(settleTime, max(0, settleLimit-time.Since(first))))
		case err, ok := <-f.watcher.Errors:
			if !ok {
				return
			}
			// Events may have been lost, so look once more.
			failed(fmt.Errorf("filewatch: %s: %w", f.path, err))
			first = time.Now()
			settle.Reset(settleTime)
		case <-settle.C:
			// Watch what is there now before it is read, so that no change falls between.
			err := f.follow()
			if err != nil {
				settle.Reset(retryTime)
				if lost && first.IsZero() {
					continue // nothing new
				}
				failed(err)
			}
			first, lost = time.Time{}, err != nil
			changed()
		}
	}
}

// concerns reports whether an event is about a name on the way, or about a watched
// directory itself, which was moved or removed and may be there anew.
func (f *Watcher) concerns(ev fsnotify.Event) bool {
	name := filepath.Clean(ev.Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names[name] || f.dirs[name]
}

// follow finds out which names lead to the file now and watches their directories.
func (f *Watcher) follow() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	steps := trail(f.path)
	f.names = make(map[string]bool, len(steps))
	dirs := make(map[string]bool, len(steps))
	for _, s := range steps {
		f.names[s] = true
		dirs[filepath.Dir(s)] = true
	}
	for dir := range f.dirs {
		if !dirs[dir] {
			// It fails when the directory is gone, and the watch with it.
			_ = f.watcher.Remove(dir)
			delete(f.dirs, dir)
		}
	}
	var failure error
	for dir := range dirs {
		// A directory that was replaced by another of its name needs a new watch, and
		// adding one that is there already does nothing.
		if err := f.watcher.Add(dir); err != nil {
			failure = fmt.Errorf("filewatch: directory %s: %w; changes there are not seen", dir, err)
			continue
		}
		f.dirs[dir] = true
	}
	return failure
}

// trail returns the absolute names on the way to a file: each symbolic link that is
// followed, and what is found, or missing, at the end.
func trail(path string) []string {
	var steps []string
	for range maxLinks {
		link, target, rest := firstLink(path)
		if link == "" {
			break
		}
		steps = append(steps, link)
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
	}
	return append(steps, path)
}

// firstLink returns the shortest prefix of a path that is a symbolic link, where it
// leads, and the path behind it; link is "" if there is none.
func firstLink(path string) (link, target, rest string) {
	for end := len(filepath.VolumeName(path)) + 1; end <= len(path); end++ {
		if end < len(path) && !os.IsPathSeparator(path[end]) {
			continue
		}
		if target, err := os.Readlink(path[:end]); err == nil {
			return path[:end], target, strings.TrimLeft(path[end:], string(filepath.Separator))
		}
	}
	return "", "", ""
}
