package ident_test

import (
	"testing"

	"github.com/weirhq/weir/ident"
)

func TestBucketKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name          string
		window, limit uint32
		want          string
	}{
		{"checkout", 1000, 100, "f5cf3ad8b8406854b596ba3614f16eff"},
		{"café", 60000, 25, "732b120606917c683e37433fa00a60dc"},
		{"binary\x00bucket", 1<<32 - 1, 1<<32 - 1, "f57a48f69aa8c7a16fc73499ae8d07fa"},
	} {
		if got := ident.Bucket(c.name, c.window, c.limit).String(); got != c.want {
			t.Errorf("Bucket(%q, %d, %d) = %s, want %s", c.name, c.window, c.limit, got, c.want)
		}
	}
}
