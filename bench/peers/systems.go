//go:build !redis_only

package main

import "context"

// systems opens a link to each system that this program knows.
var systems = map[string]func(ctx context.Context, job *Job) (link, error){
	"redis":      openRedis,
	"gubernator": openGubernator,
	"envoy":      openEnvoy,
}
