package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start watches a file until the test ends; every change that is told comes out
// of the channel as the file's text at that moment.
func start(t *testing.T, path string) <-chan string {
	t.Helper()
	w, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, w, path)
}

func run(t *testing.T, w *Watcher, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan string), make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, func() {
			b, _ := os.ReadFile(path)
			select {
			case told <- string(b):
			case <-ctx.Done():
			}
		}, func(err error) { t.Log(err) })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return told
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect waits until the text is told. Earlier ones may come first: a change may
// be told more than once, and before it is complete, but the last is never lost.
func expect(t *testing.T, told <-chan string, want string) {
	t.Helper()
	for got := range told {
		if got == want {
			return
		}
	}
}

func TestWrittenAndRenamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	told := start(t, path) // before there is a file
	write(t, path, "1")
	expect(t, told, "1")
	write(t, filepath.Join(dir, "unrelated"), "x")
	write(t, path, "2")
	expect(t, told, "2")
	write(t, path+".new", "3")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	expect(t, told, "3")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(t, told, "")
	write(t, path, "4")
	expect(t, told, "4")
}

// The way Kubernetes mounts a ConfigMap: f.yaml -> ..data/f.yaml, ..data -> a
// directory that is replaced as a whole.
func TestSwappedLinks(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "f.yaml"), text)
		if err := os.Symlink(name, filepath.Join(dir, "tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", "1")
	path := filepath.Join(dir, "f.yaml")
	if err := os.Symlink(filepath.Join("..data", "f.yaml"), path); err != nil {
		t.Fatal(err)
	}
	told := start(t, path)
	version("..2", "2")
	expect(t, told, "2")
	// The directory of the new version is watched as well.
	write(t, filepath.Join(dir, "..2", "f.yaml"), "3")
	expect(t, told, "3")
	version("..3", "4")
	expect(t, told, "4")
}

// A directory that is replaced by another of its name.
func TestReplacedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	fill := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(name, "f.yaml"), text)
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	fill(dir, "1")
	fill(dir+".new", "2")
	told := start(t, filepath.Join(dir, "f.yaml"))
	rename(dir, dir+".old")
	rename(dir+".new", dir)
	expect(t, told, "2")
	write(t, filepath.Join(dir, "f.yaml"), "3")
	expect(t, told, "3")
}

// A directory that is gone for a while is watched again when it is back.
func TestDirectoryComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	path := filepath.Join(dir, "f.yaml")
	begin := func(text string) {
		t.Helper()
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	begin("1")
	told := start(t, path)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	expect(t, told, "")
	begin("2")
	expect(t, told, "2")
	write(t, path, "3")
	expect(t, told, "3")
}

// A directory further up that is replaced tells nobody; who knows of it says so.
func TestRenew(t *testing.T) {
	top := t.TempDir()
	begin := func(name string) string {
		t.Helper()
		dir := filepath.Join(top, name, "conf")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "f.yaml"), name)
		return filepath.Join(dir, "f.yaml")
	}
	path := begin("a")
	begin("b")
	w, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	told := run(t, w, path)
	for _, r := range [][2]string{{"a", "old"}, {"b", "a"}} {
		if err := os.Rename(filepath.Join(top, r[0]), filepath.Join(top, r[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Renew(); err != nil {
		t.Fatal(err)
	}
	write(t, path, "2")
	expect(t, told, "2")
}

func TestNoDirectory(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "absent", "f.yaml")); err == nil {
		t.Error("a missing directory is watched")
	}
}

func TestClose(t *testing.T) {
	w, err := New(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Run(t.Context(), func() { t.Error("told after Close") }, func(err error) { t.Error(err) })
}
