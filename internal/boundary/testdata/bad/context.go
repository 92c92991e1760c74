// Package bad can be cancelled.
package bad

import "context"

func run(context.Context) {}
