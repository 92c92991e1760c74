// Package secretfile keeps secrets out of files that everybody can get at.
package secretfile

import (
	"fmt"
	"io/fs"
	"runtime"
)

// Check returns an error if every user of the machine could read or change a file. It
// says what to do and leaves the name of the file, but for that, to the caller. info is of
// the open file, so that there is no moment in which another could be put in its place.
//
// A device such as /dev/stdin keeps nothing, and to advise another mode for one would do
// harm. Windows has no such bits; what Go shows there is made up.
func Check(path string, info fs.FileInfo) error {
	const others = 0o006
	mode := info.Mode()
	if runtime.GOOS == "windows" || mode&fs.ModeDevice != 0 || mode.Perm()&others == 0 {
		return nil
	}
	return fmt.Errorf("its mode %04o lets every user of this machine at what is in it; run: chmod o-rwx %s", mode.Perm(), path)
}
