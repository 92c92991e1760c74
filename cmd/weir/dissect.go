package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

type dissectCmd struct {
	keySource
	Layout string `enum:",1,2" default:"" placeholder:"N" help:"The layout to read responses in, 1 or 2. A response does not say its own: without this flag the first of 2 and 1 that fits is taken."`
}

// Help is the command's long help.
func (*dissectCmd) Help() string {
	return `Take datagrams apart: one in hexadecimal a line on standard input, one JSON object a line on standard output, with the names that docs/protocol.md gives to fields. Numbers of 64 bits that are IDs are strings. Secrets are not shown.

With a key (WEIR_KEY, RATELIMITLY_AUTH_KEY or --key-file, of either format) AES datagrams are decrypted and cookies compared. Without one, an encrypted datagram is shown as far as it can be read; its key_id is the server ID if it is a response.

A line that is malformed, or that the key does not open, is told on standard error with its number; the others are shown all the same, and the exit status is 1.

    weir dissect < datagrams.hex
    WEIR_KEY="$(cat shop.key)" weir dissect < datagrams.hex | jq .
    echo 524c28000700… | weir dissect --layout 1`
}

// Run dissects standard input.
func (c *dissectCmd) Run(std *stdio) error {
	key, err := c.load(std, true)
	if err != nil {
		return err
	}
	d, err := newDissector(key, c.layout())
	if err != nil {
		return err
	}
	return dissectLines(std, d)
}

// layout is the flag's, or 0 without it.
func (c *dissectCmd) layout() wire.Layout {
	switch c.Layout {
	case "1":
		return wire.Layout1
	case "2":
		return wire.Layout2
	}
	return 0
}

// dissector takes datagrams apart with one key, or none.
type dissector struct {
	cred     *wire.Credential // nil without a key
	response wire.Layout      // 0: the one that fits
	scratch  wire.Scratch
}

func newDissector(key apikey.Key, response wire.Layout) (*dissector, error) {
	d := &dissector{response: response}
	if key.IsZero() {
		return d, nil
	}
	cred, err := wire.NewCredential(key)
	if err != nil {
		return nil, err
	}
	d.cred = cred
	return d, nil
}

// maxLine is the longest line that is kept. The longest datagram has 2400
// digits.
const maxLine = 1 << 14

// dissectLines dissects each line of the input. The error says no more than the
// status: every reason was told with its line.
func dissectLines(std *stdio, d *dissector) error {
	out := bufio.NewWriter(std.out)
	lines := bufio.NewReaderSize(std.in, maxLine)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	bad, encrypted := 0, 0
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return errors.Join(fmt.Errorf("standard input: %w", err), out.Flush())
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		rec, err := d.line(line)
		if err != nil {
			bad++
			std.note("line %d: %v", number, err)
		}
		if rec == nil {
			continue
		}
		if rec.Encrypted && err == nil {
			encrypted++
		}
		rec.Line = number
		if err := enc.Encode(rec); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if encrypted > 0 {
		std.note("%d encrypted: set WEIR_KEY to the AES key of these datagrams to read their PDUs", encrypted)
	}
	if bad > 0 {
		return statusError{code: exitFailure}
	}
	return nil
}

// line takes one line apart. Beside an error the record is nil, or what could be
// read before it.
func (d *dissector) line(line []byte) (*record, error) {
	if len(line) >= maxLine {
		return nil, fmt.Errorf("it is far longer than a datagram of %d bytes", wire.MaxDatagram)
	}
	b := make([]byte, hex.DecodedLen(len(line)))
	if _, err := hex.Decode(b, line); err != nil {
		return nil, fmt.Errorf("it is not hexadecimal: %w", hexError(err))
	}
	return d.datagram(b)
}

// hexError leaves out of an error which byte was wrong: what was pasted may be a
// key.
func hexError(err error) error {
	if errors.Is(err, hex.ErrLength) {
		return errors.New("the number of digits is odd")
	}
	return errors.New("a character is no digit of 0 to f")
}

// readLine returns the next line and drops what is beyond the reader's buffer;
// the error is then bufio.ErrBufferFull. It is io.EOF at the end, and the last
// line may lack a line end.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	kept := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return kept, err
	}
	return kept, bufio.ErrBufferFull
}
