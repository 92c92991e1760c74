// Package bad imports the demo.
package bad

import _ "github.com/weirhq/weir/internal/demo/scene"
