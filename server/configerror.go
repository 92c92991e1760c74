package server

import (
	"fmt"
	"strings"
)

// ConfigError says what is wrong with a [Config]. [New] returns it for what can be seen
// without trying: not for files, addresses that are taken, or the clock.
type ConfigError struct {
	Field   string // the name of Config's field, such as "Listen"
	Problem string // what is wrong and what to do, without the field
}

// fieldNames are what messages call the fields whose name does not do in lower case.
var fieldNames = map[string]string{
	"TTL": "TTL", "DNS": "DNS", "DedupTTLCap": "dedup TTL cap", "AnswerBytes": "answer bytes",
	"MaxLabels": "maximum of labels", "MemoryLimit": "memory limit", "ReceiveBuffer": "receive buffer",
}

// Error returns one line that names the field.
func (e *ConfigError) Error() string {
	name, ok := fieldNames[e.Field]
	if !ok {
		name = strings.ToLower(e.Field)
	}
	return "server: " + name + ": " + e.Problem
}

// bad returns a ConfigError.
func bad(field, format string, args ...any) error {
	return &ConfigError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
