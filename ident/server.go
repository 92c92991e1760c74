package ident

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ServerID identifies one start of one r-server process and tells how old it
// is: the upper 41 bits are its start time in whole seconds since
// 2025-01-01T00:00:00Z, the lower 23 bits tell apart those that started in the
// same second ("Server IDs" in docs/protocol.md). The zero value is a valid ID.
type ServerID uint64

const (
	lowBits    = 23
	lowLimit   = 1 << lowBits
	startLimit = 1 << (64 - lowBits) // seconds
	epochUnix  = 1735689600          // 2025-01-01T00:00:00Z
)

// ErrServerID is wrapped by every error that [NewServerID] and [ParseServerID]
// return.
var ErrServerID = errors.New("ident: invalid server ID")

// NewServerID builds the ID of a server that started at start, rounded down to
// a whole second. low tells apart servers that started in the same second and
// is below 1<<23. A start before 2025 or too late for 41 bits of seconds is an
// error: it comes from a wrong clock and would upset the order of age.
func NewServerID(start time.Time, low uint32) (ServerID, error) {
	seconds := start.Unix() - epochUnix
	if seconds < 0 {
		return 0, fmt.Errorf("%w: start %s is before 2025-01-01T00:00:00Z; set the clock", ErrServerID, start.UTC().Format(time.RFC3339))
	}
	if seconds >= startLimit {
		return 0, fmt.Errorf("%w: start %d s after 2025 does not fit 41 bits; set the clock", ErrServerID, seconds)
	}
	if low >= lowLimit {
		return 0, fmt.Errorf("%w: low part %d is not below %d", ErrServerID, low, lowLimit)
	}
	return ServerID(uint64(seconds)<<lowBits | uint64(low)), nil
}

// ParseServerID reads the decimal form that [ServerID.String] writes. Signs,
// leading zeros, blanks and values beyond 64 bits are errors.
func ParseServerID(decimal string) (ServerID, error) {
	if len(decimal) > 1 && decimal[0] == '0' {
		return 0, fmt.Errorf("%w: %q has a leading zero", ErrServerID, decimal)
	}
	// ParseUint takes no sign with an explicit base, and no underscores.
	v, err := strconv.ParseUint(decimal, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a decimal number of 64 bits", ErrServerID, decimal)
	}
	return ServerID(v), nil
}

// ParseTarget reads the server ID out of an SRV target such as
// "s-123.rl.example.com.": the first label is "s-" and the ID in decimal,
// compared without case as DNS names are. It reports false for every other
// name; a client skips those ("Discovery" in docs/protocol.md).
func ParseTarget(dnsName string) (ServerID, bool) {
	label, _, _ := strings.Cut(dnsName, ".")
	if len(label) < 3 || (label[0] != 's' && label[0] != 'S') || label[1] != '-' {
		return 0, false
	}
	id, err := ParseServerID(label[2:])
	return id, err == nil
}

// Start returns when the server started, in UTC and whole seconds.
func (s ServerID) Start() time.Time {
	return time.Unix(epochUnix+int64(s>>lowBits), 0).UTC()
}

// Low returns the lower 23 bits, which tell apart servers that started in the
// same second.
func (s ServerID) Low() uint32 {
	return uint32(s & (lowLimit - 1))
}

// Older reports whether s is strictly older than other: the numerically lower
// ID is the older one.
func (s ServerID) Older(other ServerID) bool {
	return s < other
}

// String returns the ID in decimal.
func (s ServerID) String() string {
	return strconv.FormatUint(uint64(s), 10)
}

// Label returns the first DNS label of the server's SRV target, "s-" and the ID
// in decimal.
func (s ServerID) Label() string {
	return "s-" + s.String()
}
