package filewatch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var errNotRegular = errors.New("it is not a regular file")

// Read reads a file that anything may be put in the place of, at any moment. It never waits
// for somebody else: what is no regular file, such as a pipe, is an error, and so are more
// than most bytes. check, if not nil, is asked before anything is read, about the very file
// that is. The errors do not name the file.
func Read(path string, most int, check func(fs.FileInfo) error) ([]byte, error) {
	// Looking first, and opening then, would not do: between the two a pipe can come, and to
	// open one that nobody writes to takes until somebody does.
	f, err := os.OpenFile(path, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		if info, seen := os.Stat(path); seen == nil && !info.Mode().IsRegular() { // a socket cannot be opened
			return nil, errNotRegular
		}
		return nil, withoutPath(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if check != nil {
		if err := check(info); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	return data, nil
}

// withoutPath leaves out what a message says already.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
