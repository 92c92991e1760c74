package filewatch

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	write(t, path, "12345")
	refusal := errors.New("refused")
	tests := []struct {
		name  string
		path  string
		most  int
		check func(fs.FileInfo) error
		want  string
		err   string
	}{
		{name: "whole", path: path, most: 5, want: "12345"},
		{name: "too long", path: path, most: 4, err: "it is longer than 4 bytes"},
		{name: "directory", path: dir, most: 5, err: "it is not a regular file"},
		{name: "passed", path: path, most: 5, want: "12345", check: func(info fs.FileInfo) error {
			if info.Size() != 5 {
				t.Errorf("asked about a file of %d bytes", info.Size())
			}
			return nil
		}},
		{name: "refused", path: path, most: 5, err: "refused", check: func(fs.FileInfo) error { return refusal }},
	}
	for _, tt := range tests {
		data, err := Read(tt.path, tt.most, tt.check)
		if tt.err == "" && (err != nil || string(data) != tt.want) {
			t.Errorf("%s: %q, %v", tt.name, data, err)
		}
		if tt.err != "" && (err == nil || err.Error() != tt.err || data != nil) {
			t.Errorf("%s: %q, %v; want the error %q", tt.name, data, err, tt.err)
		}
	}
	if _, err := Read(filepath.Join(dir, "absent"), 5, nil); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), dir) {
		t.Errorf("absent: %v", err)
	}
}
