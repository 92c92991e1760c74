// Package bad imports what is above it.
package bad

import _ "github.com/weirhq/weir/server"
