package server

import (
	"io/fs"

	"github.com/weirhq/weir/internal/filewatch"
	"github.com/weirhq/weir/internal/secretfile"
)

// maxSecretFile is the longest secrets file that is read, in bytes: some 70 000 tenants. A
// broken file of that size takes a hundred times as much memory while it is parsed.
const maxSecretFile = 8 << 20

// readSecretFile reads a file that only its owner and group may read or change. Its
// errors do not name the file.
func readSecretFile(path string) ([]byte, error) {
	return filewatch.Read(path, maxSecretFile, func(info fs.FileInfo) error { return secretfile.Check(path, info) })
}
