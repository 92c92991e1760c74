package secretfile

import (
	"fmt"
	"io/fs"
	"runtime"
	"testing"
)

// fileInfo is of a file of some mode.
type fileInfo struct {
	fs.FileInfo
	mode fs.FileMode
}

func (i fileInfo) Mode() fs.FileMode { return i.mode }

// What others can read or write is refused, whoever else can; what they can only execute
// is not, and devices never are.
func TestCheck(t *testing.T) {
	for mode := range fs.FileMode(0o1000) {
		err := Check("a.key", fileInfo{mode: mode})
		refused := mode&0o004 != 0 || mode&0o002 != 0
		if (err != nil) != (refused && runtime.GOOS != "windows") {
			t.Errorf("mode %04o: %v", mode, err)
		}
		want := fmt.Sprintf("its mode %04o lets every user of this machine at what is in it; run: chmod o-rwx a.key", mode)
		if err != nil && err.Error() != want {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if err := Check("a.key", fileInfo{mode: mode | fs.ModeDevice | fs.ModeCharDevice}); err != nil {
			t.Errorf("a device of mode %04o: %v", mode, err)
		}
	}
}
