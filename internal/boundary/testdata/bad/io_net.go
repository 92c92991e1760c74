// Package bad knows sockets.
package bad

import "net"

var conn net.Conn
