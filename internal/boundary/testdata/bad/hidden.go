// Package bad imports a command.
package bad

import _ "github.com/weirhq/weir/cmd/weir"
