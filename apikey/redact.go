package apikey

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// String returns the redacted form, such as "rl-aes(key_id=7)" or, for a
// legacy key, "rl-aes(key_id=7, legacy)".
func (k Key) String() string {
	if k.IsZero() {
		return "rl(no key)"
	}
	s := k.auth.prefix() + "(key_id=" + strconv.FormatUint(k.id, 10)
	if k.legacy {
		s += ", legacy"
	}
	return s + ")"
}

// GoString returns the redacted form.
func (k Key) GoString() string { return k.String() }

// Format writes the redacted form whatever the verb and its flags.
func (k Key) Format(f fmt.State, _ rune) {
	// A failed write is the printer's to report; fmt keeps no error here.
	_, _ = io.WriteString(f, k.String())
}

// MarshalText returns the redacted form. There is no UnmarshalText: what is
// written here cannot be read back. Use [Key.Encode] and [Parse].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalJSON returns the redacted form as a JSON string.
func (k Key) MarshalJSON() ([]byte, error) {
	// The redacted form holds nothing that JSON would escape.
	return []byte(`"` + k.String() + `"`), nil
}

// MarshalYAML returns the redacted form.
func (k Key) MarshalYAML() (any, error) { return k.String(), nil }

// LogValue returns the redacted form.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
