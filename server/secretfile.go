package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/weirhq/weir/internal/secretfile"
)

// maxSecretFile is the longest secrets file that is read, in bytes.
const maxSecretFile = 32 << 20

// readSecretFile reads a file that only its owner and group may read or change. Its
// errors do not name the file.
func readSecretFile(path string) ([]byte, error) {
	// To open a pipe that nobody writes to would wait for whoever does.
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, withoutPath(err)
	}
	if err := secretfile.Check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(data) > maxSecretFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSecretFile)
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
