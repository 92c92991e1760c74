package storm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// heading is the first line of a file in a corpus of Go's fuzzing.
const heading = "go test fuzz v1"

// corpus is a directory of inputs.
type corpus struct {
	dir string
	old bool // it may hold inputs of what the target was once
}

// read reads the inputs, in the order of their names. A directory that does not exist holds none.
func (c corpus) read(kinds []kind) ([]input, error) {
	dir := c.dir
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	var inputs []input
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("storm: %w", err)
		}
		in, err := decodeFile(text, kinds)
		if err != nil && c.old {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("storm: %s: %w", path, err)
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// writeCorpus writes the text of an input into a directory.
func writeCorpus(dir, name string, text []byte) (path string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("storm: %w", err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return "", fmt.Errorf("storm: %w", err)
	}
	return path, nil
}

// encodeFile returns the text of an input's file.
func encodeFile(in input, kinds []kind) []byte {
	var text bytes.Buffer
	fmt.Fprintln(&text, heading)
	for i, b := range in {
		value := ""
		switch kinds[i].name {
		case "[]byte", "string":
			value = strconv.Quote(string(b))
		case "bool":
			value = strconv.FormatBool(b[0]&1 == 1)
		case "byte":
			value = fmt.Sprintf("%q", b[0])
		case "uint16":
			value = strconv.Itoa(int(binary.LittleEndian.Uint16(b)))
		case "uint64":
			value = strconv.FormatUint(binary.LittleEndian.Uint64(b), 10)
		}
		fmt.Fprintf(&text, "%s(%s)\n", kinds[i].name, value)
	}
	return text.Bytes()
}

// decodeFile reads the text of an input's file.
func decodeFile(text []byte, kinds []kind) (input, error) {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] != heading || len(lines) != 1+len(kinds) {
		return nil, fmt.Errorf("it is not %q and %d arguments", heading, len(kinds))
	}
	var in input
	for i, line := range lines[1:] {
		b, err := decodeArgument(strings.TrimSpace(line), kinds[i])
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		in = append(in, b)
	}
	return in, nil
}

func decodeArgument(line string, k kind) ([]byte, error) {
	name, value, _ := strings.Cut(line, "(")
	value, closed := strings.CutSuffix(value, ")")
	if name == "uint8" {
		name = "byte"
	}
	if name != k.name || !closed {
		return nil, fmt.Errorf("%q is no %s", line, k.name)
	}
	switch k.name {
	case "[]byte", "string":
		s, err := strconv.Unquote(value)
		return []byte(s), err
	case "bool":
		v, err := strconv.ParseBool(value)
		_, b := encode(v)
		return b, err
	case "byte":
		if r, err := strconv.Unquote(value); err == nil && value[0] == '\'' {
			c, _ := utf8.DecodeRuneInString(r)
			return []byte{byte(c)}, nil
		}
	}
	v, err := strconv.ParseUint(value, 0, 8*k.width)
	return binary.LittleEndian.AppendUint64(nil, v)[:k.width], err
}
