package discovery

import "strings"

// ResponseError says that a DNS server answered, but with an error: it does not
// serve the name (REFUSED), or cannot find out (SERVFAIL). Match it with errors.As;
// of several servers the first that did is found.
type ResponseError struct {
	Code string // the response code's name, such as "REFUSED"
}

// Error returns "it answered" and the code.
func (e *ResponseError) Error() string { return "it answered " + e.Code }

// String names the servers that are asked, for a person.
func (r *dnsResolver) String() string { return strings.Join(r.servers, ", ") }

// String names the servers that are asked now.
func (s *systemResolver) String() string { return s.resolver().String() + " (" + s.path + ")" }

// String says who is asked.
func (netResolver) String() string { return "the system's resolver" }
