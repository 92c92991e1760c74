//go:build redis_only

package main

import "context"

// systems has Redis alone: what the others need may be missing where there is no network.
var systems = map[string]func(ctx context.Context, job *Job) (link, error){"redis": openRedis}
