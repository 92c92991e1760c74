//go:build unix

package filewatch

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is no regular file is refused at once, pipes with and without a writer too: who
// waits for one waits for good, and then sees no further change.
func TestReadWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	pipe, written := filepath.Join(dir, "pipe"), filepath.Join(dir, "written")
	for _, path := range []string{pipe, written} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writer, err := os.OpenFile(written, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.WriteString("tenants: []"); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, path := range []string{pipe, written, socket, os.DevNull} {
		if data, err := Read(path, 100, nil); err == nil || err.Error() != "it is not a regular file" || data != nil {
			t.Errorf("%s: %q, %v", filepath.Base(path), data, err)
		}
	}
}

// However fast a file and a pipe take turns at a name, no reader gets stuck.
func TestReadWhilePipesComeAndGo(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "next")
	write(t, path, "1")
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			if i%2 == 0 {
				err = syscall.Mkfifo(next, 0o600)
			} else {
				err = os.WriteFile(next, []byte("1"), 0o600)
			}
			if err == nil {
				err = os.Rename(next, path)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 20_000 {
		if data, err := Read(path, 100, nil); err == nil && string(data) != "1" {
			t.Errorf("read %q", data)
		}
	}
	close(stop)
	<-done
}
