// Peers puts a load on rate limiters that others wrote, each by its own protocol, so that bench can
// compare them. It reads a [Job] as JSON from its standard input, and writes a [Result] as JSON to its
// standard output:
//
//	echo '{"system": "redis", "addr": "127.0.0.1:6379", "connections": 4, "in_flight": 64,
//	       "seconds": 2, "keys": 1, "limit": 1000000, "window_ms": 1000}' | go run .
//
// The module pins the versions of the servers too, as tools: `go build -o DIR/ tool` builds them.
package main
