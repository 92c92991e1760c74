package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// output is a file that appears whole, under its name, or not at all. The zero output is
// no file.
type output struct {
	*os.File
	name  string
	force bool
	kept  bool
}

// newOutput begins a file that is to have a name, beside it. What stands there is an error
// unless force says that it may be replaced. Without a name there is no file.
func newOutput(name string, force bool) (*output, error) {
	if name == "" {
		return &output{}, nil
	}
	o := &output{name: name, force: force}
	if err := o.free(); err != nil {
		return nil, usage(err)
	}
	var err error
	// The file is to have the permissions that the user's umask gives.
	if o.File, err = os.OpenFile(name+"."+rand.Text()[:8]+".part", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		if why := new(fs.PathError); errors.As(err, &why) {
			err = &fs.PathError{Op: why.Op, Path: name, Err: why.Err} // the name that the user gave
		}
		return nil, err
	}
	return o, nil
}

// free reports why the name cannot be had.
func (o *output) free() error {
	info, err := os.Stat(o.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; give the name of a file in it", o.name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file, and cannot be replaced", o.name)
	case !o.force:
		return fmt.Errorf("%s is there already; give another name, or --force to replace it", o.name)
	}
	return nil
}

// notOver reports that a file to be written is one of those that are read.
func notOver(name string, inputs ...string) error {
	written, _ := os.Stat(name) // if there is none yet, it is nobody's; what else is wrong with it, writing it tells
	for _, input := range inputs {
		read, err := os.Stat(input)
		if err == nil && !read.IsDir() && os.SameFile(written, read) {
			return fmt.Errorf("%s is what is to be read, %s; give another name", name, input)
		}
	}
	return nil
}

// keep gives the file, which is complete, its name. If it cannot, what was written stays
// under the name that the error has.
func (o *output) keep() error {
	o.kept = true
	err := errors.Join(o.Sync(), o.Close())
	if err == nil {
		err = o.free()
	}
	if err == nil {
		err = os.Rename(o.File.Name(), o.name)
	}
	if err != nil {
		return fmt.Errorf("what was measured is in %s: %w", o.File.Name(), err)
	}
	return nil
}

// discard takes the file away unless it was kept.
func (o *output) discard() {
	if o.File == nil || o.kept {
		return
	}
	_ = o.Close()
	_ = os.Remove(o.File.Name())
}
